// SPDX-License-Identifier: Apache-2.0
//
// What a schema is refused for, where the error points, and what it says.
#include "policy/schema/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace coffer::policy {
namespace {

using testing::HasSubstr;

std::vector<SchemaProblem> ProblemsOf(const Json& document) {
  std::vector<SchemaProblem> problems;
  const auto schema = Schema::Compile(document, &problems);
  EXPECT_EQ(schema.ok(), problems.empty());
  return problems;
}

struct Refusal {
  const char* schema;
  const char* at;
  const char* message;  // a part of it
};

class SchemaRefusal : public testing::TestWithParam<Refusal> {};

TEST_P(SchemaRefusal, PointsAtThePlace) {
  const auto document = ParseJson(GetParam().schema);
  ASSERT_TRUE(document.ok()) << GetParam().schema;
  const auto problems = ProblemsOf(*document);
  ASSERT_EQ(problems.size(), 1U) << GetParam().schema;
  EXPECT_EQ(problems[0].at, GetParam().at) << GetParam().schema;
  EXPECT_THAT(problems[0].message, HasSubstr(GetParam().message)) << GetParam().schema;
}

INSTANTIATE_TEST_SUITE_P(
    Keywords, SchemaRefusal,
    testing::ValuesIn(std::vector<Refusal>{
        {R"({"properties": {"a/b": {"maxLenght": 3}}})", "/properties/a~1b/maxLenght",
         "\"maxLenght\" is unknown"},
        {R"({"$defs": {"unused": {"x-note": 1}}})", "/$defs/unused/x-note", "unknown"},
        {R"({"definitions": {}})", "/definitions", "not implemented"},
        {R"({"$id": "http://example.com/"})", "/$id", "not implemented"},
        {R"({"$dynamicRef": "#a"})", "/$dynamicRef", "not implemented"},
        {R"({"$vocabulary": {}})", "/$vocabulary", "not implemented"},
        {R"({"contentEncoding": "base64"})", "/contentEncoding", "not implemented"},
        {R"({"$schema": "http://json-schema.org/draft-07/schema#"})", "/$schema",
         "not JSON Schema 2020-12"},
        {R"({"items": {"$schema": "https://json-schema.org/draft/2020-12/schema"}})",
         "/items/$schema", "top"},
        {R"({"then": true})", "/then", "no effect without \"if\""},
        {R"({"else": true})", "/else", "no effect without \"if\""},
        {R"({"minContains": 1})", "/minContains", "no effect without \"contains\""},
        {R"({"maxContains": 1})", "/maxContains", "no effect without \"contains\""},
    }));

INSTANTIATE_TEST_SUITE_P(
    Values, SchemaRefusal,
    testing::ValuesIn(std::vector<Refusal>{
        {"3", "", "an object, true or false"},
        {R"({"not": null})", "/not", "an object, true or false"},
        {R"({"type": "text"})", "/type", "\"text\" is not a type"},
        {R"({"type": []})", "/type", "no type"},
        {R"({"type": ["string", "string"]})", "/type", "twice"},
        {R"({"type": 1})", "/type", "list of strings"},
        {R"({"enum": []})", "/enum", "one at least"},
        {R"({"multipleOf": 0})", "/multipleOf", "above 0"},
        {R"({"multipleOf": "1"})", "/multipleOf", "a number"},
        {R"({"minimum": null})", "/minimum", "a number"},
        {R"({"maxLength": -1})", "/maxLength", "whole number"},
        {R"({"maxLength": 1.5})", "/maxLength", "whole number"},
        {R"({"maxItems": "1"})", "/maxItems", "whole number"},
        {R"({"uniqueItems": 1})", "/uniqueItems", "true or false"},
        {R"({"required": "a"})", "/required", "list of strings"},
        {R"({"required": ["a", "a"]})", "/required", "twice"},
        {R"({"dependentRequired": {"a": [1]}})", "/dependentRequired/a", "list of strings"},
        {R"({"properties": []})", "/properties", "an object"},
        {R"({"items": [true]})", "/items", "not a list"},
        {R"({"allOf": []})", "/allOf", "one at least"},
        {R"({"prefixItems": {}})", "/prefixItems", "one at least"},
        {R"({"anyOf": [true, 1]})", "/anyOf/1", "an object, true or false"},
        {R"({"title": 1})", "/title", "a string"},
        {R"({"examples": 1})", "/examples", "a list"},
        {R"({"format": "regex"})", "/format", "not implemented"},
        {R"j({"pattern": "(?=a)"})j", "/pattern", "at character 3 of the pattern: lookahead"},
        {R"({"patternProperties": {"a/(": true}})", "/patternProperties/a~1(", "not closed"},
    }));

INSTANTIATE_TEST_SUITE_P(
    References, SchemaRefusal,
    testing::ValuesIn(std::vector<Refusal>{
        {R"({"items": {"$ref": "http://example.com/s.json"}})", "/items/$ref",
         "nothing is fetched"},
        {R"({"$ref": "other.json"})", "/$ref", "nothing is fetched"},
        {R"({"$ref": "#/$defs/x"})", "/$ref", "names no schema"},
        {R"({"$ref": "#x"})", "/$ref", "names no schema"},
        {R"({"$ref": "#/enum/0", "enum": [{}]})", "/$ref", "names no schema"},
        {R"({"$ref": "#/%zz"})", "/$ref", "names no schema"},
        {R"({"$ref": 1})", "/$ref", "a string"},
        {R"({"$anchor": "1a"})", "/$anchor", "plain name"},
        {R"({"$anchor": "a", "items": {"$anchor": "a"}})", "/items/$anchor", "twice"},
        {R"({"$ref": "#"})", "", "never ends"},
        {R"({"allOf": [{"anyOf": [{"$ref": "#"}]}]})", "/allOf/0/anyOf/0", "never ends"},
        {R"({"not": {"$ref": "#"}})", "/not", "never ends"},
        {R"({"if": {"$ref": "#"}, "then": true})", "/if", "never ends"},
        {R"({"dependentSchemas": {"a": {"$ref": "#"}}})", "/dependentSchemas/a", "never ends"},
        {R"({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"oneOf": [{"$ref": "#/$defs/a"}]}}})",
         "/$defs/b/oneOf/0", "never ends"},
    }));

TEST(SchemaLoader, TellsAllProblemsAtOnce) {
  const auto document =
      ParseJson(R"({"type": "objekt", "properties": {"a": {"pattern": "\\1"}, "b": {"$ref": "x"}},
    "requierd": ["a"]})");
  const auto problems = ProblemsOf(*document);
  ASSERT_EQ(problems.size(), 4U);
  EXPECT_EQ(problems[0].at, "/type");
  EXPECT_EQ(problems[1].at, "/properties/a/pattern");
  EXPECT_EQ(problems[2].at, "/requierd");
  EXPECT_EQ(problems[3].at, "/properties/b/$ref");
  const auto schema = Schema::Compile(*document);
  ASSERT_FALSE(schema.ok());
  EXPECT_EQ(schema.error().code, "schema.load");
  EXPECT_EQ(schema.error().kind, ErrorKind::kRefused);
  EXPECT_EQ(schema.error().message, "schema, at \"/type\": \"objekt\" is not a type (and 3 more)");
  EXPECT_THAT(schema.error().hint, HasSubstr("object"));
}

TEST(SchemaLoader, BoundsTheProblemsItTells) {
  Json schema = Json::object();
  for (int i = 0; i < 200; ++i) {
    schema["x" + std::to_string(i)] = 1;
  }
  EXPECT_EQ(ProblemsOf(schema).size(), kMaxSchemaProblems);
}

TEST(SchemaLoader, AcceptsAnnotationsAndTheDialect) {
  const auto document =
      ParseJson(R"({"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "t",
    "description": "d", "default": 1, "examples": [1], "deprecated": true, "readOnly": false, "writeOnly": false,
    "$comment": "c", "$defs": {}})");
  EXPECT_TRUE(Schema::Compile(*document).ok());
}

TEST(SchemaLoader, BoundsTheSchema) {
  Json deep = true;
  for (int i = 0; i < kMaxSchemaDepth; ++i) {
    deep = Json{{"not", std::move(deep)}};
  }
  EXPECT_TRUE(ProblemsOf(deep).empty());
  EXPECT_THAT(ProblemsOf(Json{{"not", deep}}).at(0).message, HasSubstr("too deeply"));

  EXPECT_THAT(ProblemsOf(Json{{"enum", std::vector<int>(kMaxSchemaValues, 1)}}).at(0).message,
              HasSubstr("too many values"));
  EXPECT_THAT(ProblemsOf(Json{{"title", std::string(kMaxSchemaBytes, 'a')}}).at(0).message,
              HasSubstr("too much text"));
  EXPECT_THAT(ProblemsOf(Json{{"title", "\xff"}}).at(0).message, HasSubstr("not UTF-8"));

  Json patterns = Json::object();
  for (size_t i = 0; i <= kMaxSchemaPatterns; ++i) {
    patterns[std::to_string(i)] = true;
  }
  EXPECT_THAT(ProblemsOf(Json{{"patternProperties", patterns}}).at(0).message,
              HasSubstr("more than 200 patterns"));
}

TEST(SchemaLoader, ALongChainOfReferencesDoesNotExhaustTheStack) {
  Json schema = {{"$ref", "#/$defs/d0"}};
  for (int i = 0; i < 3000; ++i) {
    schema["$defs"]["d" + std::to_string(i)] = {{"$ref", "#/$defs/d" + std::to_string(i + 1)}};
  }
  schema["$defs"]["d3000"] = true;
  EXPECT_TRUE(ProblemsOf(schema).empty());
}

TEST(SchemaLoader, HostileNamesAreSafeToPrint) {
  const auto problems = ProblemsOf(Json{{"\x1b[31m\n", 1}});
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0].message.find('\x1b'), std::string::npos);
  EXPECT_EQ(problems[0].message.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace coffer::policy
