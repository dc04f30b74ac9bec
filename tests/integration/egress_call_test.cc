// SPDX-License-Identifier: Apache-2.0
//
// `coffer call` without a daemon: what the rules of a manifest refuse is said on stderr when the call ends, with the rule
// that would allow it, in the words of `coffer run`.
#include <gtest/gtest.h>

#include "tests/support/egress_fixture.h"

namespace coffer::test {
namespace {

constexpr const char* kManifest = R"([tool]
name = "reach"
version = "1"
effect = "reversible"
[input]
schema = { type = "object", required = ["script"], properties = { script = { type = "string" } } }
[run]
runtime = "bash"
argv = ["bash", "-c", "--", "{script}"]
[[network.allow]]
host = "api.test"
tls = "plain"
ports = [@PORT@]
paths = ["/v1/**"]
)";

// A client of the proxy that needs nothing but the shell: ask HOST.
constexpr const char* kAsk = R"(
ask() {
  exec 3<>/dev/tcp/127.0.0.1/3128
  printf 'GET http://%s:@PORT@/v1/x HTTP/1.1\r\nHost: %s:@PORT@\r\nConnection: close\r\n\r\n' $1 $1 >&3
  cat <&3; exec 3>&-
}
)";

class EgressCall : public EgressFixture {
 protected:
  void SetUp() override {
    EgressFixture::SetUp();
    dir_.Write("tools/reach.toml", WithPort(kManifest));
    dir_.Write("coffer.toml",
               "[egress]\nresolve = [\"api.test=127.0.0.1\", \"other.test=127.0.0.1\"]\n"
               "dangerously_addresses = [\"127.0.0.0/8\"]\n");
  }
  std::string WithPort(std::string text) const {
    const std::string mark = "@PORT@";
    for (size_t at = 0; (at = text.find(mark, at)) != std::string::npos;) {
      text.replace(at, mark.size(), std::to_string(plain_));
    }
    return text;
  }
  RunResult Call(const std::string& script, const Strings& more = {}) const {
    Strings words = {CofferPath(),
                     "call",
                     "reach",
                     "--state",
                     dir_ / "state",
                     "--tools",
                     dir_ / "tools",
                     "--config",
                     dir_ / "coffer.toml",
                     "--args",
                     Json{{"script", WithPort(kAsk) + script}}.dump()};
    words.insert(words.end(), more.begin(), more.end());
    return RunProgram(words);
  }
  std::string RefusedLine(const std::string& host) const {
    return "coffer: note: refused: GET " + host + ":" + std::to_string(plain_) +
           "/v1/x: no rule allows " + host + "; to allow it: [[network.allow]] host = \"" + host +
           "\"";
  }
};

size_t CountOf(const std::string& err, const std::string& part) {
  const Strings lines = Lines(err);
  return static_cast<size_t>(std::count_if(
      lines.begin(), lines.end(), [&](const std::string& line) { return Contains(line, part); }));
}

TEST_F(EgressCall, ARefusedHostIsSaidOnceWithTheRuleThatAllowsIt) {
  const RunResult refused = Call("ask other.test; ask other.test; ask api.test");
  EXPECT_TRUE(Contains(refused.out, "hello /v1/x")) << "NO-CONTROL\n" << refused.Describe();
  EXPECT_EQ(CountOf(refused.err, RefusedLine("other.test")), 1U) << refused.Describe();
  EXPECT_EQ(CountOf(refused.err, "refused:"), 1U) << refused.Describe();
  EXPECT_FALSE(Contains(refused.out, "refused:")) << "stdout is the tool's own\n" << refused.out;
  EXPECT_FALSE(Contains(Seen(), "other.test"));

  // The control: nothing is said of a call that was refused nothing.
  const RunResult allowed = Call("ask api.test");
  EXPECT_TRUE(Contains(allowed.out, "hello /v1/x")) << allowed.Describe();
  EXPECT_EQ(allowed.err, "") << allowed.Describe();
}

TEST_F(EgressCall, TheAnswerAsJsonHasTheDenialsInstead) {
  const RunResult run = Call("ask other.test", {"--json"});
  EXPECT_EQ(run.err, "") << run.Describe();
  const Json answer = Json::parse(run.out, nullptr, false);
  ASSERT_TRUE(answer.is_object()) << run.out;
  ASSERT_EQ(answer["denials"].size(), 1U) << run.out;
  EXPECT_EQ(answer["denials"][0]["surface"], "egress");
  EXPECT_TRUE(Contains(answer["denials"][0]["fix"].get<std::string>(), "other.test")) << run.out;
}

TEST_F(EgressCall, ManyAreBoundedAndTheRecordHasTheOthers) {
  const RunResult run = Call("for n in 1 2 3 4 5 6 7 8 9 10 11 12; do ask host$n.test; done");
  EXPECT_EQ(CountOf(run.err, "; to allow it: "), 10U) << run.Describe();
  const std::string more = "coffer: note: refused: 2 more; `coffer audit show ";
  ASSERT_EQ(CountOf(run.err, more), 1U) << run.Describe();
  const size_t at = run.err.find(more) + more.size();
  const RunResult shown =
      RunProgram({CofferPath(), "audit", "show", run.err.substr(at, run.err.find('`', at) - at),
                  "--state", dir_ / "state"});
  EXPECT_TRUE(Contains(shown.out, "host12.test")) << shown.Describe();
}

// A datagram and a connect by number have no address in the record, and are said all the same.
TEST_F(EgressCall, WhatIsSentOutsideWithoutANameIsSaidOnce) {
  const RunResult run = Call(
      "for way in udp tcp; do for to in 192.0.2.7 192.0.2.8; do (echo x > /dev/$way/$to/9) "
      "2>&- || echo refused; done; done; ask api.test");
  EXPECT_EQ(CountOf(run.out, "refused"), 4U) << "OPEN, or NO-CONTROL\n" << run.Describe();
  EXPECT_TRUE(Contains(run.out, "hello /v1/x")) << "NO-CONTROL\n" << run.Describe();
  EXPECT_EQ(CountOf(run.err,
                    "coffer: note: refused: addresses outside: hosts are reached by their "
                    "names only"),
            1U)
      << run.Describe();
  EXPECT_EQ(CountOf(run.err, "refused:"), 1U) << run.Describe();
  const RunResult as_json = Call("echo x > /dev/udp/192.0.2.7/9; true", {"--json"});
  const Json answer = Json::parse(as_json.out, nullptr, false);
  ASSERT_TRUE(answer.is_object()) << as_json.Describe();
  ASSERT_EQ(answer["denials"].size(), 1U) << as_json.Describe();
  EXPECT_EQ(answer["denials"][0]["target"], "addresses outside") << as_json.Describe();
}

}  // namespace
}  // namespace coffer::test
