// SPDX-License-Identifier: Apache-2.0
#include "net/http_chunks.h"

#include <gtest/gtest.h>

namespace coffer::net {
namespace {

// The data, with "!" behind it if it is broken, "..." if more is needed; then what was not taken.
std::string Decode(std::string_view input, size_t at_a_time) {
  ChunkDecoder decoder;
  std::string out;
  while (!input.empty() && !decoder.done() && !decoder.broken()) {
    const std::string_view piece = input.substr(0, at_a_time);
    const size_t used = decoder.Feed(piece, &out);
    EXPECT_TRUE(used == piece.size() || decoder.done() || decoder.broken());
    input.remove_prefix(used);
  }
  return out + (decoder.broken() ? "!" : decoder.done() ? "|" + std::string(input) : "...");
}

TEST(Chunks, InEveryCut) {
  for (size_t step = 1; step < 40; ++step) {
    EXPECT_EQ(Decode("4\r\nabcd\r\n00A\r\n0123456789\r\n0\r\n\r\nNEXT", step),
              "abcd0123456789|NEXT")
        << step;
    EXPECT_EQ(Decode("0\r\n\r\nNEXT", step), "|NEXT") << step;
    EXPECT_EQ(Decode("000\r\n\r\n", step), "|") << step;
    EXPECT_EQ(Decode("5\r\nab", step), "ab...") << step;
  }
}

TEST(Chunks, NothingButTheStrictForm) {
  for (const char* wrong :
       {"\r\n", "g\r\n", "-1\r\n", "+1\r\n", " 1\r\n", "1 \r\n", "0x1\r\n", "1\n", "1\r\r",
        "1;a\r\n", "1;a=b\r\n", "11111111111111111\r\n", "0\r\nA: b\r\n", "0\r\n\n", "0\n\n"}) {
    EXPECT_EQ(Decode(wrong, 1), "!") << wrong;
    EXPECT_EQ(Decode(wrong, 100), "!") << wrong;
  }
  EXPECT_EQ(Decode("1\r\nab", 1), "a!");
  EXPECT_EQ(Decode("1\r\na\n", 1), "a!");
  EXPECT_EQ(Decode("1\r\na\r\r", 1), "a!");
  EXPECT_EQ(Decode("ffffffffffffffff\r\nab", 1), "ab...");
}

}  // namespace
}  // namespace coffer::net
