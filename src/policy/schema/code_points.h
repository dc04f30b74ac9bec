// SPDX-License-Identifier: Apache-2.0
//
// A set of code points: what one place of a pattern may match.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace coffer::policy {

class CodePointSet {
 public:
  void Add(char32_t first, char32_t last);
  void Add(const CodePointSet& other);
  CodePointSet Complement() const;  // everything else that Unicode has
  bool Has(char32_t c) const;

 private:
  std::vector<std::pair<char32_t, char32_t>> ranges_;  // in order, apart from each other
  std::array<uint64_t, 2> ascii_{};                    // the same, for the first 128
};

// \d, \w, \s or, in upper case, everything else; what `.` matches. As ECMA-262 has them with the u flag alone.
CodePointSet ClassOf(char letter);
CodePointSet NotLineTerminators();

}  // namespace coffer::policy
