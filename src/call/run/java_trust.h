// SPDX-License-Identifier: Apache-2.0
//
// Certificates as Java reads them. Java programs read key stores and no PEM bundles; the oldest form of these (JKS) is
// read by every version without a password.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace coffer::call {

class JavaTrustStore {
 public:
  // Every certificate of a PEM text that is well formed. What is between them is skipped.
  void Add(std::string_view bundle);
  // The file, or its beginning if one more certificate will be put behind it (EndOf). Once.
  enum class Then { kNothing, kOneMore };
  std::string Take(Then then = Then::kNothing);
  // What a file lacks that was taken with kOneMore. Nothing if the text does not have exactly one certificate.
  static std::optional<std::string> EndOf(std::string_view pem);

 private:
  std::string file_;
  uint32_t count_ = 0;
};

}  // namespace coffer::call
