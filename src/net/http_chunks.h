// SPDX-License-Identifier: Apache-2.0
//
// The chunked transfer coding (RFC 9112 section 7.1), read strictly: no extensions, no trailers, sizes of at most 16
// digits. Every byte is looked at once and never again, so nothing is held back between two pieces of input.
// (Beast's own reader asserts on a last chunk that arrives byte by byte: found by fuzzing.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace coffer::net {

class ChunkDecoder {
 public:
  // Appends what is data to `out`. How many bytes of `input` belong to the body: all, unless it is done or broken.
  size_t Feed(std::string_view input, std::string* out);
  bool done() const { return state_ == State::kDone; }
  bool broken() const { return state_ == State::kBroken; }

 private:
  enum class State {
    kSize,
    kSizeEnd,
    kData,
    kDataReturn,
    kDataEnd,
    kLastReturn,
    kLastEnd,
    kDone,
    kBroken
  };
  State Step(char c);

  State state_ = State::kSize;
  int digits_ = 0;
  uint64_t size_ = 0;
};

}  // namespace coffer::net
