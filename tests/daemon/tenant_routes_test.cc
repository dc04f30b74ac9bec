// SPDX-License-Identifier: Apache-2.0
//
// Two tenants on every route there is, and on everything they share below: what one tenant does, has or is called never
// shows in an answer to the other, and nothing the other does changes it.
//
// The table is checked against the daemon's own description of its API, so that a route that is added without a line here
// fails. tenants_test.cc has the stories behind the lines.
#include <gtest/gtest.h>

#include <set>

#include "tests/daemon/daemon.h"

namespace coffer::test {
namespace {

enum class Kept {
  kPublic,    // nothing of any tenant is in it
  kNotFound,  // by id: another's is like nobody's
  kOwn,       // lists or makes what is the caller's own
};

struct TenantRoute {
  const char* method;
  const char* path;  // as the API's description writes it
  Kept kept;
  const char* body = "";
  bool shows_marks = false;  // the control: the owner's own answer has one of its marks
};

constexpr TenantRoute kTenantRoutes[] = {
    {"get", "/healthz", Kept::kPublic},
    {"get", "/readyz", Kept::kPublic},
    {"get", "/openapi.json", Kept::kPublic},
    {"get", "/metrics", Kept::kOwn},
    // Sessions and files of MCP: tests/daemon/mcp_test.cc.
    {"post", "/mcp", Kept::kOwn,
     R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}})"},
    {"delete", "/mcp", Kept::kOwn},
    {"get", "/.well-known/oauth-protected-resource", Kept::kPublic},
    {"get", "/.well-known/oauth-protected-resource/mcp", Kept::kPublic},
    {"post", "/v1/calls", Kept::kOwn,
     R"({"tool":"bash","args":{"command":"ls -laR / ; env; id"}})"},
    {"get", "/v1/calls", Kept::kOwn, "", true},
    {"get", "/v1/calls/{call_id}", Kept::kNotFound, "", true},
    {"get", "/v1/calls/{call_id}/events", Kept::kNotFound, "", true},
    {"post", "/v1/calls/{call_id}/cancel", Kept::kNotFound},
    {"get", "/v1/calls/{call_id}/receipt", Kept::kNotFound, "", true},
    {"get", "/v1/calls/{call_id}/transcript", Kept::kNotFound, "", true},
    {"get", "/v1/calls/{call_id}/files", Kept::kNotFound},
    {"get", "/v1/calls/{call_id}/files/{path}", Kept::kNotFound},
    {"post", "/v1/sessions", Kept::kOwn, "{}"},
    {"get", "/v1/sessions", Kept::kOwn, "", true},
    {"get", "/v1/sessions/{session_id}", Kept::kNotFound, "", true},
    {"post", "/v1/sessions/{session_id}/extend", Kept::kNotFound, R"({"lifetime_seconds":7200})"},
    // As a call is: a session of another tenant is denied in the same words as one that does not exist.
    {"post", "/v1/sessions/{session_id}/processes", Kept::kOwn,
     R"({"tool":"bash","args":{"command":"ls -laR /workspace; sleep 5"},"ports":[8001]})"},
    {"get", "/v1/sessions/{session_id}/processes", Kept::kNotFound, "", true},
    {"get", "/v1/sessions/{session_id}/processes/{process_id}", Kept::kNotFound},
    {"get", "/v1/sessions/{session_id}/processes/{process_id}/log", Kept::kNotFound, "", true},
    {"post", "/v1/sessions/{session_id}/processes/{process_id}/signal", Kept::kNotFound,
     R"({"signal":"TERM"})"},
    {"delete", "/v1/sessions/{session_id}/processes/{process_id}", Kept::kNotFound},
    {"get", "/v1/sessions/{session_id}/files", Kept::kNotFound, "", true},
    {"get", "/v1/sessions/{session_id}/files/{path}", Kept::kNotFound, "", true},
    {"put", "/v1/sessions/{session_id}/files/{path}", Kept::kNotFound, "evil"},
    {"delete", "/v1/sessions/{session_id}/files/{path}", Kept::kNotFound},
    {"delete", "/v1/sessions/{session_id}", Kept::kNotFound},
    {"get", "/v1/tools", Kept::kOwn},
    {"get", "/v1/tools/{tool}", Kept::kOwn, "", true},
    {"post", "/v1/keys", Kept::kOwn, R"({"role":"agent","agent":"made"})"},
    {"get", "/v1/keys", Kept::kOwn, "", true},
    {"delete", "/v1/keys/{key_id}", Kept::kNotFound},
    {"get", "/v1/audit", Kept::kOwn, "", true},
    {"get", "/v1/audit/checkpoint", Kept::kPublic},
    {"get", "/v1/audit/objects/{hash}", Kept::kNotFound},
    // With a call of the victim's that waits: tests/daemon/egress_test.cc.
    {"get", "/v1/access", Kept::kOwn},
    {"post", "/v1/access/{access_id}", Kept::kNotFound, R"({"decision":"grant"})"},
    {"get", "/v1/switches", Kept::kOwn, "", true},
    {"put", "/v1/switches/{scope}/{name}", Kept::kOwn, R"({"reason":"evil"})"},
    {"delete", "/v1/switches/{scope}/{name}", Kept::kOwn},
};

class TenantRoutes : public ::testing::Test {
 protected:
  // The victim has one of everything, each with a mark that cannot occur by accident.
  void SetUp() override {
    ASSERT_TRUE(daemon_.Start());
    const std::string agent = Mark();
    const Json victim = daemon_.NewKey("victim", "operator", agent);
    victim_ = victim["key"];
    key_id_ = victim["id"];
    attacker_ = daemon_.NewKey("attacker", "operator", "attacker")["key"];
    session_ = daemon_.NewSession(victim_, {{"label", Mark()}});
    file_ = Mark();
    EXPECT_EQ(
        daemon_.Ask("PUT", "/v1/sessions/" + session_ + "/files/" + file_, victim_, Mark()).status,
        201);
    const HttpAnswer call =
        daemon_.Call(victim_, Bash("echo " + Mark() + "; echo " + Mark() + " >&2", session_),
                     "Idempotency-Key: " + Mark() + "\r\n");
    EXPECT_EQ(call.Outcome(), "success") << call.text;
    call_ = call.At("call_id");
    envelope_ = daemon_.Ask("GET", "/v1/calls/" + call_ + "/receipt", victim_).At("envelope_id");
    EXPECT_EQ(daemon_.Ask("GET", "/v1/audit/objects/" + envelope_, victim_).status, 200);
    EXPECT_EQ(
        daemon_.Ask("PUT", "/v1/switches/tool/python", victim_, "{\"reason\":\"" + Mark() + "\"}")
            .status,
        200);
    for (const std::string& id : {session_, call_, key_id_}) {
      marks_.push_back(id);
    }
  }
  std::string Mark() {
    marks_.push_back(NewToken());
    return marks_.back();
  }
  std::string Path(const TenantRoute& route, bool victims) const {
    std::string path = route.path;
    const std::pair<std::string, std::string> values[] = {
        {"{call_id}", victims ? call_ : kNoSuchId},
        {"{session_id}", victims ? session_ : kNoSuchId},
        {"{process_id}", victims ? process_ : kNoSuchId},
        {"{key_id}", victims ? key_id_ : "0000000000000000"},
        {"{access_id}", (victims ? call_ : std::string(kNoSuchId)) + ".1"},
        {"{hash}", victims ? envelope_ : "sha256:" + std::string(64, '0')},
        {"{path}", file_},
        {"{tool}", "python"},
        {"{scope}", "tool"},
        {"{name}", "python"}};
    for (const auto& [name, value] : values) {
      if (const size_t at = path.find(name); at != std::string::npos) {
        path.replace(at, name.size(), value);
      }
    }
    return path;
  }
  HttpAnswer Ask(const TenantRoute& route, bool victims, const std::string& key) const {
    std::string method = route.method;
    for (char& letter : method) {
      letter = static_cast<char>(std::toupper(letter));
    }
    return daemon_.Ask(method, Path(route, victims), key, route.body);
  }
  // The first mark that is in the answer, other than those the request itself had.
  std::string MarkIn(const HttpAnswer& answer, const std::string& asked) const {
    for (const std::string& mark : marks_) {
      if ((Contains(answer.text, mark) || Contains(answer.head, mark)) && !Contains(asked, mark)) {
        return mark;
      }
    }
    return Contains(answer.text, "victim") ? "the tenant's name" : "";
  }

  Daemon daemon_;
  std::string victim_, key_id_, attacker_, session_, file_, call_, envelope_;
  std::string process_ = kNoSuchId;
  std::vector<std::string> marks_;
};

TEST_F(TenantRoutes, TheTableHasEveryRoute) {
  const Json api = daemon_.Ask("GET", "/openapi.json", "").body;
  std::set<std::string> listed, described;
  for (const TenantRoute& route : kTenantRoutes) {
    listed.insert(std::string(route.method) + " " + route.path);
  }
  for (const auto& [path, methods] : api["paths"].items()) {
    for (const auto& [method, what] : methods.items()) {
      if (method != "parameters") {
        described.insert(method + " " + path);
        EXPECT_TRUE(listed.contains(method + " " + path))
            << method << " " << path << ": say in the table how it keeps tenants apart";
      }
    }
  }
  EXPECT_GT(described.size(), 20U);
}

TEST_F(TenantRoutes, NothingOfOneTenantShowsToAnother) {
  const std::string processes = "/v1/sessions/" + session_ + "/processes";
  process_ = daemon_
                 .Ask("POST", processes, victim_,
                      Json{{"tool", "bash"},
                           {"args", {{"command", "echo " + Mark() + "; sleep 600"}}},
                           {"ports", {8000}}}
                          .dump())
                 .At("process_id");
  ASSERT_NE(process_, "");
  marks_.push_back(process_);
  const std::string process = processes + "/" + process_;
  ASSERT_NE(daemon_.Ask("GET", process + "/log?follow=10", victim_).At("text"), "");
  for (const TenantRoute& route : kTenantRoutes) {
    SCOPED_TRACE(std::string(route.method) + " " + route.path);
    const HttpAnswer theirs = Ask(route, true, attacker_);
    EXPECT_NE(theirs.status, 0);
    EXPECT_LT(theirs.status, 500) << theirs.text;
    EXPECT_EQ(MarkIn(theirs, Path(route, true)), "") << theirs.text;
    if (route.kept == Kept::kNotFound) {
      const HttpAnswer nobodys = Ask(route, false, attacker_);
      EXPECT_EQ(theirs.status, 404) << theirs.text;
      EXPECT_EQ(theirs.text, nobodys.text);
    }
    // Without a key nobody learns more than that a key is needed.
    if (route.kept != Kept::kPublic) {
      EXPECT_EQ(Ask(route, true, "").status, 401);
    }
  }
  // Nothing was changed by any of it.
  EXPECT_EQ(daemon_.Ask("GET", process, victim_).At("state"), "running");
  EXPECT_EQ(daemon_.Ask("GET", processes, victim_).body["processes"].size(), 1U);
  EXPECT_EQ(daemon_.Ask("GET", "/v1/sessions/" + session_, victim_).At("state"), "open");
  EXPECT_TRUE(
      Contains(daemon_.Ask("GET", "/v1/sessions/" + session_ + "/files", victim_).text, file_));
  EXPECT_EQ(daemon_.Ask("GET", "/v1/tools/python", victim_).At("state"), "disabled");
  // The controls: the marks are there to be seen, for their owner.
  for (const TenantRoute& route : kTenantRoutes) {
    SCOPED_TRACE(std::string("control: ") + route.method + " " + route.path);
    const HttpAnswer own = route.shows_marks ? Ask(route, true, victim_) : HttpAnswer{};
    if (route.shows_marks && own.status != 404) {  // 404: this version has no such route yet
      EXPECT_NE(MarkIn(own, Path(route, true)), "") << own.text;
    }
  }
}

// What lies below the routes: processes, files and uids of boundaries that run at the same time.
TEST_F(TenantRoutes, BoundariesOfTwoTenantsDoNotMeet) {
  const std::string secret = Mark();
  const HttpAnswer began = daemon_.Call(
      victim_,
      Bash("echo " + secret + " > /tmp/" + secret + "; : " + secret + "; " + WaitForGo(), session_),
      kAsync);
  ASSERT_EQ(began.status, 202) << began.text;
  ASSERT_TRUE(WaitUntil([&] { return Exists(daemon_.Workspace(session_) + "/began"); }));
  // Everything an attacker's own call can see or reach.
  const std::string look =
      "for p in /proc/[0-9]*; do cat $p/cmdline $p/environ 2>/dev/null; done; "
      "ls -aR /tmp /workspace /home /var /run /dev/shm 2>/dev/null; cat /proc/*/mountinfo; "
      "cat /proc/net/unix /proc/keys 2>/dev/null; kill -9 -1; true";
  const std::string own = daemon_.NewSession(attacker_);
  for (const std::string& session : {std::string(), own}) {
    const HttpAnswer seen = daemon_.Call(attacker_, Bash(look, session));
    EXPECT_EQ(seen.Outcome(), "success") << seen.text;
    EXPECT_TRUE(Contains(seen.text, "/workspace")) << "it looked\n" << seen.text;
    for (const std::string& mark : marks_) {
      EXPECT_FALSE(Contains(seen.text, mark)) << mark << " is in " << seen.text;
    }
  }
  // The control: the same look finds what lies in its own boundary.
  const HttpAnswer found = daemon_.Call(attacker_, Bash(": > /tmp/" + secret + "; " + look));
  EXPECT_TRUE(Contains(found.text, secret)) << found.text;
  // And the victim's own call sees what it left.
  const HttpAnswer mine = daemon_.Call(victim_, Bash("ls /workspace . 2>/dev/null", session_));
  EXPECT_TRUE(Contains(mine.text, "began")) << mine.text;
  EXPECT_EQ(daemon_.Ask("GET", "/v1/calls/" + began.At("call_id"), victim_).At("state"), "running");
  EXPECT_EQ(daemon_.Ask("PUT", "/v1/sessions/" + session_ + "/files/go", victim_, "x").status, 201);
}

// A tenant that uses up everything it is allowed takes nothing from another.
TEST_F(TenantRoutes, OneTenantsStormIsNotAnothersWeather) {
  std::string file = daemon_.tools() + "/few.toml";
  {
    std::FILE* const out = std::fopen(file.c_str(), "w");
    ASSERT_NE(out, nullptr);
    std::fputs(R"([tool]
name = "few"
version = "1"
effect = "read-only"
[run]
runtime = "bash"
argv = ["bash", "-c", "true"]
[rate]
calls = ["3/d"]
)",
               out);
    std::fclose(out);
  }
  ASSERT_TRUE(
      WaitUntil([&] { return daemon_.Ask("GET", "/v1/tools/few", attacker_).status == 200; }));
  const Json call = {{"tool", "few"}, {"args", Json::object()}, {"dry_run", true}};
  int refused = 0;
  for (int i = 0; i < 8; ++i) {
    refused += daemon_.Call(attacker_, call).DeniedBy() == "policy.rate" ? 1 : 0;
  }
  EXPECT_EQ(refused, 5);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(daemon_.Call(victim_, call).Outcome(), "success");
  }
  EXPECT_EQ(daemon_.Call(victim_, call).DeniedBy(), "policy.rate")
      << "the control: it has the same limit";
}

}  // namespace
}  // namespace coffer::test
