// SPDX-License-Identifier: Apache-2.0
#include "policy/schema/schema.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

namespace coffer::policy {
namespace {

Json Parsed(std::string_view text) {
  auto value = ParseJson(text);
  EXPECT_TRUE(value.ok()) << text << ": " << (value.ok() ? "" : value.error().message);
  return value.ok() ? *value : Json();
}

Schema Loaded(const Json& document) {
  auto schema = Schema::Compile(document);
  EXPECT_TRUE(schema.ok()) << document.dump() << ": "
                           << (schema.ok() ? "" : schema.error().message);
  return schema.ok() ? *schema : *Schema::Compile(Json(false));
}

struct Case {
  const char* schema;
  std::vector<const char*> valid;
  std::vector<const char*> invalid;
};

class SchemaKeyword : public testing::TestWithParam<Case> {};

TEST_P(SchemaKeyword, AcceptsAndRefuses) {
  const Schema schema = Loaded(Parsed(GetParam().schema));
  for (const char* text : GetParam().valid) {
    const auto errors = schema.Validate(Parsed(text));
    EXPECT_TRUE(errors.empty()) << GetParam().schema << " should accept " << text << ": "
                                << errors[0].message;
  }
  for (const char* text : GetParam().invalid) {
    EXPECT_FALSE(schema.Validate(Parsed(text)).empty())
        << GetParam().schema << " should refuse " << text;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Values, SchemaKeyword,
    testing::ValuesIn(std::vector<Case>{
        {"true", {"1", "null", "{}"}, {}},
        {"false", {}, {"1", "null", "{}"}},
        {"{}", {"1", "[]"}, {}},
        {R"({"type": "integer"})",
         {"1", "1.0", "-0.0", "1e300", "18446744073709551615"},
         {"1.5", "\"1\"", "null"}},
        {R"({"type": "number"})", {"1", "1.5"}, {"\"1\"", "true"}},
        {R"({"type": ["null", "string"]})", {"null", "\"\""}, {"0", "false", "[]"}},
        {R"({"enum": [1, "a", {"b": 1, "c": [2]}, null]})",
         {"1.0", "\"a\"", R"({"c": [2.0], "b": 1})", "null"},
         {"2", "\"1\"", R"({"b": 1})", "false"}},
        {R"({"const": 0})", {"0", "0.0", "-0.0"}, {"false", "null", "\"\"", "[]"}},
        {R"({"const": [false]})", {"[false]"}, {"[0]", "[[]]", "[]"}},
    }));

INSTANTIATE_TEST_SUITE_P(
    Numbers, SchemaKeyword,
    testing::ValuesIn(std::vector<Case>{
        {R"({"minimum": 1.5})", {"1.5", "2", "\"0\""}, {"1", "1.4999"}},
        {R"({"exclusiveMaximum": 3})", {"2.9999", "2"}, {"3", "3.0", "4"}},
        // Beyond the 53 bits of a double, up to the 64 of an integer.
        {R"({"maximum": 9007199254740992})",
         {"9007199254740992", "9007199254740991"},
         {"9007199254740993"}},
        {R"({"maximum": 18446744073709551614})",
         {"18446744073709551614"},
         {"18446744073709551615", "1e20"}},
        {R"({"minimum": -9223372036854775807})",
         {"-9223372036854775807"},
         {"-9223372036854775808", "-1e19"}},
        {R"({"const": 9007199254740993})",
         {"9007199254740993"},
         {"9007199254740992", "9007199254740992.0"}},
        {R"({"multipleOf": 0.01})", {"19.99", "0.07", "1", "4.35", "1.1e3"}, {"0.001", "19.995"}},
        {R"({"multipleOf": 0.1})", {"0.3", "1e300"}, {"0.30000000000000004", "0.05"}},
        {R"({"multipleOf": 3})",
         {"9", "0", "-6", "9007199254740993"},
         {"1e21", "10", "9007199254740992"}},
        {R"({"multipleOf": 1e-300})", {"1e300", "1", "0.5"}, {"1e-301"}},
        {R"({"multipleOf": 1e300})", {"0", "1e301"}, {"1", "1e299"}},
    }));

INSTANTIATE_TEST_SUITE_P(
    Strings, SchemaKeyword,
    testing::ValuesIn(std::vector<Case>{
        {R"({"maxLength": 2})", {R"("𝄞𝄞")", R"("éé")", "[1,2,3]"}, {R"("abc")", R"("𝄞𝄞𝄞")"}},
        {R"({"minLength": 2.0})", {R"("𝄞𝄞")"}, {R"("𝄞")", "\"\""}},
        {R"({"pattern": "b+"})", {R"("abc")", "1"}, {R"("ac")", "\"\""}},
        {R"({"pattern": "^\\S+$"})", {R"("ab")"}, {R"("a\u00a0b")", R"("a\u2028b")", R"("a\n")"}},
        {R"({"format": "ipv4"})", {R"("1.2.3.4")", "7"}, {R"("1.2.3.4.5")", R"("01.2.3.4")"}},
    }));

INSTANTIATE_TEST_SUITE_P(
    Arrays, SchemaKeyword,
    testing::ValuesIn(std::vector<Case>{
        {R"({"prefixItems": [{"type": "string"}], "items": {"type": "integer"}})",
         {"[]", R"(["a"])", R"(["a", 1])", "{}"},
         {"[1]", R"(["a", "b"])"}},
        {R"({"minItems": 1, "maxItems": 2})", {"[1]", "[1,2]"}, {"[]", "[1,2,3]"}},
        {R"({"uniqueItems": true})",
         {"[]", "[1, true, \"1\", [1]]", "[0, false]", R"([{"a": 1}, {"a": 2}])"},
         {"[1, 1.0]", R"([{"a": 1, "b": 2}, {"b": 2, "a": 1}])", "[[], []]"}},
        {R"({"uniqueItems": false})", {"[1, 1]"}, {}},
        {R"({"contains": {"minimum": 5}})", {"[1, 5]"}, {"[]", "[1]"}},
        {R"({"contains": {"minimum": 5}, "minContains": 0})", {"[]", "[1]"}, {}},
        {R"({"contains": {"minimum": 5}, "minContains": 2, "maxContains": 3})",
         {"[5, 6]", "[5, 1, 6, 7]"},
         {"[5]", "[5, 6, 7, 8]"}},
        {R"({"prefixItems": [{"type": "string"}], "contains": {"const": 1}})",
         {R"(["a", 1])"},
         {"[]", R"(["a"])"}},
    }));

INSTANTIATE_TEST_SUITE_P(
    Objects, SchemaKeyword,
    testing::ValuesIn(std::vector<Case>{
        {R"({"properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": false})",
         {R"({"a": ""})", "[]"},
         {"{}", R"({"a": 1})", R"({"a": "", "b": 1})"}},
        {R"({"required": [""]})", {R"({"": 1})"}, {"{}"}},
        {R"({"patternProperties": {"^x": {"type": "integer"}}, "additionalProperties": {"type": "string"}})",
         {R"({"x1": 1, "a": ""})"},
         {R"({"x1": ""})", R"({"a": 1})"}},
        {R"({"propertyNames": {"maxLength": 2}})", {R"({"é𝄞": 1})"}, {R"({"abc": 1})"}},
        {R"({"minProperties": 1, "maxProperties": 2})",
         {R"({"a": 1})"},
         {"{}", R"({"a": 1, "b": 2, "c": 3})"}},
        {R"({"dependentRequired": {"a": ["b"]}})",
         {"{}", R"({"b": 1})", R"({"a": 1, "b": 1})"},
         {R"({"a": 1})"}},
        {R"({"dependentSchemas": {"a": {"required": ["b"]}}})",
         {"{}", R"({"a": 1, "b": 1})"},
         {R"({"a": 1})"}},
    }));

INSTANTIATE_TEST_SUITE_P(
    Combinations, SchemaKeyword,
    testing::ValuesIn(std::vector<Case>{
        {R"({"allOf": [{"minimum": 1}, {"maximum": 3}]})", {"2"}, {"0", "4"}},
        {R"({"anyOf": [{"maximum": 1}, {"minimum": 3}]})", {"1", "3"}, {"2"}},
        {R"({"oneOf": [{"maximum": 3}, {"minimum": 1}]})", {"0", "4"}, {"2"}},
        {R"({"not": {"type": "string"}})", {"1"}, {"\"\""}},
        {R"({"if": {"minimum": 10}, "then": {"multipleOf": 10}, "else": {"multipleOf": 3}})",
         {"20", "9"},
         {"15", "10.5", "5"}},
        {R"({"if": {"minimum": 10}, "then": false})", {"9"}, {"10"}},
    }));

INSTANTIATE_TEST_SUITE_P(
    References, SchemaKeyword,
    testing::ValuesIn(std::vector<Case>{
        {R"({"$defs": {"a/b~c d": {"type": "string"}}, "$ref": "#/$defs/a~1b~0c%20d", "maxLength": 1})",
         {"\"a\""},
         {"1", "\"ab\""}},
        {R"({"$defs": {"x": {"$anchor": "here", "type": "string"}}, "items": {"$ref": "#here"}})",
         {"[\"\"]"},
         {"[1]"}},
        {R"({"type": "object", "properties": {"next": {"$ref": "#"}}, "additionalProperties": false})",
         {R"({"next": {"next": {}}})"},
         {R"({"next": {"x": 1}})", R"({"next": 1})"}},
        {R"({"properties": {"a": {"type": "string"}, "b": {"$ref": "#/properties/a"}}})",
         {R"({"b": ""})"},
         {R"({"b": 1})"}},
        {R"({"propertyNames": {"$ref": "#"}, "maxLength": 2})",
         {R"({"ab": 1})"},
         {R"({"abc": 1})"}},
    }));

// Cases of the standard (2020-12, core 11.2 and 11.3), several of which ajv answers differently.
INSTANTIATE_TEST_SUITE_P(
    Unevaluated, SchemaKeyword,
    testing::ValuesIn(std::vector<Case>{
        {R"({"allOf": [{"properties": {"a": true}}], "unevaluatedProperties": false})",
         {R"({"a": 1})", "{}", "1"},
         {R"({"b": 1})"}},
        {R"({"$ref": "#/$defs/x", "$defs": {"x": {"properties": {"a": true}}}, "unevaluatedProperties": {"type": "string"}})",
         {R"({"a": 1, "b": ""})"},
         {R"({"b": 1})"}},
        {R"({"anyOf": [{"properties": {"a": {"const": 1}}, "required": ["a"]}, {"properties": {"b": true}, "required": ["b"]}], "unevaluatedProperties": false})",
         {R"({"a": 1})", R"({"b": 1})", R"({"a": 1, "b": 2})"},
         {R"({"a": 2, "b": 2})", "{}"}},
        {R"({"oneOf": [{"required": ["a"], "properties": {"a": true}}, {"required": ["b"], "properties": {"b": true}}], "unevaluatedProperties": false})",
         {R"({"a": 1})"},
         {R"({"a": 1, "c": 1})", R"({"a": 1, "b": 1})"}},
        {R"({"if": {"properties": {"a": {"const": 1}}, "required": ["a"]}, "then": {"properties": {"b": true}}, "else": {"properties": {"c": true}}, "unevaluatedProperties": false})",
         {R"({"a": 1, "b": 1})", R"({"c": 1})"},
         {R"({"a": 2, "c": 1})", R"({"a": 1, "c": 1})"}},
        {R"({"if": {"properties": {"a": true}}, "unevaluatedProperties": false})",
         {R"({"a": 1})"},
         {R"({"b": 1})"}},
        {R"({"not": {"not": {"properties": {"a": true}}}, "unevaluatedProperties": false})",
         {"{}"},
         {R"({"a": 1})"}},
        {R"({"dependentSchemas": {"a": {"properties": {"b": true}}}, "properties": {"a": true}, "unevaluatedProperties": false})",
         {R"({"a": 1, "b": 1})"},
         {R"({"b": 1})"}},
        {R"({"allOf": [{"unevaluatedProperties": true}], "unevaluatedProperties": false})",
         {R"({"a": 1})"},
         {}},
        {R"({"allOf": [{"properties": {"a": true}, "unevaluatedProperties": false}], "properties": {"b": true}})",
         {R"({"a": 1})"},
         {R"({"b": 1})"}},
        {R"({"properties": {"x": {"unevaluatedProperties": false, "properties": {"a": true}}}, "additionalProperties": true})",
         {R"({"x": {"a": 1}, "y": {"b": 1}})"},
         {R"({"x": {"b": 1}})"}},
        {R"({"prefixItems": [true], "unevaluatedItems": false})", {"[1]", "[]"}, {"[1, 2]"}},
        {R"({"allOf": [{"prefixItems": [true]}], "unevaluatedItems": {"type": "string"}})",
         {"[1, \"a\"]"},
         {"[1, 2]"}},
        {R"({"items": true, "unevaluatedItems": false})", {"[1, 2]"}, {}},
        {R"({"contains": {"const": 1}, "unevaluatedItems": false})",
         {"[1]", "[1, 1]"},
         {"[1, 2]", "[2]"}},
        {R"({"contains": {"const": 1}, "minContains": 0, "unevaluatedItems": {"const": 2}})",
         {"[1, 2]", "[2]", "[]"},
         {"[1, 3]"}},
        {R"({"anyOf": [{"prefixItems": [{"const": 1}]}, {"prefixItems": [true, {"const": 2}]}], "unevaluatedItems": false})",
         {"[1]", "[1, 2]", "[3, 2]"},
         {"[1, 3]"}},
        {R"({"if": {"const": 1}, "then": {"prefixItems": [true]}, "else": true, "unevaluatedItems": false})",
         {"[]"},
         {"[1]"}},
    }));

TEST(SchemaValidate, SaysWhereAndWhat) {
  const Schema schema = Loaded(Parsed(R"({
    "type": "object", "required": ["code"], "additionalProperties": false,
    "properties": {"code": {"type": "string", "maxLength": 3}, "a/b": {"items": {"minimum": 2}}}})"));
  const auto errors = schema.Validate(Parsed(R"({"a/b": [2, 1], "x~y": 1, "code": "secret"})"));
  ASSERT_EQ(errors.size(), 3U);
  EXPECT_EQ(errors[0].instance, "/a~1b/1");
  EXPECT_EQ(errors[0].schema, "/properties/a~1b/items/minimum");
  EXPECT_EQ(errors[0].message, "must be at least 2");
  EXPECT_EQ(errors[1].instance, "/x~0y");
  EXPECT_EQ(errors[1].schema, "/additionalProperties");
  EXPECT_EQ(errors[1].message, "is not allowed here; the members are a/b, code");
  EXPECT_EQ(errors[2].instance, "/code");
  EXPECT_EQ(errors[2].schema, "/properties/code/maxLength");
  EXPECT_EQ(errors[2].message, "must have at most 3 characters, not 6");
  // The value itself is never repeated: it may be a secret.
  for (const SchemaError& error : errors) {
    EXPECT_EQ(error.message.find("secret"), std::string::npos);
  }
}

TEST(SchemaValidate, ExplainsTheAlternativeThatCameClosest) {
  const Schema schema = Loaded(Parsed(R"({"anyOf": [{"type": "string"},
    {"type": "object", "properties": {"n": {"type": "integer"}}}]})"));
  const auto errors = schema.Validate(Parsed(R"({"n": "x"})"));
  ASSERT_EQ(errors.size(), 2U);
  EXPECT_EQ(errors[0].schema, "/anyOf");
  EXPECT_EQ(errors[1].instance, "/n");
  EXPECT_EQ(errors[1].message, "must be an integer, not a string");
}

TEST(SchemaValidate, ReportsABoundedNumberOfErrors) {
  Json many = Json::array();
  for (int i = 0; i < 1000; ++i) {
    many.push_back("x");
  }
  EXPECT_EQ(Loaded(Parsed(R"({"items": {"type": "integer"}})")).Validate(many).size(),
            kMaxSchemaErrors);
}

TEST(SchemaValidate, CutsALongPointerBetweenCharacters) {
  std::string name(510, 'a');
  for (int i = 0; i < 400; ++i) {
    name += "é";
  }
  const auto errors =
      Loaded(Parsed(R"({"additionalProperties": false})")).Validate(Json{{name, 1}});
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_EQ(errors[0].instance, "/" + std::string(510, 'a') + "...");
}

TEST(SchemaValidate, RefusesWhatIsNoJson) {
  const Schema schema = Loaded(Json(true));
  EXPECT_EQ(schema.Validate(Json("\xff")).at(0).message, "holds text that is not UTF-8");
  EXPECT_EQ(schema.Validate(Json{{"\xed\xa0\x80", 1}}).size(), 1U);
  EXPECT_EQ(schema.Validate(Json(std::numeric_limits<double>::infinity())).size(), 1U);
  EXPECT_EQ(schema.Validate(Json(std::numeric_limits<double>::quiet_NaN())).size(), 1U);
  EXPECT_EQ(schema.Validate(Json::binary({1, 2})).size(), 1U);
  EXPECT_EQ(schema.Validate(Json(Json::value_t::discarded)).size(), 1U);
}

Json Nested(int depth) {
  Json value = 1;
  for (int i = 0; i < depth; ++i) {
    value = Json::array({std::move(value)});
  }
  return value;
}

TEST(SchemaValidate, BoundsTheValue) {
  const Schema schema = Loaded(Json(true));
  EXPECT_TRUE(schema.Validate(Nested(kMaxSchemaDepth)).empty());
  EXPECT_EQ(schema.Validate(Nested(kMaxSchemaDepth + 1)).at(0).message, "is nested too deeply");
  EXPECT_TRUE(schema.Validate(Json(std::vector<int>(kMaxInstanceValues - 1, 1))).empty());
  EXPECT_EQ(schema.Validate(Json(std::vector<int>(kMaxInstanceValues, 1))).at(0).message,
            "holds too many values");
  EXPECT_TRUE(schema.Validate(Json(std::string(kMaxInstanceBytes, 'a'))).empty());
  EXPECT_EQ(schema.Validate(Json(std::string(kMaxInstanceBytes + 1, 'a'))).at(0).message,
            "holds too much text");
}

// Each level tries the next one twice: 2^40 ways through a value of 41 levels.
TEST(SchemaValidate, EndsWhenTheWorkWouldBeExponential) {
  Json schema = Parsed(
      R"({"$defs": {"x": {"items": {"anyOf": [{"allOf": [{"$ref": "#/$defs/x"}, {"minItems": 2}]},
    {"allOf": [{"$ref": "#/$defs/x"}, {"minItems": 2}]}]}}}, "$ref": "#/$defs/x"})");
  const auto errors = Loaded(schema).Validate(Nested(41));
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_EQ(errors[0].message,
            "takes too much work to check: make it smaller, or simplify the schema");
  // Out of work is invalid, also inside `not`.
  EXPECT_EQ(Loaded(Json{{"not", {{"$ref", "#/$defs/x"}}}, {"$defs", schema["$defs"]}})
                .Validate(Nested(41))
                .size(),
            1U);
}

TEST(SchemaValidate, EndsWhenAChainOfReferencesIsTooLong) {
  Json schema = {{"$ref", "#/$defs/d0"}};
  for (int i = 0; i < kMaxSchemaFrames; ++i) {
    schema["$defs"]["d" + std::to_string(i)] = {{"$ref", "#/$defs/d" + std::to_string(i + 1)}};
  }
  schema["$defs"]["d" + std::to_string(kMaxSchemaFrames)] = Json::object();
  EXPECT_EQ(Loaded(schema).Validate(Json(1)).size(), 1U);
  schema["$ref"] = "#/$defs/d10";
  EXPECT_TRUE(Loaded(schema).Validate(Json(1)).empty());
}

TEST(SchemaValidate, AHostilePatternTakesNoMoreThanItsShare) {
  const Schema schema = Loaded(Parsed(R"({"pattern": "^(?:(?:a|a)*)*b(?:[ab]{30}|a{20}){9}$"})"));
  EXPECT_FALSE(schema.Validate(Json(std::string(100'000, 'a'))).empty());
  EXPECT_FALSE(schema.Validate(Json(std::string(kMaxInstanceBytes, 'a'))).empty());
}

TEST(SchemaValidate, LargeOrdinaryValuesPass) {
  const Schema schema =
      Loaded(Parsed(R"({"items": {"type": "object", "required": ["id"], "properties":
    {"id": {"type": "integer"}, "name": {"type": "string", "maxLength": 40, "pattern": "^[a-z ]+$"}}}})"));
  Json many = Json::array();
  for (int i = 0; i < 50'000; ++i) {
    many.push_back({{"id", i}, {"name", "some ordinary name"}});
  }
  EXPECT_TRUE(schema.Validate(many).empty());
}

TEST(SchemaValidate, OneSchemaServesSeveralThreads) {
  const Schema schema = Loaded(Parsed(R"({"pattern": "^[a-z]+[0-9]{1,20}$"})"));
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        wrong[t] += schema.Validate(Json("abc" + std::to_string(i))).empty() ? 0 : 1;
        wrong[t] += schema.Validate(Json(std::to_string(i) + "abc")).empty() ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

}  // namespace
}  // namespace coffer::policy
