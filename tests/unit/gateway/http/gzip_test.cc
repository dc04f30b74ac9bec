// SPDX-License-Identifier: Apache-2.0
//
// What is compressed, for whom, and that it unpacks to what it was; read back by zlib's own inflate.
#include "gateway/http/gzip.h"

#include <gtest/gtest.h>

#include <random>

#include "gateway/http/deflate.h"
#include "tests/support/gunzip.h"

namespace coffer::gateway {
namespace {

bool Accepts(const std::vector<std::string>& fields) {
  Head head;
  head.headers.push_back({"Host", "localhost"});
  for (const std::string& field : fields) {
    head.headers.push_back({"Accept-Encoding", field});
  }
  return AcceptsGzip(head);
}

Response InPieces(std::string_view text) {
  Response response = JsonResponse(200, std::string());
  for (; !text.empty(); text.remove_prefix(std::min(text.size(), Deflate::kPieceBytes))) {
    response.pieces.emplace_back(text.substr(0, Deflate::kPieceBytes));
  }
  return response;
}

std::string JoinedPieces(const Response& response) {
  std::string all = response.body;
  for (const std::string& piece : response.pieces) {
    all += piece;
  }
  return all;
}

const std::string* FieldOf(const Response& response, std::string_view name) {
  for (const Header& header : response.headers) {
    if (header.name == name) {
      return &header.value;
    }
  }
  return nullptr;
}

bool Never() { return false; }

TEST(Gzip, TheClientDecides) {
  for (const std::vector<std::string>& fields :
       std::vector<std::vector<std::string>>{{"gzip"},
                                             {"GZIP"},
                                             {"x-gzip"},
                                             {"deflate, gzip, br"},
                                             {"gzip;q=1.0"},
                                             {"gzip; q=0.001"},
                                             {"gzip ;Q=0.5"},
                                             {"*"},
                                             {"*;q=0.1"},
                                             {"identity;q=0, gzip"},
                                             {"br", "gzip"},
                                             {"br;q=1.0, gzip;q=0.8, *;q=0.1"}}) {
    EXPECT_TRUE(Accepts(fields)) << fields.front();
  }
  for (const std::vector<std::string>& fields :
       std::vector<std::vector<std::string>>{{},
                                             {""},
                                             {"identity"},
                                             {"br"},
                                             {"gzip;q=0"},
                                             {"gzip;q=0.0"},
                                             {"gzip;q=0.000"},
                                             {"*;q=0"},
                                             {"gzip;q=0, *"},
                                             {"gzip;q=x"},
                                             {"gzip;q="},
                                             {"gzip;q=2"},
                                             {"gzip;q=1.1"},
                                             {"gzip;q=0.1234"},
                                             {"gzip;level=9"},
                                             {"gzipped"},
                                             {"not gzip"},
                                             {",,;,"}}) {
    EXPECT_FALSE(Accepts(fields)) << (fields.empty() ? "none" : fields.front());
  }
}

TEST(Gzip, UnpacksToWhatItWas) {
  std::minstd_rand random(7);
  for (const size_t size : {kCompressedBytes, size_t{65536}, size_t{65537}, size_t{1'000'000}}) {
    for (const bool noise : {false, true}) {
      std::string text;
      while (text.size() < size) {
        text += noise ? static_cast<char>(random()) : static_cast<char>('a' + text.size() % 9);
      }
      Response whole = JsonResponse(200, text);
      CompressBody(true, Never, &whole);
      EXPECT_EQ(test::Gunzip(JoinedPieces(whole)), text);
      Response cut = InPieces(text);
      CompressBody(true, Never, &cut);
      EXPECT_EQ(test::Gunzip(JoinedPieces(cut)), text);
      ASSERT_NE(FieldOf(cut, "Content-Encoding"), nullptr);
      EXPECT_EQ(*FieldOf(cut, "Content-Encoding"), "gzip");
      EXPECT_EQ(*FieldOf(cut, "Vary"), "Accept-Encoding");
      for (const std::string& piece : cut.pieces) {
        EXPECT_LE(piece.size(), Deflate::kPieceBytes);
      }
      EXPECT_TRUE(noise || BodySize(cut) < size / 20) << BodySize(cut) << " of " << size;
    }
  }
}

TEST(Gzip, LeavesTheRestAlone) {
  const std::string large(100'000, 'x');
  Response small = JsonResponse(200, std::string(kCompressedBytes - 1, 'x'));
  CompressBody(true, Never, &small);
  EXPECT_EQ(FieldOf(small, "Content-Encoding"), nullptr);
  EXPECT_EQ(small.body.size(), kCompressedBytes - 1);
  Response unasked = JsonResponse(200, large);
  CompressBody(false, Never, &unasked);
  EXPECT_EQ(unasked.body, large);
  EXPECT_EQ(FieldOf(unasked, "Content-Encoding"), nullptr);
  EXPECT_NE(FieldOf(unasked, "Vary"), nullptr) << "another client would get another body";
  for (const char* type : {"application/octet-stream", "text/event-stream", ""}) {
    Response other = JsonResponse(200, large);
    other.content_type = type;
    CompressBody(true, Never, &other);
    EXPECT_EQ(other.body, large) << type;
  }
  Response text = JsonResponse(200, large);
  text.content_type = "text/plain; version=0.0.4";
  CompressBody(true, Never, &text);
  EXPECT_LT(BodySize(text), 1000U) << "the control";
}

// Nothing is made of the rest once the client has left.
TEST(Gzip, StopsForAClientThatIsGone) {
  Response response = InPieces(std::string(1'000'000, 'x'));
  int asked = 0;
  CompressBody(true, [&] { return ++asked > 3; }, &response);
  EXPECT_EQ(asked, 4);
  EXPECT_LT(BodySize(response), 1000U);
}

}  // namespace
}  // namespace coffer::gateway
