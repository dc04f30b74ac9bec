// SPDX-License-Identifier: Apache-2.0
//
// A daemon with tools whose programs call tools.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <string>

#include "tests/daemon/daemon.h"
#include "tests/support/host.h"
#include "tests/support/tools_fixture.h"

namespace coffer::test {

class CallsOfDaemon : public HostWatchTest {
 protected:
  static std::string MayCall(const std::string& tools, const std::string& more = "") {
    return "[calls]\ntools = [" + tools + "]\n" + more;
  }
  void Declare(const std::string& name, const std::string& script, const std::string& more = "") {
    std::ofstream(daemon_.tools() + "/" + name + ".toml") << BashToolText(name, script, more);
  }
  // A tool that runs its argument `word` with Python.
  void DeclarePython(const std::string& name, const std::string& more) {
    std::string text = BashToolText(name, "", more);
    const size_t first = text.find("runtime = \"bash\"");
    text.replace(first, text.find("\n[isolation]") - first,
                 "runtime = \"python3\"\nalso = [\"bash\"]\nargv = [\"python3\", [\"-c\", "
                 "\"{word}\"]]");
    std::ofstream(daemon_.tools() + "/" + name + ".toml") << text;
  }
  void Start() { ASSERT_TRUE(daemon_.Start()); }

  HttpAnswer Call(const std::string& tool, const std::string& session = "") const {
    Json body = {{"tool", tool}};
    if (!session.empty()) {
      body["session_id"] = session;
    }
    return daemon_.Call(daemon_.key(), body);
  }
  // For calls that take longer than a client of these tests waits for one answer.
  std::string Begin(const std::string& tool) const {
    return daemon_.Call(daemon_.key(), {{"tool", tool}}, kAsync).At("call_id");
  }
  HttpAnswer Await(const std::string& call_id) const {
    HttpAnswer answer;
    WaitUntil(
        [&] {
          ::usleep(100'000);
          answer = daemon_.Ask("GET", "/v1/calls/" + call_id, daemon_.key());
          return !answer.Outcome().empty();
        },
        Seconds(90));
    return answer;
  }
  static std::string Out(const HttpAnswer& answer) {
    return answer.body.is_object() && answer.body.contains("result") &&
                   answer.body["result"].is_object()
               ? answer.body["result"].value("stdout", "")
               : answer.text;
  }

  RunResult Audit(Strings words) const {
    words.insert(words.begin(), {CofferPath(), "audit"});
    words.insert(words.end(), {"--state", daemon_.state()});
    return RunProgram(words);
  }
  // As `coffer audit list` has them, the newest first.
  Json Calls() const {
    const RunResult list = Audit({"list", "--json", "--limit", "1000"});
    return list.exit == 0 ? Json::parse(list.out).at("calls") : Json::array();
  }
  // By tool; the newest of each.
  std::map<std::string, Json> ByTool() const {
    std::map<std::string, Json> found;
    for (const Json& one : Calls()) {
      found.emplace(one.at("tool"), one);
    }
    return found;
  }
  int CountOf(const std::string& tool) const {
    int found = 0;
    for (const Json& one : Calls()) {
      found += one.at("tool") == tool ? 1 : 0;
    }
    return found;
  }

  // Of a call that runs; 0: there is none.
  pid_t Relay() const {
    for (const pid_t runner : daemon_.Runners()) {
      for (const pid_t child : ChildrenOf(runner)) {
        const std::string words =
            ReadFile("/proc/" + std::to_string(child) + "/cmdline").value_or("");
        if (Contains(words, "inside-relay")) {
          return child;
        }
      }
    }
    return 0;
  }
  // True once some call of the daemon has become `sleep SECONDS`.
  bool Sleeps(int seconds) const {
    std::vector<pid_t> below = daemon_.Runners();
    for (size_t i = 0; i < below.size(); ++i) {
      const std::string words =
          ReadFile("/proc/" + std::to_string(below[i]) + "/cmdline").value_or("");
      if (words == std::string("sleep\0", 6) + std::to_string(seconds) + '\0') {
        return true;
      }
      const std::vector<pid_t> children = ChildrenOf(below[i]);
      below.insert(below.end(), children.begin(), children.end());
    }
    return false;
  }
  static pid_t RunnerOf(pid_t relay) { return std::stoi(StatusOf(relay)["PPid"]); }

  Daemon daemon_;
};

}  // namespace coffer::test
