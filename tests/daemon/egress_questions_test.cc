// SPDX-License-Identifier: Apache-2.0
//
// One table of questions about the network, with their verdicts: every way out, every kind of rule, and the spellings that
// other proxies got wrong. The same table is asked by the first program of a call, by a second one, by later calls, after a
// reload of the configuration, and of a role that was started again.
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <sstream>

#include "tests/daemon/egress_daemon.h"

namespace coffer::test {
namespace {

struct Question {
  // The words of tests/support/egress_questions.py; P and T are the ports of the servers without TLS and with it.
  const char* asks;
  const char* verdict;
};

constexpr Question kQuestions[] = {
    {"forward GET api.test P /v1/x", "200"},
    {"forward GET api.test P /v2", "403 path_not_allowed"},
    {"forward POST api.test P /v1/x", "403 method_not_allowed"},
    {"forward GET api.test 22 /v1/x", "403 port_not_allowed"},
    {"forward GET api.test T /v1/x", "403 tls_required"},
    {"forward GET other.test P /v1/x", "403 port_not_allowed"},
    {"forward GET evil.test P /v1/x", "403 host_not_allowed"},
    {"forward GET api.test.evil.test P /v1/x", "403 host_not_allowed"},
    {"forward GET evilapi.test P /v1/x", "403 host_not_allowed"},
    {"forward GET api.test%2eevil.test P /v1/x", "400 policy.host"},
    {"forward GET api.test. P /v1/x", "400 policy.host"},
    {"forward GET API.TEST P /v1/x", "200"},
    {"forward GET user@api.test P /v1/x", "400 policy.host"},
    {"forward GET 127.0.0.1 P /v1/x", "403 host_not_allowed"},
    {"forward GET 127.1 P /v1/x", "400 policy.host"},
    {"forward GET 2130706433 P /v1/x", "400 policy.host"},
    {"forward GET 0x7f000001 P /v1/x", "400 policy.host"},
    {"forward GET [::ffff:127.0.0.1] P /v1/x", "403 host_not_allowed"},
    {"forward GET localhost P /v1/x", "403 host_not_allowed"},
    {"forward GET 169.254.169.254 80 /v1/x", "403 host_not_allowed"},
    {"forward GET 2852039166 80 /v1/x", "400 policy.host"},
    {"forward GET metadata.google.internal 80 /v1/x", "403 host_not_allowed"},
    {"forward GET [fd00:ec2::254] 80 /v1/x", "403 host_not_allowed"},
    {"forward GET api.test P /v1/../v2", "403 path_not_allowed"},
    {"forward GET api.test P /v1/%2e%2e/v2", "403 path_not_allowed"},
    {"forward GET api.test P /v1//../v2", "403 path_not_allowed"},
    {"forward GET api.test P /v1/%252e%252e/v2", "400 egress.path"},
    {"forward GET api.test P /v1/..;/v2", "400 egress.path"},
    {"connect api.test T", "200"},
    {"connect other.test T", "200"},
    {"connect api.test P", "200"},
    {"connect api.test 22", "403 port_not_allowed"},
    {"connect other.test 443", "403 port_not_allowed"},
    {"connect evil.test T", "403 host_not_allowed"},
    {"connect 127.0.0.1 T", "403 host_not_allowed"},
    {"connect [::1] T", "403 host_not_allowed"},
    {"connect 0 T", "400 policy.host"},
    {"tls api.test api.test api.test T /v1/x", "200"},
    {"tls api.test api.test api.test T /v2", "403 path_not_allowed"},
    {"tls api.test api.test other.test T /v1/x", "403 egress.authority_mismatch"},
    {"tls api.test other.test api.test T /v1/x", "no TLS"},
    {"tls other.test other.test other.test T /v1/x", "200"},
    {"tls other.test api.test api.test T /v1/x", "no TLS"},
    {"socks 3 api.test P /v1/x", "200"},
    {"socks 3 api.test P /v2", "403 path_not_allowed"},
    {"socks 3 evil.test P /v1/x", "socks 2"},
    {"socks 3 127.0.0.1NUL.api.test P /v1/x", "socks 2"},
    {"socks 3 127.0.0.1 P /v1/x", "socks 2"},
    {"socks 1 127.0.0.1 P /v1/x", "socks 2"},
    {"socks 4 ::1 P /v1/x", "socks 2"},
    {"socks 4 ::ffff:127.0.0.1 P /v1/x", "socks 2"},
    {"direct api.test P /v1/x", "200"},
    {"direct api.test P /v2", "403 path_not_allowed"},
    {"direct api.test 22 /v1/x", "closed"},
    {"direct evil.test P /v1/x", "no such name"},
    {"direct 192.0.2.1 80 /v1/x", "errno 101"},
    {"direct 169.254.169.254 80 /v1/x", "errno 101"},
    {"direct 127.0.0.1 P /v1/x", "errno 111"},
    {"direct 2001:db8::1 80 /v1/x", "errno 101"},
    {"direct 198.18.100.100 P /v1/x", "closed"},
    {"secure api.test api.test T /v1/x", "200"},
    {"secure other.test other.test T /v1/x", "200"},
    {"secure other.test api.test T /v1/x", "no TLS"},
    {"resolve api.test", "a name"},
    {"resolve other.test", "a name"},
    {"resolve evil.test", "no such name"},
    {"resolve c2VjcmV0.api.test", "no such name"},
    {"resolve metadata.google.internal", "no such name"},
    {"udp 192.0.2.1 53", "errno 101"},
    {"udp 127.0.0.1 53", "no answer"},
    {"udp 198.18.0.1 53", "answer 3"},
    {"udp 2001:db8::1 53", "errno 101"},
    {"raw 2 3 1", "errno 1"},
    {"raw 2 2 1", "errno 1"},
    {"raw 17 3 0", "errno 1"},
};

class DaemonEgressQuestions : public DaemonEgress {
 protected:
  static std::string Asker() {
    const std::string file =
        std::string(::getenv("COFFER_SOURCE")) + "/tests/support/egress_questions.py";
    const std::optional<std::string> text = ReadFile(file);
    EXPECT_TRUE(text) << file;
    return text.value_or("");
  }
  std::string Ports(std::string text) const {
    std::string filled;
    std::istringstream words(text);
    for (std::string word; words >> word;) {
      filled += (filled.empty() ? "" : " ") + (word == "P"   ? std::to_string(plain_)
                                               : word == "T" ? std::to_string(tls_)
                                                             : word);
    }
    return filled;
  }
  // The asker as a program of its own, with the whole table.
  std::string Suite() const {
    std::string script =
        "cat > /tmp/ask.py <<'END'\n" + Asker() + "END\nsuite() { python3 /tmp/ask.py '";
    for (const Question& question : kQuestions) {
      script += Ports(question.asks) + "\n";
    }
    return script + "'; }\n";
  }
  Strings Verdicts() const {
    Strings lines;
    for (const Question& question : kQuestions) {
      lines.push_back(Ports(question.asks) + " | " + question.verdict);
    }
    return lines;
  }
};

TEST_F(DaemonEgressQuestions, NW_31_EveryProgramCallAndReloadGetsTheSameVerdicts) {
  const std::string tls = std::to_string(tls_);
  Declare("suite", "[[network.allow]]\nhost = \"api.test\"\ntls = \"plain\"\nports = [" +
                       std::to_string(plain_) + "]\nmethods = [\"GET\"]\npaths = [\"/v1/**\"]\n" +
                       "[[network.allow]]\nhost = \"api.test\"\nports = [" + tls +
                       "]\nmethods = [\"GET\"]\npaths = [\"/v1/**\"]\n" +
                       "[[network.allow]]\nhost = \"other.test\"\ntls = \"splice\"\nports = [" +
                       tls + "]\n");
  ASSERT_TRUE(Start());
  const Strings verdicts = Verdicts();
  const auto ask = [&](const std::string& script) {
    const HttpAnswer answer = CallForLong("suite", Suite() + script);
    EXPECT_EQ(answer.Outcome(), "success") << answer.text << daemon_.Said();
    return Lines(Out(answer));
  };
  Strings twice = verdicts;
  twice.insert(twice.end(), verdicts.begin(), verdicts.end());
  EXPECT_EQ(ask("suite; exec bash -c \"$(declare -f suite); suite\""), twice)
      << "OPEN, or NO-CONTROL";
  EXPECT_EQ(ask("suite"), verdicts) << "another call";
  // The role that dials is another one then.
  const auto ask_of_another = [&](pid_t told, int signal) {
    const pid_t before = daemon_.Find(RoleOf::kProxy);
    EXPECT_EQ(::kill(told == 0 ? before : told, signal), 0);
    EXPECT_TRUE(WaitUntil(
        [&] {
          const pid_t now = daemon_.Find(RoleOf::kProxy);
          return now != 0 && now != before;
        },
        Seconds(60)))
        << "NO-CONTROL: the same process answers";
    return ask("suite");
  };
  EXPECT_EQ(ask_of_another(daemon_.monitor(), SIGHUP), verdicts) << "after a reload";
  EXPECT_EQ(ask_of_another(0, SIGKILL), verdicts) << "of a role that was started again";
  const std::string seen = Seen();
  EXPECT_FALSE(Contains(seen, "/v2")) << "OPEN\n" << seen;
  EXPECT_FALSE(Contains(seen, "POST")) << "OPEN\n" << seen;
}

}  // namespace
}  // namespace coffer::test
