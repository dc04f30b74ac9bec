// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/route.h"

#include <gtest/gtest.h>

#include <set>
#include <type_traits>

namespace coffer::gateway {
namespace {

// A route that does not say who may use it does not compile.
static_assert(!std::is_default_constructible_v<RouteAccess>);
static_assert(!std::is_default_constructible_v<Route>);
static_assert(RouteAccess::Public().is_public() && !RouteAccess::Public().Allows(Role::kOperator));
static_assert(!RouteAccess::Of(Role::kAgent).is_public());
static_assert(RouteAccess::Of(Role::kAgent, Role::kAuditor).Allows(Role::kAuditor));
static_assert(!RouteAccess::Of(Role::kAgent, Role::kAuditor).Allows(Role::kOperator));

TEST(Route, OnlyTheProbesAndTheDocumentArePublic) {
  std::set<std::string_view> open;
  for (const Route& route : Routes()) {
    if (route.access.is_public()) {
      open.insert(route.path);
      EXPECT_EQ(route.method, Method::kGet);
    }
  }
  EXPECT_EQ(open, (std::set<std::string_view>{"/healthz", "/readyz", "/openapi.json",
                                              "/.well-known/oauth-protected-resource",
                                              "/.well-known/oauth-protected-resource/mcp"}));
}

// Who may do what, in full: a change here is a change of the security model.
TEST(Route, RolesAsATable) {
  std::set<std::string> table;
  for (const Route& route : Routes()) {
    table.insert(std::string(MethodName(route.method)) + " " + std::string(route.path) + ": " +
                 route.access.Names());
  }
  const std::string all = "agent, approver, operator, auditor";
  const std::set<std::string> expected = {
      "GET /healthz: ",
      "GET /readyz: ",
      "GET /openapi.json: ",
      "GET /metrics: operator, auditor",
      "POST /mcp: agent, operator",
      "DELETE /mcp: agent, operator",
      "GET /.well-known/oauth-protected-resource: ",
      "GET /.well-known/oauth-protected-resource/mcp: ",
      "POST /v1/calls: " + all,  // calls of approvers and auditors are denied and recorded
      "GET /v1/calls: " + all,
      "GET /v1/calls/{call_id}: " + all,
      "GET /v1/calls/{call_id}/events: " + all,
      "POST /v1/calls/{call_id}/cancel: agent, operator",
      "GET /v1/calls/{call_id}/receipt: " + all,
      "GET /v1/calls/{call_id}/transcript: " + all,
      "GET /v1/calls/{call_id}/files: agent, operator",
      "GET /v1/calls/{call_id}/files/{path*}: agent, operator",
      "POST /v1/sessions: agent, operator",
      "GET /v1/sessions: " + all,
      "GET /v1/sessions/{session_id}: " + all,
      "DELETE /v1/sessions/{session_id}: agent, operator",
      "POST /v1/sessions/{session_id}/extend: agent, operator",
      "POST /v1/sessions/{session_id}/processes: agent, operator",
      "GET /v1/sessions/{session_id}/processes: " + all,
      "GET /v1/sessions/{session_id}/processes/{process_id}: " + all,
      "GET /v1/sessions/{session_id}/processes/{process_id}/log: " + all,
      "POST /v1/sessions/{session_id}/processes/{process_id}/signal: agent, operator",
      "DELETE /v1/sessions/{session_id}/processes/{process_id}: agent, operator",
      "GET /v1/sessions/{session_id}/files: agent, operator",
      "GET /v1/sessions/{session_id}/files/{path*}: agent, operator",
      "PUT /v1/sessions/{session_id}/files/{path*}: agent, operator",
      "DELETE /v1/sessions/{session_id}/files/{path*}: agent, operator",
      "GET /v1/tools: " + all,
      "GET /v1/tools/{tool}: " + all,
      "POST /v1/keys: operator",
      "GET /v1/keys: operator, auditor",
      "DELETE /v1/keys/{key_id}: operator",
      "GET /v1/audit: operator, auditor",
      "GET /v1/access: operator, auditor",
      "POST /v1/access/{access_id}: operator",
      "GET /v1/audit/checkpoint: " + all,
      "GET /v1/audit/objects/{hash}: operator, auditor",
      "GET /v1/switches: operator, auditor",
      "PUT /v1/switches/{scope}/{name}: operator",
      "DELETE /v1/switches/{scope}/{name}: operator",
  };
  EXPECT_EQ(table, expected);
  EXPECT_EQ(table.size(), Routes().size());
}

// Every placeholder of the table is of a kind that CheckValues knows; an unknown kind accepts nothing.
TEST(Route, EveryPlaceholderHasAnAlphabet) {
  const std::set<std::string_view> known = {"call_id", "session_id", "process_id", "tool", "scope",
                                            "name",    "key_id",     "access_id",  "path", "hash"};
  for (const Route& route : Routes()) {
    std::string_view rest = route.path;
    for (size_t open = rest.find('{'); open != std::string_view::npos; open = rest.find('{')) {
      const size_t close = rest.find('}');
      std::string_view name = rest.substr(open + 1, close - open - 1);
      if (name.ends_with('*')) {
        name.remove_suffix(1);
      }
      EXPECT_EQ(known.count(name), 1U) << name;
      rest.remove_prefix(close + 1);
    }
  }
  EXPECT_FALSE(CheckValues({{"surprise", "a"}}).ok());
}

std::string Find(Method method, std::string_view path) {
  const Match match = FindRoute(Routes(), method, path);
  if (match.route == nullptr) {
    return match.allow.empty() ? "none" : "allow " + match.allow;
  }
  std::string text(match.route->path);
  for (const auto& [name, value] : match.raw) {
    text += " " + std::string(name) + "=" + value;
  }
  return text;
}

TEST(Route, Matching) {
  EXPECT_EQ(Find(Method::kGet, "/healthz"), "/healthz");
  EXPECT_EQ(Find(Method::kHead, "/healthz"), "/healthz");
  EXPECT_EQ(Find(Method::kGet, "/v1/calls/x"), "/v1/calls/{call_id} call_id=x");
  EXPECT_EQ(Find(Method::kGet, "/v1/calls/x/files/a/b%20c"),
            "/v1/calls/{call_id}/files/{path*} call_id=x path=a/b%20c");
  EXPECT_EQ(Find(Method::kPut, "/v1/switches/tool/python"),
            "/v1/switches/{scope}/{name} scope=tool name=python");
  for (const char* path :
       {"", "/", "//", "healthz", "/healthz/", "/Healthz", "/v1", "/v1/calls/x/", "/v1/calls/x/y",
        "/v1/calls//events", "/v1/calls/x/events/", "/v1//calls", "/%68ealthz"}) {
    const std::string found = Find(Method::kGet, path);
    EXPECT_TRUE(found == "none" || found.find("call_id=") != std::string::npos)
        << path << " " << found;
  }
  EXPECT_EQ(Find(Method::kGet, "/healthz/"), "none");
  EXPECT_EQ(Find(Method::kGet, "/v1/calls/x/"), "none");
}

TEST(Route, AnotherMethodIsToldWhatThereIs) {
  EXPECT_EQ(Find(Method::kPut, "/v1/calls"), "allow POST, GET, HEAD");
  EXPECT_EQ(Find(Method::kOther, "/healthz"), "allow GET, HEAD");
  EXPECT_EQ(Find(Method::kDelete, "/v1/sessions"), "allow POST, GET, HEAD");
  EXPECT_EQ(Find(Method::kPost, "/v1/sessions/x/files/y"), "allow GET, HEAD, PUT, DELETE");
}

TEST(Route, Query) {
  const auto values = ParseQuery("limit=5&cursor=a%2Db", "limit,cursor");
  ASSERT_TRUE(values.ok());
  EXPECT_EQ(values.value()[0].second, "5");
  EXPECT_EQ(values.value()[1].second, "a-b");
  EXPECT_TRUE(ParseQuery("", "").ok());
  const Refusal unknown = ParseQuery("limt=5", "limit,cursor").refusal();
  EXPECT_EQ(unknown.message, "this path takes no query parameter limt");
  EXPECT_EQ(unknown.hint, "did you mean limit?");
  EXPECT_EQ(ParseQuery("zzzzzz=5", "limit,cursor").refusal().hint, "it takes limit, cursor");
  for (const char* wrong : {"x=1", "limit", "limit=1&limit=2", "=1", "limit=%ff", "limit=%00",
                            "lim=1", "&", "limit=1&&"}) {
    EXPECT_FALSE(ParseQuery(wrong, "limit,cursor").ok()) << wrong;
  }
}

}  // namespace
}  // namespace coffer::gateway
