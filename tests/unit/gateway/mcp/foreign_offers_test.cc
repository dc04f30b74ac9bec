// SPDX-License-Identifier: Apache-2.0
#include "gateway/mcp/foreign_offers.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/json.h"

namespace coffer::gateway {
namespace {

std::string Checked(const char* block) {
  const Result<Json> checked = CheckForeignBlock(ParseJson(block).value(), "s");
  return checked.ok() ? PrintJson(*checked) : checked.error().code;
}

// A client must be able to trust the shape of what it gets, also if a wrapped server does not keep to MCP's.
TEST(ForeignOffers, AResultHasTheContentThatMcpKnowsAndNothingElse) {
  constexpr const char* kText = R"({"type":"text","text":"a"})";
  EXPECT_EQ(Checked(kText), kText);
  EXPECT_EQ(Checked(R"({"type":"text","text":"a","_meta":{"ui":"x"},"other":1})"), kText);
  EXPECT_EQ(Checked(R"({"type":"text","text":7})"), "tool.result");
  EXPECT_EQ(Checked(R"({"type":"text"})"), "tool.result");

  constexpr const char* kImage = R"({"type":"image","mimeType":"image/png","data":"QUJD"})";
  EXPECT_EQ(Checked(kImage), kImage);
  EXPECT_EQ(Checked(R"({"type":"image","mimeType":"image/png","data":"<svg>"})"), "tool.result");
  EXPECT_EQ(Checked(R"({"type":"audio","data":"QUJD"})"), "tool.result");

  EXPECT_EQ(Checked(R"({"type":"resource_link","uri":"file:///a","name":"a"})"),
            R"({"type":"resource_link","uri":"s+file:///a","name":"a"})");
  EXPECT_EQ(Checked(R"({"type":"tool_use","id":"1","name":"bash","input":{}})"), "tool.result");
  EXPECT_EQ(Checked(R"({"type":""})"), "tool.result");
}

TEST(ForeignOffers, AnnotationsHaveTheShapesOfMcp) {
  constexpr const char* kGood =
      R"({"type":"text","text":"a","annotations":{"audience":["user"],"priority":0.5}})";
  EXPECT_EQ(Checked(kGood), kGood);
  EXPECT_EQ(
      Checked(
          R"({"type":"text","text":"a","annotations":{"audience":["root"],"priority":"x","y":1}})"),
      R"({"type":"text","text":"a","annotations":{}})");
}

}  // namespace
}  // namespace coffer::gateway
