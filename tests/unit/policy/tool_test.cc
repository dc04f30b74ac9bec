// SPDX-License-Identifier: Apache-2.0
#include "policy/tool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "policy/manifest/starter.h"
#include "tests/support/run.h"
#include "tests/unit/policy/manifest/manifest_text.h"

namespace coffer::policy {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

const char* const kHead =
    "[tool]\nname = \"x\"\nversion = \"1\"\neffect = \"read-only\"\n[run]\nruntime = \"sh\"\nargv "
    "= [\"cat\", \"{f}\"]\n"
    "[run.paths]\nf = { mount = \"/workspace\" }\n[input.schema]\ntype = \"object\"\n";

std::vector<std::string> Mistakes(const std::string& text) {
  const LoadedTool loaded = LoadTool(text, "f", {});
  EXPECT_EQ(loaded.tool.has_value(), loaded.mistakes.empty());
  std::vector<std::string> lines;
  for (const Mistake& mistake : loaded.mistakes) {
    lines.push_back(FormatMistake("f", mistake));
  }
  return lines;
}

TEST(Tool, LoadsAndPreparesACall) {
  const LoadedTool loaded =
      LoadTool(std::string(kHead) +
                   "required = [\"f\"]\nproperties.f = { type = \"string\", maxLength = 9 }\n",
               "f", {});
  ASSERT_TRUE(loaded.tool) << testing::PrintToString(loaded.mistakes.size());
  EXPECT_EQ(loaded.tool->hash.size(), 71U);
  const Result<ToolCall> call = PrepareToolCall(*loaded.tool, {{"f", "a.txt"}}, {});
  ASSERT_TRUE(call.ok());
  EXPECT_THAT(call->command, ElementsAre("cat", "/workspace/a.txt"));
  for (const Json& bad :
       {Json::object(), Json({{"f", 1}}), Json({{"f", "0123456789"}}), Json({{"f", "a"}, {"g", 1}}),
        Json({{"f", "../a"}}), Json(nullptr), Json::array(), Json("f")}) {
    const Result<ToolCall> refused = PrepareToolCall(*loaded.tool, bad, {});
    ASSERT_FALSE(refused.ok()) << bad.dump();
    EXPECT_THAT(refused.error().code, StartsWith("policy.args"));
  }
}

// One answer is enough to correct a call: every mistake, with the names and values that are allowed.
TEST(Tool, EveryMistakeOfTheArgumentsIsTold) {
  const LoadedTool loaded =
      LoadTool(std::string(kHead) +
                   "required = [\"f\", \"mode\"]\nproperties.f = { type = \"string\" }\n"
                   "properties.mode = { enum = [\"fast\", \"slow\", 3] }\n",
               "f", {});
  ASSERT_TRUE(loaded.tool) << FormatMistake("f", loaded.mistakes.front());
  const auto refusal = [&](const Json& args) {
    const Result<ToolCall> call = PrepareToolCall(*loaded.tool, args, {});
    return call.ok() ? "" : call.error().message;
  };
  EXPECT_EQ(
      refusal({{"f", 1}, {"mode", "fats"}, {"moed", 1}}),
      "/f must be a string, not an integer; /mode must be one of \"fast\", \"slow\", 3; /moed is "
      "not allowed here; did you mean mode?");
  EXPECT_EQ(refusal(Json::object()),
            "the arguments must have a member \"f\"; the arguments must have a member \"mode\"");
  EXPECT_EQ(refusal({{"f", "x"}, {"mode", "fast"}}), "") << "the control";
  Json many = {{"f", "x"}, {"mode", "fast"}};
  for (int i = 0; i < 1000; ++i) {
    many[std::string(500, 'n') + std::to_string(i)] = i;
  }
  EXPECT_LT(refusal(many).size(), 6000U) << "bounded, whatever the names are";
  EXPECT_THAT(refusal(many), HasSubstr("there may be more"));
}

TEST(Tool, SchemaProblemsStandWhereTheyAreWritten) {
  EXPECT_THAT(Mistakes(std::string(kHead) + "properties.f = { type = \"strnig\" }\n"),
              ElementsAre(StartsWith("f:12:")));
  EXPECT_THAT(
      Mistakes(std::string(kHead) + "properties.f = { type = \"string\", maxLenght = 5 }\n"),
      ElementsAre(StartsWith("f:12:35: ")));
  EXPECT_THAT(
      Mistakes(std::string(kHead) + "properties.f = { \"$ref\" = \"https://example.com/s\" }\n"),
      ElementsAre(StartsWith("f:12:18: ")));
}

TEST(Tool, ExamplesAndSurfacesAreCheckedTogether) {
  const std::vector<std::string> lines =
      Mistakes(std::string(kHead) +
               "properties.f = { type = \"string\" }\n[[examples.allow]]\nargs = { f = "
               "\"/etc/passwd\" }\nwhy = \"absolute\"\n"
               "[[examples.deny]]\nargs = { f = \"a\" }\nwhy = \"fine\"\n[output]\nschema = { type "
               "= \"object\" }\n");
  ASSERT_THAT(lines, SizeIs(3)) << testing::PrintToString(lines);
  EXPECT_THAT(lines[0], StartsWith("f:13:1: examples.allow \"absolute\" is refused"));
  EXPECT_THAT(lines[1], StartsWith("f:16:1: examples.deny \"fine\" is accepted"));
  EXPECT_THAT(lines[2], StartsWith("f:20:1: output.schema needs output schemas"));
}

// A wrong key, a wrong value, a schema that does not compile, a surface that does not exist: nobody has to mend one to be
// told of the next. What only follows from a mistake is no mistake of its own.
TEST(Tool, MistakesOfAllKindsAreToldAtOnce) {
  const std::vector<std::string> lines = Mistakes(
      "[tool]\nname = \"x\"\nversion = \"1\"\n[run]\nruntime = \"sh\"\nargv = [\"cat\"]\n"
      "[limits]\nmemroy = \"1MiB\"\n[input.schema]\ntype = \"object\"\n"
      "properties.a = { type = \"strnig\" }\n"
      "[output]\nschema = { type = \"object\" }\n");
  ASSERT_THAT(lines, SizeIs(4)) << testing::PrintToString(lines);
  EXPECT_THAT(lines[0], HasSubstr("an effect that is not declared"));
  EXPECT_THAT(lines[1], HasSubstr("memroy"));
  EXPECT_THAT(lines[2], HasSubstr("strnig"));
  EXPECT_THAT(lines[3], HasSubstr("output.schema needs"));
  const std::vector<std::string> effect = Mistakes(
      "[tool]\nname = \"x\"\nversion = \"1\"\neffect = \"read\"\n[run]\nruntime = \"sh\"\n"
      "argv = [\"cat\"]\n[input.schema]\ntype = \"object\"\n");
  ASSERT_THAT(effect, SizeIs(1)) << testing::PrintToString(effect);
}

// An example that the schema refuses is told beside other mistakes; one that must be refused and is not may still be, by
// what is not right yet.
TEST(Tool, ExamplesOfAManifestWithOtherMistakesAreCheckedAgainstItsSchema) {
  const std::vector<std::string> lines = Mistakes(
      "[tool]\nname = \"x\"\nversion = \"1\"\neffect = \"read-only\"\n[run]\nruntime = \"sh\"\n"
      "argv = [\"cat\"]\n[limits]\nmemroy = \"1MiB\"\n[input.schema]\ntype = \"object\"\n"
      "properties.a = { type = \"string\" }\n"
      "[[examples.allow]]\nargs = { a = 1 }\nwhy = \"a number\"\n"
      "[[examples.allow]]\nargs = { a = \"b\" }\nwhy = \"the control\"\n"
      "[[examples.deny]]\nargs = { a = \"c\" }\nwhy = \"not known yet\"\n");
  ASSERT_THAT(lines, SizeIs(2)) << testing::PrintToString(lines);
  EXPECT_THAT(lines[0], HasSubstr("memroy"));
  EXPECT_THAT(lines[1], HasSubstr("examples.allow \"a number\" is refused"));
}

TEST(Tool, TheStarterLoadsAsItIs) {
  EXPECT_THAT(Mistakes(StarterManifest("my-tool")), IsEmpty());
  EXPECT_EQ(LoadTool(StarterManifest("my-tool"), "f", {}).tool->manifest.tool.name, "my-tool");
}

TEST(Tool, EveryShippedManifestLoads) {
  const char* source = std::getenv("COFFER_SOURCE");
  ASSERT_NE(source, nullptr) << "COFFER_SOURCE must be the checkout";
  for (const char* name :
       {"python", "bash", "shell", "node", "read-file", "write-file", "edit-file", "search-text"}) {
    const auto text = test::ReadFile(std::string(source) + "/tools/" + name + ".toml");
    ASSERT_TRUE(text) << name;
    EXPECT_THAT(Mistakes(*text), IsEmpty()) << name;
    const LoadedTool loaded = LoadTool(*text, name, {});
    ASSERT_TRUE(loaded.tool) << name;
    EXPECT_EQ(loaded.tool->manifest.tool.name, name);
    EXPECT_THAT(loaded.tool->manifest.dangers, IsEmpty());
    EXPECT_FALSE(loaded.tool->manifest.allow_examples.empty()) << name;
    EXPECT_FALSE(loaded.tool->manifest.deny_examples.empty()) << name;
  }
}

}  // namespace
}  // namespace coffer::policy
