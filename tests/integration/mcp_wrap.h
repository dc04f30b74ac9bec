// SPDX-License-Identifier: Apache-2.0
//
// A test with an MCP server of another author in `coffer mcp wrap`, and a client of it. The server is Python that a test gives.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/json.h"
#include "base/unique_fd.h"
#include "tests/integration/mcp_answer.h"
#include "tests/support/host.h"

namespace coffer::test {

inline Json ForeignTool(const std::string& name, const std::string& description) {
  return {{"name", name},
          {"description", description},
          {"inputSchema",
           {{"$schema", "http://json-schema.org/draft-07/schema#"},
            {"type", "object"},
            {"properties", {{"words", {{"type", "string"}}}}},
            {"required", {"words"}},
            {"additionalProperties", false}}},
          {"annotations", {{"readOnlyHint", true}, {"destructiveHint", false}}}};
}

class McpWrapTest : public ::testing::Test {
 protected:
  explicit McpWrapTest(const std::string& source) {
    dir_.MakeDir("home");
    server_ = dir_.MakeDir("server");
    std::ofstream(server_ + "/server.py") << source;
    options_.environment = {
        {"HOME=" + (dir_ / "home"), "PATH=/usr/bin:/bin", "COFFER_STATE=" + (dir_ / "state")}};
  }
  void Offer(const Strings& names, const std::string& description = "Does what it says.") const {
    Json tools = Json::array();
    for (const std::string& name : names) {
      tools.push_back(ForeignTool(name, description));
    }
    std::ofstream(server_ + "/tools.json") << tools.dump();
  }
  static std::string Request(const std::string& id, const std::string& method, Json params) {
    params["_meta"] = {{"io.modelcontextprotocol/protocolVersion", "2026-07-28"},
                       {"io.modelcontextprotocol/clientCapabilities", Json::object()}};
    return Json{{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", params}}.dump() +
           "\n";
  }
  std::unique_ptr<Background> Start(const Strings& flags = {}) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const UniqueFd read_end(ends[0]);
    input_ = UniqueFd(ends[1]);
    RunOptions options = options_;
    options.in_child = [from = read_end.get()] { ::dup2(from, STDIN_FILENO); };
    Strings words = {CofferPath(), "mcp", "wrap", "--name", "other", "--ro", server_};
    words.insert(words.end(), flags.begin(), flags.end());
    words.insert(words.end(), {"--", "python3", server_ + "/server.py"});
    return std::make_unique<Background>(words, options);
  }
  void Send(const std::string& line) const {
    EXPECT_EQ(::write(input_.get(), line.data(), line.size()), static_cast<ssize_t>(line.size()));
  }
  // Sends one call and waits for its answer.
  Json Call(Background& server, const std::string& tool, const std::string& words = "x") {
    const std::string id = "call" + std::to_string(next_++);
    Send(Request(id, "tools/call", {{"name", "other-" + tool}, {"arguments", {{"words", words}}}}));
    return McpAnswer(server, id);
  }
  // Sends one request and waits for its answer.
  Json Ask(Background& server, const std::string& method, const Json& params = Json::object()) {
    const std::string id = "ask" + std::to_string(next_++);
    Send(Request(id, method, params));
    return McpAnswer(server, id);
  }
  Json List(Background& server) {
    const std::string id = "list" + std::to_string(next_++);
    Send(Request(id, "tools/list", Json::object()));
    return McpAnswer(server, id)["result"]["tools"];
  }
  static std::string Text(const Json& answer) {
    const Json result = answer.value("result", Json::object());
    return result.contains("content") ? result["content"][0].value("text", "") : answer.dump();
  }
  void Leave(Background& server) {
    input_.Reset();
    EXPECT_EQ(server.Wait().exit, 0) << server.err();
  }
  RunResult Coffer(Strings words) {
    words.insert(words.begin(), CofferPath());
    return RunProgram(words, options_);
  }

  // How often the record has a tool with an outcome: "other-echo success".
  std::map<std::string, int> Recorded() {
    const Json calls = Json::parse(Coffer({"audit", "list", "--json"}).out, nullptr, false);
    std::map<std::string, int> recorded;
    for (const Json& call : calls.value("calls", Json::array())) {
      ++recorded[call.value("tool", "") + " " + call.value("outcome", "")];
    }
    return recorded;
  }

  TempDir dir_;
  std::string server_;
  RunOptions options_;
  UniqueFd input_;
  int next_ = 0;
};

}  // namespace coffer::test
