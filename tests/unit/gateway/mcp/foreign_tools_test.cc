// SPDX-License-Identifier: Apache-2.0
//
// What another server says of its tools, and what of it reaches an agent.
#include "gateway/mcp/foreign_tools.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "gateway/mcp/stranger_text.h"

namespace coffer::gateway {
namespace {

policy::Manifest ServerSays() {
  policy::Manifest server;
  server.tool.name = "other";
  server.run.runtime = "host-usr";
  return server;
}

Json Tool(const std::string& name, Json schema = {{"type", "object"}}) {
  return {{"name", name}, {"description", "Says it."}, {"inputSchema", std::move(schema)}};
}

TEST(ForeignTools, KeepTheirSchemaAndLoseTheirClaims) {
  Json tool = Tool("Read_File", {{"$schema", "http://json-schema.org/draft-07/schema#"},
                                 {"type", "object"},
                                 {"properties", {{"path", {{"type", "string"}}}}},
                                 {"required", {"path"}}});
  tool["annotations"] = {{"readOnlyHint", true}, {"destructiveHint", false}};
  const ForeignTools read = ReadForeignTools(Json::array({tool}), ServerSays());
  ASSERT_TRUE(read.left_out.empty()) << read.left_out.front();
  const ForeignTool& made = read.tools.at("other-read-file");
  EXPECT_EQ(made.name, "Read_File");
  EXPECT_EQ((*made.shown)["annotations"]["readOnlyHint"], false);
  EXPECT_EQ((*made.shown)["annotations"]["destructiveHint"], true);
  EXPECT_FALSE((*made.shown)["inputSchema"].contains("$schema"));
  EXPECT_EQ(made.tool->manifest.tool.effect, policy::Effect::kIrreversible);
  EXPECT_TRUE(made.tool->input.Validate({{"path", "x"}}).empty());
  EXPECT_FALSE(made.tool->input.Validate(Json::object()).empty());
}

TEST(ForeignTools, WhatHidesSomethingIsLeftOut) {
  const Json list =
      Json::array({Tool(""),
                   Tool("\xe2\x80\xae"
                        "evil"),
                   Tool("a b"), Tool(std::string(80, 'a')), Json(5), Json{{"name", 5}},
                   Json{{"name", "bare"}}, Tool("remote", {{"$ref", "http://x/y"}}),
                   Tool("hidden", {{"type", "object"},
                                   {"properties", {{"a\xe2\x80\x8b", {{"type", "string"}}}}}}),
                   Tool("good"), Tool("Good")});
  const ForeignTools read = ReadForeignTools(list, ServerSays());
  EXPECT_EQ(read.tools.size(), 1U);
  EXPECT_TRUE(read.tools.contains("other-good"));
  EXPECT_EQ(read.left_out.size(), 10U);
}

TEST(ForeignTools, TheOrderOfKeysIsNoChange) {
  EXPECT_EQ(SortedJson(Json::parse(R"({"b": [1, {"d": 1, "c": 2}], "a": "x"})")),
            SortedJson(Json::parse(R"({"a": "x", "b": [1, {"c": 2, "d": 1}]})")));
  EXPECT_NE(SortedJson(Json::parse(R"({"a": [1, 2]})")),
            SortedJson(Json::parse(R"({"a": [2, 1]})")));
}

TEST(StrangerText, ShowsAllThatItKeeps) {
  EXPECT_EQ(VisibleText("a\x1b[2J\xe2\x80\xae"
                        "b\xf3\xa0\x81\xa9"
                        "c\xff\n\xc3\xa4",
                        100),
            "a[2Jbc\n\xc3\xa4");
  EXPECT_EQ(VisibleText("\xc3\xa4\xc3\xa4", 3), "\xc3\xa4...");
  EXPECT_TRUE(IsVisibleText("plain \xc3\xa4 \xe2\x9c\x93"));
  EXPECT_FALSE(
      IsVisibleText("zero\xe2\x80\x8b"
                    "width"));
}

}  // namespace
}  // namespace coffer::gateway
