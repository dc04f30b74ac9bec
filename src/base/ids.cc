// SPDX-License-Identifier: Apache-2.0
#include "base/ids.h"

#include <sys/syscall.h>

#include <array>
#include <atomic>

#include "base/hex.h"
#include "base/sys.h"

namespace coffer {

namespace {

// An id holds a quarter of a microsecond; two that are made in the same one still sort in the order they were made.
constexpr int64_t kTick = 250;
constexpr int64_t kSameTime = 1'000'000'000;

int64_t After(int64_t nanos) {
  static std::atomic<int64_t> newest{0};
  int64_t last = newest.load();
  for (;;) {
    // A clock that was set back by more is believed.
    const bool close = nanos <= last + kTick && last - nanos < kSameTime;
    const int64_t next = close ? last + kTick : nanos;
    if (newest.compare_exchange_weak(last, next)) {
      return next;
    }
  }
}

}  // namespace

std::string IdBound(Nanos time) {
  const int64_t millis = time.count() / 1'000'000;
  std::string text;
  for (int digit = 0; digit < 12; ++digit) {
    if (digit == 8) {
      text += '-';
    }
    text += kHexDigits[(millis >> (44 - 4 * digit)) & 15];
  }
  return text;
}

Result<std::string> NewId(Nanos now) {
  std::array<unsigned char, 16> bytes{};
  const long got = raw::Syscall(SYS_getrandom, raw::Arg(bytes.data()), bytes.size(), 0);
  if (got != static_cast<long>(bytes.size())) {
    return sys::ErrnoError("base.random", "the kernel gave no random bytes", got < 0 ? got : -5);
  }
  const int64_t nanos = After(now.count());
  const int64_t millis = nanos / 1'000'000;
  // Twelve bits of the fraction (a quarter of a microsecond), so that ids made one after the other also sort so.
  const auto fraction = static_cast<unsigned>(nanos % 1'000'000 * 4096 / 1'000'000);
  for (int i = 0; i < 6; ++i) {
    bytes[static_cast<size_t>(i)] = static_cast<unsigned char>(millis >> (40 - 8 * i));
  }
  bytes[6] = static_cast<unsigned char>(0x70 | (fraction >> 8));
  bytes[7] = static_cast<unsigned char>(fraction & 0xff);
  bytes[8] = static_cast<unsigned char>(0x80 | (bytes[8] & 0x3f));

  std::string text;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) {
      text += '-';
    }
    text += kHexDigits[bytes[i] >> 4];
    text += kHexDigits[bytes[i] & 15];
  }
  return text;
}

}  // namespace coffer
