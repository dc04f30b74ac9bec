// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/deflate.h"

#include <utility>

namespace coffer::gateway {
namespace {

// 4 KiB of window and small tables: (1 << (12 + 2)) + (1 << (6 + 9)) bytes in all (zconf.h).
constexpr int kWindowBits = 12;
constexpr int kGzip = 16;  // added to the window: a gzip header instead of zlib's
constexpr int kMemoryLevel = 6;
constexpr int kLevel = 2;  // repetition is what large answers have, and the fast levels find that

}  // namespace

Deflate::Deflate() {
  ready_ = ::deflateInit2(&stream_, kLevel, Z_DEFLATED, kWindowBits + kGzip, kMemoryLevel,
                          Z_DEFAULT_STRATEGY) == Z_OK;
}

Deflate::~Deflate() {
  if (ready_) {
    ::deflateEnd(&stream_);
  }
}

void Deflate::Add(std::string_view bytes, bool last) {
  // zlib does not write to it; its interface is older than const.
  stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream_.avail_in = static_cast<uInt>(bytes.size());
  int answer = Z_OK;
  do {
    if (pieces_.empty() || pieces_.back().size() == kPieceBytes) {
      pieces_.emplace_back();
    }
    std::string& piece = pieces_.back();
    const size_t had = piece.size();
    piece.resize(kPieceBytes);
    stream_.next_out = reinterpret_cast<Bytef*>(piece.data() + had);
    stream_.avail_out = static_cast<uInt>(kPieceBytes - had);
    answer = ::deflate(&stream_, last ? Z_FINISH : Z_NO_FLUSH);
    piece.resize(kPieceBytes - stream_.avail_out);
  } while (stream_.avail_in > 0 || (last && answer == Z_OK));
}

std::deque<std::string> Deflate::Take() {
  if (!pieces_.empty()) {
    pieces_.back().shrink_to_fit();
  }
  return std::exchange(pieces_, {});
}

}  // namespace coffer::gateway
