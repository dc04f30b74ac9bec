// SPDX-License-Identifier: Apache-2.0
//
// Bytes in, a gzip stream out (RFC 1952), in pieces. It takes about 50 KiB, because the window is small.
#pragma once

#include <zlib.h>

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

namespace coffer::gateway {

class Deflate {
 public:
  static constexpr size_t kPieceBytes = 65536;

  Deflate();
  ~Deflate();
  Deflate(const Deflate&) = delete;
  Deflate& operator=(const Deflate&) = delete;

  // False if there was no memory for it.
  bool ready() const { return ready_; }
  void Add(std::string_view bytes, bool last);
  // What has come out. The last piece may grow while more is added.
  const std::deque<std::string>& pieces() const { return pieces_; }
  std::deque<std::string> Take();

 private:
  z_stream stream_{};
  bool ready_ = false;
  std::deque<std::string> pieces_;
};

}  // namespace coffer::gateway
