// SPDX-License-Identifier: Apache-2.0
//
// What a gzip stream holds, by zlib itself; the test fails if it is not whole, or not all of the bytes.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <string>

namespace coffer::test {

inline std::string Gunzip(const std::string& bytes) {
  z_stream stream{};
  EXPECT_EQ(::inflateInit2(&stream, 15 + 16), Z_OK);
  std::string in = bytes;
  std::string out;
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  int answer = Z_OK;
  while (answer == Z_OK) {
    std::string piece(65536, '\0');
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = static_cast<uInt>(piece.size());
    answer = ::inflate(&stream, Z_NO_FLUSH);
    out += piece.substr(0, piece.size() - stream.avail_out);
  }
  EXPECT_EQ(answer, Z_STREAM_END);
  EXPECT_EQ(stream.avail_in, 0U);
  ::inflateEnd(&stream);
  return out;
}

}  // namespace coffer::test
