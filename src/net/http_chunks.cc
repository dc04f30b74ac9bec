// SPDX-License-Identifier: Apache-2.0
#include "net/http_chunks.h"

#include <algorithm>

#include "base/hex.h"

namespace coffer::net {
ChunkDecoder::State ChunkDecoder::Step(char c) {
  switch (state_) {
    case State::kSize:
      if (const int value = EitherCaseHexValue(c); value >= 0 && digits_ < 16) {
        ++digits_;
        size_ = size_ << 4 | static_cast<uint64_t>(value);
        return State::kSize;
      }
      return c == '\r' && digits_ > 0 ? State::kSizeEnd : State::kBroken;
    case State::kSizeEnd:
      digits_ = 0;
      if (c != '\n') {
        return State::kBroken;
      }
      return size_ == 0 ? State::kLastReturn : State::kData;
    case State::kDataReturn:
      return c == '\r' ? State::kDataEnd : State::kBroken;
    case State::kDataEnd:
      return c == '\n' ? State::kSize : State::kBroken;
    case State::kLastReturn:
      return c == '\r' ? State::kLastEnd : State::kBroken;
    case State::kLastEnd:
      return c == '\n' ? State::kDone : State::kBroken;
    case State::kData:
    case State::kDone:
    case State::kBroken:
      break;
  }
  return state_;
}

size_t ChunkDecoder::Feed(std::string_view input, std::string* out) {
  size_t at = 0;
  while (at < input.size() && !done() && !broken()) {
    if (state_ != State::kData) {
      state_ = Step(input[at++]);
      continue;
    }
    const size_t take = static_cast<size_t>(std::min<uint64_t>(size_, input.size() - at));
    out->append(input.substr(at, take));
    at += take;
    size_ -= take;
    if (size_ == 0) {
      state_ = State::kDataReturn;
    }
  }
  return at;
}

}  // namespace coffer::net
