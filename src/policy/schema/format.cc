// SPDX-License-Identifier: Apache-2.0
#include "policy/schema/format.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/ascii.h"

namespace coffer::policy {
namespace {

// Reads a text from left to right. Each Take returns whether it was there.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}
  bool done() const { return rest_.empty(); }
  bool Take(char c) {
    const bool there = !rest_.empty() && rest_[0] == c;
    rest_.remove_prefix(there ? 1 : 0);
    return there;
  }
  bool TakeEither(char a, char b) { return Take(a) || Take(b); }
  // Exactly `count` digits.
  bool Number(size_t count, int& value) {
    value = 0;
    for (size_t i = 0; i < count; ++i) {
      if (rest_.empty() || !IsDigit(rest_[0])) {
        return false;
      }
      value = value * 10 + (rest_[0] - '0');
      rest_.remove_prefix(1);
    }
    return true;
  }
  // As many as there are, at least one.
  bool Digits() {
    const size_t before = rest_.size();
    while (!rest_.empty() && IsDigit(rest_[0])) {
      rest_.remove_prefix(1);
    }
    return rest_.size() < before;
  }

 private:
  std::string_view rest_;
};

// RFC 3339, section 5.6 and appendix C.
bool TakeDate(Reader& in) {
  constexpr std::array<int, 13> kDays = {0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  int year = 0;
  int month = 0;
  int day = 0;
  if (!in.Number(4, year) || !in.Take('-') || !in.Number(2, month) || !in.Take('-') ||
      !in.Number(2, day) || month < 1 || month > 12) {
    return false;
  }
  const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  return day >= 1 && day <= (month == 2 && leap ? 29 : kDays[static_cast<size_t>(month)]);
}

bool TakeTime(Reader& in) {
  int hour = 0;
  int minute = 0;
  int second = 0;
  if (!in.Number(2, hour) || !in.Take(':') || !in.Number(2, minute) || !in.Take(':') ||
      !in.Number(2, second) || hour > 23 || minute > 59 || second > 60) {
    return false;
  }
  if (in.Take('.') && !in.Digits()) {
    return false;
  }
  int offset = 0;
  if (!in.TakeEither('Z', 'z')) {
    const bool east = in.Take('+');
    int hours = 0;
    int minutes = 0;
    if ((!east && !in.Take('-')) || !in.Number(2, hours) || !in.Take(':') ||
        !in.Number(2, minutes) || hours > 23 || minutes > 59) {
      return false;
    }
    offset = (hours * 60 + minutes) * (east ? 1 : -1);
  }
  // A leap second comes only at the end of a day in UTC.
  constexpr int kDay = 24 * 60;
  return second < 60 || (hour * 60 + minute - offset + 2 * kDay) % kDay == kDay - 1;
}

bool IsDate(std::string_view text) {
  Reader in(text);
  return TakeDate(in) && in.done();
}

bool IsDateTime(std::string_view text) {
  Reader in(text);
  return TakeDate(in) && in.TakeEither('T', 't') && TakeTime(in) && in.done();
}

// RFC 9562, section 4.
bool IsUuid(std::string_view text) {
  if (text.size() != 36) {
    return false;
  }
  for (size_t i = 0; i < text.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? text[i] != '-' : !IsHexDigit(text[i])) {
      return false;
    }
  }
  return true;
}

// RFC 2673, section 3.2: four decimal numbers; no leading zeros, which some readers take for octal.
bool IsIpv4(std::string_view text) {
  for (int part = 0; part < 4; ++part) {
    const size_t end = part < 3 ? text.find('.') : text.size();
    if (end == text.npos || end == 0 || end > 3 || (end > 1 && text[0] == '0')) {
      return false;
    }
    int value = 0;
    for (const char c : text.substr(0, end)) {
      if (!IsDigit(c)) {
        return false;
      }
      value = value * 10 + (c - '0');
    }
    if (value > 255) {
      return false;
    }
    text.remove_prefix(part < 3 ? end + 1 : end);
  }
  return true;
}

// How many groups of 16 bits "a:b:c" or "a:b:1.2.3.4" is, or -1. Empty text is no group.
int Ipv6Groups(std::string_view text, bool last_part) {
  if (text.empty()) {
    return 0;
  }
  int groups = 0;
  while (true) {
    const size_t end = std::min(text.find(':'), text.size());
    const std::string_view group = text.substr(0, end);
    if (last_part && end == text.size() && group.find('.') != group.npos) {
      return IsIpv4(group) ? groups + 2 : -1;
    }
    if (group.empty() || group.size() > 4 || !std::all_of(group.begin(), group.end(), IsHexDigit)) {
      return -1;
    }
    ++groups;
    if (end == text.size()) {
      return groups;
    }
    text.remove_prefix(end + 1);
  }
}

// RFC 4291, section 2.2. No zone: it means something on one host only.
bool IsIpv6(std::string_view text) {
  const size_t gap = text.find("::");
  if (gap == text.npos) {
    return Ipv6Groups(text, true) == 8;
  }
  const int before = Ipv6Groups(text.substr(0, gap), false);
  const int after = Ipv6Groups(text.substr(gap + 2), true);
  return before >= 0 && after >= 0 && before + after <= 7;
}

// RFC 1123, section 2.1: letters, digits and inner hyphens; labels of 63, 253 in all.
bool IsHostname(std::string_view text) {
  if (text.empty() || text.size() > 253) {
    return false;
  }
  while (true) {
    const size_t end = std::min(text.find('.'), text.size());
    const std::string_view label = text.substr(0, end);
    const bool fine = !label.empty() && label.size() <= 63 && label.front() != '-' &&
                      label.back() != '-' && std::all_of(label.begin(), label.end(), [](char c) {
                        return IsLetter(c) || IsDigit(c) || c == '-';
                      });
    if (!fine) {
      return false;
    }
    if (end == text.size()) {
      return true;
    }
    text.remove_prefix(end + 1);
  }
}

// RFC 5321, section 4.1.2, without quotes, address literals and hosts without a dot.
bool IsEmail(std::string_view text) {
  const size_t at = text.find('@');
  if (at == text.npos || at == 0 || at > 64) {
    return false;
  }
  char before = '.';
  for (const char c : text.substr(0, at)) {
    const bool atom =
        IsLetter(c) || IsDigit(c) || std::string_view("!#$%&'*+/=?^_`{|}~-").find(c) != text.npos;
    if (!atom && (c != '.' || before == '.')) {
      return false;
    }
    before = c;
  }
  const std::string_view host = text.substr(at + 1);
  return before != '.' && host.find('.') != host.npos && IsHostname(host);
}

constexpr std::array<Format, 8> kFormats = {{
    {"date", IsDate, "2026-03-31"},
    {"date-time", IsDateTime, "2026-03-31T09:30:00Z"},
    {"email", IsEmail, "ada@example.com"},
    {"hostname", IsHostname, "api.example.com"},
    {"ipv4", IsIpv4, "192.0.2.7"},
    {"ipv6", IsIpv6, "2001:db8::7"},
    {"uri", IsUri, "https://example.com/a?b=c"},
    {"uuid", IsUuid, "0190b6a4-2f1c-7b3e-9c55-2d1f0a6e8c11"},
}};

}  // namespace

const Format* FindFormat(std::string_view name) {
  const auto* const found = std::find_if(kFormats.begin(), kFormats.end(),
                                         [&](const Format& format) { return format.name == name; });
  return found == kFormats.end() ? nullptr : found;
}

std::string_view FormatNames() {
  return "date, date-time, email, hostname, ipv4, ipv6, uri and uuid";
}

}  // namespace coffer::policy
