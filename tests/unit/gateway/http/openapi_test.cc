// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/openapi.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "gateway/http/route.h"

namespace coffer::gateway {
namespace {

using nlohmann::json;

json Document() { return json::parse(OpenApiDocument()); }

std::string PathOf(const Route& route) {
  std::string path(route.path);
  if (const size_t star = path.find('*'); star != std::string::npos) {
    path.erase(star, 1);
  }
  return path;
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  }
  return lower;
}

TEST(OpenApi, HasEveryRouteAndNothingElse) {
  std::set<std::string> routes;
  for (const Route& route : Routes()) {
    routes.insert(Lower(MethodName(route.method)) + " " + PathOf(route));
  }
  std::set<std::string> documented;
  const json document = Document();
  for (const auto& [path, item] : document["paths"].items()) {
    for (const auto& [method, operation] : item.items()) {
      if (method != "parameters") {
        documented.insert(method + " " + path);
      }
    }
  }
  EXPECT_EQ(documented, routes);
}

TEST(OpenApi, SaysWhoMayUseARoute) {
  const json document = Document();
  for (const Route& route : Routes()) {
    const json& operation = document["paths"][PathOf(route)][Lower(MethodName(route.method))];
    if (route.access.is_public()) {
      EXPECT_EQ(operation["security"], json::array()) << route.path;
    } else {
      EXPECT_FALSE(operation.contains("security")) << route.path;
      EXPECT_NE(
          operation["description"].get<std::string>().find("Roles: " + route.access.Names() + "."),
          std::string::npos)
          << route.path;
    }
  }
}

TEST(OpenApi, SaysWhichRoutesTakeABodyAndWhichParameters) {
  const json document = Document();
  const auto resolve = [&](const json& one) {
    return one.contains("$ref")
               ? document[json::json_pointer(one["$ref"].get<std::string>().substr(1))]
               : one;
  };
  for (const Route& route : Routes()) {
    const json& item = document["paths"][PathOf(route)];
    const json& operation = item[Lower(MethodName(route.method))];
    EXPECT_EQ(operation.contains("requestBody"), route.body != BodyKind::kNone) << route.path;
    std::set<std::string> in_path;
    std::set<std::string> in_query;
    for (const json* holder : {&item, &operation}) {
      for (const json& one : holder->value("parameters", json::array())) {
        const json parameter = resolve(one);
        if (parameter["in"] != "header") {
          (parameter["in"] == "path" ? in_path : in_query)
              .insert(parameter["name"].get<std::string>());
        }
      }
    }
    std::set<std::string> query;
    std::string_view rest = route.query;
    while (!rest.empty()) {
      query.insert(std::string(rest.substr(0, rest.find(','))));
      rest = rest.find(',') == std::string_view::npos ? std::string_view{}
                                                      : rest.substr(rest.find(',') + 1);
    }
    EXPECT_EQ(in_query, query) << route.path;
    for (const std::string& name : in_path) {
      EXPECT_NE(PathOf(route).find("{" + name + "}"), std::string::npos) << route.path;
    }
  }
}

}  // namespace
}  // namespace coffer::gateway
