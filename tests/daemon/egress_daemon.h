// SPDX-License-Identifier: Apache-2.0
//
// A daemon with tools that run a script and may talk to some hosts, beside servers on this host's loopback.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "tests/daemon/daemon.h"
#include "tests/support/egress_fixture.h"

namespace coffer::test {

inline constexpr const char* kNetworkTool = R"(
[tool]
name = "@NAME@"
version = "1.0.0"
owner = "tests"
summary = "Runs a script that may talk to some hosts."
effect = "reversible"
[input.schema]
type = "object"
required = ["script"]
properties.script = { type = "string", maxLength = 16384 }
[run]
runtime = "bash"
also = ["python3"]
argv = ["bash", "--noprofile", "--norc", "-c", "{script}"]
[limits]
processes = 64
[rate]
retry = "off"
[[examples.allow]]
args = { script = "true" }
why = "a script"
[[examples.deny]]
args = {}
why = "no script"
)";

inline const Json kAsIs = Json::object();  // nothing beside the arguments

// Speaks to the proxy as any client does, with nothing but the shell: METHOD HOST PORT PATH.
inline constexpr const char* kClient = R"(
ask() {
  exec 3<>/dev/tcp/127.0.0.1/3128 || { echo "no proxy"; return; }
  printf '%s http://%s:%s%s HTTP/1.1\r\nHost: %s:%s\r\nConnection: close\r\n\r\n' $1 $2 $3 $4 $2 $3 >&3
  cat <&3 | tr -d '\r'; exec 3>&-; echo
}
)";

class DaemonEgress : public EgressFixture {
 protected:
  void SetUp() override {
    EgressFixture::SetUp();
    file_ = dir_.path() + "/coffer.toml";
    ::chmod((dir_.path() + "/ca.pem").c_str(), 0644);
    Configure("");
    Declare("reader", Plain("api.test"));
    Declare("mute", "");
  }

  // Before the daemon, which ends only if no other child of the test is left.
  void TearDown() override { server_.reset(); }

  // Read by roles with uids of their own.
  void Configure(const std::string& sets) const {
    std::ofstream(file_, std::ios::trunc)
        << "[egress]\nresolve = [\"api.test=127.0.0.1\", \"other.test=127.0.0.1\"]\n"
        << "dangerously_addresses = [\"127.0.0.0/8\"]\nupstream_ca = \"" << dir_.path()
        << "/ca.pem\"\n"
        << sets;
    ASSERT_EQ(::chmod(file_.c_str(), 0644), 0);
  }
  std::string Plain(const std::string& host, const std::string& more = {}) const {
    return "[[network.allow]]\nhost = \"" + host + "\"\ntls = \"plain\"\nports = [" +
           std::to_string(plain_) + "]\npaths = [\"/v1/**\"]\n" + more;
  }
  void Declare(const std::string& name, const std::string& network,
               const std::string& limits = {}) const {
    std::string text = kNetworkTool;
    text.replace(text.find("@NAME@"), 6, name);
    text.insert(text.find("[rate]"), limits);
    text.insert(text.find("[[examples.allow]]"), network);
    std::ofstream(daemon_.tools() + "/" + name + ".toml", std::ios::trunc) << text;
  }
  bool Start() { return daemon_.Start({"--config", file_}); }

  std::string Ask(const std::string& host, const std::string& path = "/v1/x",
                  const std::string& method = "GET") const {
    return "ask " + method + " " + host + " " + std::to_string(plain_) + " " + path;
  }
  HttpAnswer Call(const std::string& tool, const std::string& script, const Json& more = kAsIs,
                  const std::string& key = {}) const {
    Json body = {{"tool", tool}, {"args", {{"script", kClient + script}}}};
    body.update(more);
    return daemon_.Call(key.empty() ? daemon_.key() : key, body);
  }
  // For calls that may take long on a busy machine: no connection waits for the end.
  HttpAnswer CallForLong(const std::string& tool, const std::string& script,
                         const std::string& key = {}) const {
    const std::string& who = key.empty() ? daemon_.key() : key;
    const Json body = {{"tool", tool}, {"args", {{"script", kClient + script}}}};
    HttpAnswer answer = daemon_.Call(who, body, kAsync);
    const std::string id = answer.At("call_id");
    EXPECT_TRUE(WaitUntil(
        [&] {
          answer = daemon_.Ask("GET", "/v1/calls/" + id, who);
          return answer.At("state") == "finished";
        },
        Seconds(280)))
        << answer.text;
    return answer;
  }
  static std::string Out(const HttpAnswer& answer) {
    const Json::json_pointer place("/result/stdout");
    return answer.body.is_object() && answer.body.contains(place) && answer.body[place].is_string()
               ? answer.body[place].get<std::string>()
               : std::string();
  }
  Json ReceiptOf(const HttpAnswer& answer, const std::string& key = {}) const {
    return daemon_
        .Ask("GET", "/v1/calls/" + answer.At("call_id") + "/receipt",
             key.empty() ? daemon_.key() : key)
        .body;
  }

  std::string file_;
  Daemon daemon_;
};

}  // namespace coffer::test
