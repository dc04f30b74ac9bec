// SPDX-License-Identifier: Apache-2.0
#include "base/quantity.h"

#include <fmt/format.h>

#include <charconv>

namespace coffer {
namespace {

struct Unit {
  std::string_view name;
  uint64_t factor;
};

constexpr Unit kSizeUnits[] = {
    {"", 1},
    {"B", 1},
    {"K", 1ULL << 10},
    {"KiB", 1ULL << 10},
    {"kB", 1000},
    {"KB", 1000},
    {"M", 1ULL << 20},
    {"MiB", 1ULL << 20},
    {"MB", 1000000},
    {"G", 1ULL << 30},
    {"GiB", 1ULL << 30},
    {"GB", 1000000000},
    {"T", 1ULL << 40},
    {"TiB", 1ULL << 40},
    {"TB", 1000000000000},
};
constexpr uint64_t kMaxSize = 1ULL << 60;

constexpr Unit kTimeUnits[] = {
    // in milliseconds
    {"", 1000},     {"ms", 1},      {"s", 1000},     {"m", 60000},
    {"min", 60000}, {"h", 3600000}, {"d", 86400000},
};
constexpr uint64_t kMaxMillis = 366ULL * 86400000;

struct Parsed {
  uint64_t value = 0;
  bool ok = false;
};

template <size_t N>
Parsed ParseWithUnit(std::string_view text, const Unit (&units)[N], uint64_t max) {
  uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, number);
  if (problem != std::errc() || rest == text.data()) {
    return {};
  }
  const std::string_view suffix(rest, static_cast<size_t>(end - rest));
  for (const Unit& unit : units) {
    uint64_t product = 0;
    if (unit.name == suffix && !__builtin_mul_overflow(number, unit.factor, &product) &&
        product >= 1 && product <= max) {
      return {product, true};
    }
  }
  return {};
}

}  // namespace

Result<uint64_t> ParseSize(std::string_view text) {
  const Parsed parsed = ParseWithUnit(text, kSizeUnits, kMaxSize);
  if (!parsed.ok) {
    return Refused("policy.value", fmt::format("\"{}\" is not a size", text),
                   "write a whole number with a unit, such as 64KiB, 256MiB or 1GiB");
  }
  return parsed.value;
}

Result<Nanos> ParseDuration(std::string_view text) {
  const Parsed parsed = ParseWithUnit(text, kTimeUnits, kMaxMillis);
  if (!parsed.ok) {
    return Refused("policy.value", fmt::format("\"{}\" is not a duration", text),
                   "write a whole number with a unit, such as 500ms, 10s, 2m or 1h");
  }
  return Nanos(std::chrono::milliseconds(parsed.value));
}

Result<uint64_t> ParseCount(std::string_view text) {
  static constexpr Unit kPlain[] = {{"", 1}};
  const Parsed parsed = ParseWithUnit(text, kPlain, 1000000);
  if (!parsed.ok) {
    return Refused("policy.value", fmt::format("\"{}\" is not a count", text),
                   "write a whole number from 1 to 1000000");
  }
  return parsed.value;
}

std::string FormatSize(uint64_t bytes) {
  static constexpr std::string_view kNames[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  size_t unit = 0;
  while (unit + 1 < std::size(kNames) && bytes >= 1024 && bytes % 1024 == 0) {
    bytes /= 1024;
    ++unit;
  }
  return fmt::format("{}{}", bytes, kNames[unit]);
}

std::string FormatDuration(Nanos duration) {
  const auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
  return millis % 1000 == 0 ? fmt::format("{}s", millis / 1000) : fmt::format("{}ms", millis);
}

}  // namespace coffer
