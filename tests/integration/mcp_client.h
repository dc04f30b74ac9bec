// SPDX-License-Identifier: Apache-2.0
//
// A test with an MCP client of `coffer mcp`: requests go in through a pipe, answers are read from stdout.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "base/json.h"
#include "base/unique_fd.h"
#include "tests/integration/mcp_answer.h"
#include "tests/support/host.h"

namespace coffer::test {

class Mcp : public ::testing::Test {
 protected:
  Mcp() {
    dir_.MakeDir("home");
    options_.environment = {
        {"HOME=" + (dir_ / "home"), "PATH=/usr/bin:/bin", "COFFER_STATE=" + (dir_ / "state")}};
  }
  static std::string Call(const std::string& id, const std::string& tool, const Json& args) {
    const Json message = {{"jsonrpc", "2.0"},
                          {"id", id},
                          {"method", "tools/call"},
                          {"params",
                           {{"name", tool},
                            {"arguments", args},
                            {"_meta",
                             {{"io.modelcontextprotocol/protocolVersion", "2026-07-28"},
                              {"io.modelcontextprotocol/clientCapabilities", Json::object()}}}}}};
    return message.dump() + "\n";
  }
  static std::string Bash(const std::string& id, const std::string& command) {
    return Call(id, "bash", {{"command", command}});
  }
  // stdin stays open until `input_` is closed. The requests fit into the pipe.
  std::unique_ptr<Background> Start(const std::string& requests, const Strings& flags = {}) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const UniqueFd read_end(ends[0]);
    input_ = UniqueFd(ends[1]);
    EXPECT_EQ(::write(input_.get(), requests.data(), requests.size()),
              static_cast<ssize_t>(requests.size()));
    RunOptions options = options_;
    options.in_child = [from = read_end.get()] { ::dup2(from, STDIN_FILENO); };
    Strings words = {CofferPath(), "mcp"};
    words.insert(words.end(), flags.begin(), flags.end());
    return std::make_unique<Background>(words, options);
  }
  // One more request of the same client.
  void Send(const std::string& request) {
    EXPECT_EQ(::write(input_.get(), request.data(), request.size()),
              static_cast<ssize_t>(request.size()));
  }
  RunResult Coffer(Strings words) {
    words.insert(words.begin(), CofferPath());
    return RunProgram(words, options_);
  }
  // The calls of the record: "bash success".
  std::multiset<std::string> Recorded() {
    const RunResult list = Coffer({"audit", "list", "--json"});
    std::multiset<std::string> all;
    const Json calls = Json::parse(list.out, nullptr, false);
    EXPECT_FALSE(calls.is_discarded()) << list.Describe();
    for (const Json& call : calls.value("calls", Json::array())) {
      const Json outcome = call.value("outcome", Json());
      all.insert(call.value("tool", "") + " " +
                 (outcome.is_string() ? outcome.get<std::string>() : "runs"));
    }
    return all;
  }
  bool NoSessionIsOpen() {
    return Lines(Coffer({"sessions", "list"}).out).size() == 1;  // the heading
  }

  TempDir dir_;
  RunOptions options_;
  UniqueFd input_;
};

}  // namespace coffer::test
