// SPDX-License-Identifier: Apache-2.0
//
// The server that MCP's official conformance suite is run against: the gateway's own HTTP and MCP, with the suite's fixtures
// (fixtures.json) in the place of the service's tools and files. Not part of the product.
//
//   mcp_fixtures FIXTURES    prints the port that it listens on; the key is "agent-key"
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "base/clock.h"
#include "base/ids.h"
#include "base/json.h"
#include "gateway/mcp/server.h"
#include "gateway/server.h"
#include "net/loop.h"
#include "tests/gateway/fake_service.h"

namespace coffer::gateway {
namespace {

class Fixtures : public McpHost, public std::enable_shared_from_this<Fixtures> {
 public:
  Fixtures(const Json& fixtures, net::Loop& loop) : fixtures_(fixtures), loop_(loop) {}

  Json Capabilities() const override {
    return {{"tools", Json::object()},
            {"resources", Json::object()},
            {"prompts", Json::object()},
            {"completions", Json::object()}};
  }
  void ListTools(const McpId& id) override {
    server().Answer(id, Json(fixtures_["answers"]["tools/list"]));
  }
  void Begin(const McpCall& call) override {
    const Json& tools = fixtures_["tools"];
    if (!tools.contains(call.tool)) {
      server().Answer(call.id, McpError{McpErrorCode::kBadParams, "there is no such tool", {}});
    } else if (call.tool == "test_tool_with_progress") {
      Step(call.id, 0);
    } else {
      server().Answer(call.id, Json(tools[call.tool]));
    }
  }
  void Cancel(const McpId& /*id*/, const std::string& /*reason*/) override { timer_.reset(); }
  bool HandleOther(const McpRequest& request) override {
    if (fixtures_["answers"].contains(request.method)) {
      server().Answer(request.id, Json(fixtures_["answers"][request.method]));
    } else if (request.method == "resources/read") {
      AnswerNamed(request, "resources", request.params->value("uri", ""));
    } else if (request.method == "prompts/get") {
      AnswerNamed(request, "prompts", request.params->value("name", ""));
    } else {
      return false;
    }
    return true;
  }

 private:
  // 0, 50 and 100 of 100, 20 ms apart, and the result.
  void Step(const McpId& id, int progress) {
    timer_ = loop_.After(std::chrono::milliseconds(20), [this, id, progress] {
      const auto keep = std::move(timer_);  // we run inside it
      if (progress > 100) {
        server().Answer(id, Json(fixtures_["tools"]["test_tool_with_progress"]));
        return;
      }
      server().Progress(id, progress, "under way");
      Step(id, progress + 50);
    });
  }
  void AnswerNamed(const McpRequest& request, const char* kind, const std::string& name) {
    if (!fixtures_[kind].contains(name)) {
      const McpErrorCode code =
          kind[0] == 'r' ? McpErrorCode::kNoResource : McpErrorCode::kBadParams;
      server().Answer(request.id,
                      McpError{code, "there is no such thing", PrintJson({{"uri", name}})});
      return;
    }
    std::string text = PrintJson(fixtures_[kind][name]);
    if (const auto arguments = request.params->find("arguments");
        arguments != request.params->end()) {
      for (const auto& [key, value] : arguments->items()) {
        const std::string mark = "{" + key + "}";
        if (const size_t at = text.find(mark); at != std::string::npos && value.is_string()) {
          const std::string quoted = PrintJson(value);
          text.replace(at, mark.size(), quoted.substr(1, quoted.size() - 2));
        }
      }
    }
    server().Answer(request.id, *ParseJson(text));
  }

  const Json& fixtures_;
  net::Loop& loop_;
  std::shared_ptr<void> timer_;
};

// Sessions that begin and end; the rest is never asked.
class Sessions : public FakeService {
 public:
  void CreateSession(const Identity& /*who*/, SessionRequest /*request*/,
                     Reply<SessionView> reply) override {
    const Result<std::string> id = NewId();
    if (!id.ok()) {
      reply(Refusal{.code = "internal", .message = id.error().message});
      return;
    }
    open_.insert(*id);
    reply(View(*id));
  }
  void GetSession(const Identity& /*who*/, const std::string& id,
                  Reply<SessionView> reply) override {
    open_.contains(id) ? reply(View(id)) : reply(Unknown());
  }
  void EndSession(const Identity& /*who*/, const std::string& id,
                  Reply<SessionView> reply) override {
    open_.erase(id) > 0 ? reply(View(id)) : reply(Unknown());
  }

 private:
  static SessionView View(const std::string& id) {
    SessionView view;
    view.session_id = id;
    view.expires_at = WallTime() + std::chrono::hours(1);
    return view;
  }
  static Refusal Unknown() {
    return {.kind = RefusalKind::kNotFound, .code = "session.unknown", .message = "unknown"};
  }
  std::set<std::string> open_;
};

int Main(const char* path) {
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const Result<Json> fixtures = ParseJson(text);
  if (!fixtures.ok()) {
    std::fprintf(stderr, "mcp_fixtures: %s: %s\n", path, fixtures.error().message.c_str());
    return 1;
  }
  const std::unique_ptr<net::Loop> loop = net::MakeLoop();
  Sessions service;
  ServerConfig config;
  config.tcp.emplace_back();
  config.http.mcp_host = [&] { return std::make_unique<Fixtures>(*fixtures, *loop); };
  Result<std::unique_ptr<Server>> server = Server::Open(*loop, service, std::move(config));
  if (!server.ok()) {
    std::fprintf(stderr, "mcp_fixtures: %s\n", server.error().message.c_str());
    return 1;
  }
  std::printf("%u\n", static_cast<unsigned>((*server)->ports().front()));
  std::fflush(stdout);
  loop->Run();
  return 0;
}

}  // namespace
}  // namespace coffer::gateway

int main(int count, char** words) {
  if (count != 2) {
    std::fprintf(stderr, "usage: mcp_fixtures FIXTURES\n");
    return 2;
  }
  return coffer::gateway::Main(words[1]);
}
