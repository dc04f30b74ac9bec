// SPDX-License-Identifier: Apache-2.0
#include "policy/schema/number.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

namespace coffer::policy {
namespace {

constexpr double kTwoTo63 = 9223372036854775808.0;
constexpr double kTwoTo64 = 18446744073709551616.0;

std::string DecimalText(__int128 value) {
  std::string digits;
  unsigned __int128 left = value < 0 ? -static_cast<unsigned __int128>(value) : value;
  do {
    digits.push_back(static_cast<char>('0' + static_cast<int>(left % 10)));
    left /= 10;
  } while (left != 0);
  if (value < 0) {
    digits.push_back('-');
  }
  std::reverse(digits.begin(), digits.end());
  return digits;
}

std::string ShortestText(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::scientific);
  return {text, end.ptr};
}

template <typename T>
int Sign(T left, T right) {
  return left < right ? -1 : (right < left ? 1 : 0);
}

}  // namespace

// coefficient * 10^exponent; the coefficient has no trailing zero, unless it is zero.
struct Number::Decimal {
  unsigned __int128 coefficient = 0;
  int exponent = 0;
};

Number::Number(const Json& value) : exact_(true), whole_(false) {
  if (value.is_number_unsigned()) {
    whole_part_ = value.get<uint64_t>();
  } else if (value.is_number_integer()) {
    whole_part_ = value.get<int64_t>();
  } else {
    real_ = value.get<double>();
    const bool whole = std::trunc(real_) == real_;
    exact_ = whole && real_ >= -kTwoTo63 && real_ < kTwoTo64;
    whole_ = whole;
    if (exact_) {
      whole_part_ = static_cast<__int128>(real_);
    }
  }
}

int Number::Compare(const Number& other) const {
  if (exact_ && other.exact_) {
    return Sign(whole_part_, other.whole_part_);
  }
  if (!exact_ && !other.exact_) {
    return Sign(real_, other.real_);
  }
  if (!exact_) {
    return -other.Compare(*this);
  }
  // An integer against a double that has a fraction or is out of every integer's range.
  if (other.whole_) {
    return other.real_ > 0 ? -1 : 1;
  }
  const auto below = static_cast<__int128>(std::floor(other.real_));
  return whole_part_ <= below ? -1 : 1;
}

Number::Decimal Number::ToDecimal() const {
  Decimal decimal;
  if (exact_) {
    decimal.coefficient =
        whole_part_ < 0 ? -static_cast<unsigned __int128>(whole_part_) : whole_part_;
  } else {
    // "d.ddddde-xx": at most 17 digits.
    for (const std::string text = ShortestText(std::fabs(real_)); const char c : text) {
      if (c == 'e') {
        int exponent = 0;
        const char* from = text.data() + text.find('e') + 1;
        from += *from == '+' ? 1 : 0;
        std::from_chars(from, text.data() + text.size(), exponent);
        const size_t point = text.find('.');
        const size_t fraction = point == std::string::npos ? 0 : text.find('e') - point - 1;
        decimal.exponent = exponent - static_cast<int>(fraction);
        break;
      }
      if (c != '.') {
        decimal.coefficient = decimal.coefficient * 10 + static_cast<unsigned>(c - '0');
      }
    }
  }
  while (decimal.coefficient != 0 && decimal.coefficient % 10 == 0) {
    decimal.coefficient /= 10;
    ++decimal.exponent;
  }
  return decimal;
}

bool Number::MultipleOf(const Number& divisor) const {
  const Decimal a = ToDecimal();
  const Decimal b = divisor.ToDecimal();
  if (a.coefficient == 0) {
    return true;
  }
  if (b.coefficient == 0 || a.exponent < b.exponent) {
    return false;  // a has more decimals than b: its last digit is not zero
  }
  // a.coefficient * 10^(difference) modulo b.coefficient; both are below 2^64, so nothing overflows.
  const unsigned __int128 modulus = b.coefficient;
  unsigned __int128 rest = a.coefficient % modulus;
  for (int i = a.exponent - b.exponent; i > 0 && rest != 0; --i) {
    rest = rest * 10 % modulus;
  }
  return rest == 0;
}

std::string Number::ToText() const {
  return exact_ ? DecimalText(whole_part_) : ShortestText(real_);
}

}  // namespace coffer::policy
