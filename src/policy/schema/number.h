// SPDX-License-Identifier: Apache-2.0
//
// A number as JSON Schema sees it: compared and divided exactly.
//
// Integers are exact in the 64 bits that base/json keeps them in; what does not fit there is a double already when it
// gets here, and so is everything with a fraction or an exponent. Nothing here overflows or rounds.
#pragma once

#include <string>

#include "base/json.h"

namespace coffer::policy {

// A finite number: an integer of 64 bits, signed or not, or a double that is no such integer.
class Number {
 public:
  explicit Number(const Json& value);  // a number
  bool integer() const { return exact_ || whole_; }
  int Compare(const Number& other) const;  // <0, 0, >0
  // Exact, in decimals: a double is the shortest decimal that denotes it, so 0.3 is a multiple of 0.1. There is no
  // tolerance: 0.30000000000000004 is not. `divisor` is positive.
  bool MultipleOf(const Number& divisor) const;
  std::string ToText() const;

 private:
  struct Decimal;
  Decimal ToDecimal() const;
  bool exact_;  // whole_part_ is all of it
  bool whole_;  // a double without a fraction, too large to be exact
  __int128 whole_part_ = 0;
  double real_ = 0;
};

}  // namespace coffer::policy
