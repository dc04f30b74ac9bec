// SPDX-License-Identifier: Apache-2.0
//
// Declared tools with [[network.allow]] through the real daemon: what they reach, what they are refused, what the receipt
// says, and what happens when the role that dials for them is killed.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <thread>

#include "tests/daemon/egress_daemon.h"

namespace coffer::test {
namespace {

TEST_F(DaemonEgress, AToolReachesTheHostsOfItsManifestAndNothingElse) {
  ASSERT_TRUE(Start());
  HttpAnswer answer = Call("reader", Ask("api.test"));
  EXPECT_EQ(answer.Outcome(), "success") << answer.text;
  EXPECT_TRUE(Contains(Out(answer), "hello /v1/x")) << answer.text;
  EXPECT_TRUE(Contains(Seen(), "request GET /v1/x"));
  Json receipt = ReceiptOf(answer);
  ASSERT_EQ(receipt["network"].size(), 1U) << receipt.dump();
  EXPECT_EQ(receipt["network"][0]["host"], "api.test");
  EXPECT_EQ(receipt["network"][0]["port"], plain_);
  EXPECT_EQ(receipt["network"][0]["method"], "GET");
  EXPECT_EQ(receipt["network"][0]["path"], "/v1/x");
  EXPECT_EQ(receipt["network"][0]["decision"], "allow");
  EXPECT_GT(receipt["network"][0]["bytes_in"], 0);
  EXPECT_TRUE(receipt["denials"].empty()) << receipt["denials"].dump();

  // Another host, path and method; each is answered inside with the reason, and written down.
  answer = Call("reader", Ask("other.test") + "\n" + Ask("api.test", "/v2") + "\n" +
                              Ask("api.test", "/v1/x", "DELETE"));
  EXPECT_TRUE(Contains(Out(answer), "host_not_allowed")) << answer.text;
  EXPECT_TRUE(Contains(Out(answer), "path_not_allowed")) << answer.text;
  EXPECT_TRUE(Contains(Out(answer), "method_not_allowed")) << answer.text;
  EXPECT_TRUE(Contains(Out(answer), "[[network.allow]] host = \\\"other.test\\\"")) << answer.text;
  EXPECT_EQ(Seen(), "") << "nothing of it reached a server";
  receipt = ReceiptOf(answer);
  ASSERT_EQ(receipt["denials"].size(), 3U) << receipt.dump();
  for (const Json& denial : receipt["denials"]) {
    EXPECT_EQ(denial["surface"], "egress");
    EXPECT_TRUE(Contains(denial["fix"].get<std::string>(), "[[network.allow]]")) << denial.dump();
  }
}

TEST_F(DaemonEgress, WithoutRulesOrWithoutNetworkThereIsNoWayOut) {
  ASSERT_TRUE(Start());
  EXPECT_TRUE(Contains(Out(Call("reader", Ask("api.test"))), "hello")) << "the control";
  (void)Seen();
  EXPECT_FALSE(Contains(Out(Call("mute", Ask("api.test"))), "hello"));
  const HttpAnswer narrowed = Call("reader", Ask("api.test"), {{"network", Json::array()}});
  EXPECT_FALSE(Contains(Out(narrowed), "hello")) << narrowed.text;
  EXPECT_EQ(Seen(), "");
  EXPECT_TRUE(ReceiptOf(narrowed)["network"].empty());
  EXPECT_TRUE(
      Contains(ReceiptOf(narrowed)["blast_radius"].get<std::string>(), "cannot reach the network"));
}

TEST_F(DaemonEgress, RequestsInsideTlsAreJudged) {
  const std::string tls = std::to_string(tls_);
  Declare("secure",
          "[[network.allow]]\nhost = \"api.test\"\nports = [" + tls + "]\npaths = [\"/v1/**\"]\n");
  Declare("spliced",
          "[[network.allow]]\nhost = \"api.test\"\nports = [" + tls + "]\ntls = \"splice\"\n");
  ASSERT_TRUE(Start());
  const auto fetch = [&](const std::string& path) {
    return "python3 -c \"import urllib.request as u\ntry:\n  print(u.urlopen('https://api.test:" +
           tls + path + "').read().decode())\nexcept Exception as e:\n  print('failed', e)\"";
  };
  HttpAnswer answer = Call("secure", fetch("/v1/x"));
  EXPECT_TRUE(Contains(Out(answer), "hello /v1/x")) << answer.text;
  EXPECT_EQ(ReceiptOf(answer)["network"][0]["path"], "/v1/x");
  answer = Call("secure", fetch("/v2"));
  EXPECT_TRUE(Contains(Out(answer), "403")) << answer.text;
  // Spliced, any path goes, and nothing of it is seen.
  answer = Call("spliced", fetch("/v2"));
  EXPECT_TRUE(Contains(Out(answer), "hello /v2")) << answer.text;
  EXPECT_EQ(ReceiptOf(answer)["network"][0]["path"], nullptr) << ReceiptOf(answer)["network"];
}

TEST_F(DaemonEgress, BytesAreBoundedPerCall) {
  Declare("sender", Plain("api.test", "methods = [\"POST\"]\nbytes_out = \"2KiB\"\n"));
  ASSERT_TRUE(Start());
  const auto post = [&](int bytes) {
    return "exec 3<>/dev/tcp/127.0.0.1/3128; { printf 'POST http://api.test:" +
           std::to_string(plain_) + "/v1/x HTTP/1.1\\r\\nHost: api.test:" + std::to_string(plain_) +
           "\\r\\nConnection: close\\r\\nContent-Length: " + std::to_string(bytes) +
           "\\r\\n\\r\\n'; head -c " + std::to_string(bytes) +
           " /dev/zero; } >&3; cat <&3; exec 3>&-\n";
  };
  HttpAnswer answer = Call("sender", post(1000));
  EXPECT_TRUE(Contains(Out(answer), "hello")) << answer.text;
  EXPECT_TRUE(Contains(Seen(), "body=1000"));
  answer = Call("sender", post(1000) + post(1000));
  const Json receipt = ReceiptOf(answer);
  ASSERT_EQ(receipt["denials"].size(), 1U) << receipt.dump();
  EXPECT_TRUE(Contains(receipt["denials"][0]["reason"].get<std::string>(), "are spent"));
  const std::string seen = Seen();
  EXPECT_EQ(seen.find("body=1000"), seen.rfind("body=1000"))
      << "the second did not arrive: " << seen;
}

TEST_F(DaemonEgress, ASetChangesWithTheConfiguration) {
  Declare("grouped", "[[network.allow]]\nhost = \"@friends\"\n");
  ASSERT_TRUE(Start());
  HttpAnswer answer = Call("grouped", Ask("api.test"));
  EXPECT_EQ(answer.DeniedBy(), "policy.egress") << answer.text;
  EXPECT_TRUE(Contains(answer.text, "[egress.sets]")) << answer.text;
  const auto allow = [&](const std::string& host) {
    Configure("[egress.sets]\nfriends = [\"GET http://" + host + ":" + std::to_string(plain_) +
              "/**\"]\n");
    ::kill(daemon_.monitor(), SIGHUP);
  };
  allow("api.test");
  EXPECT_TRUE(WaitUntil([&] { return Contains(Out(Call("grouped", Ask("api.test"))), "hello"); }));
  EXPECT_FALSE(Contains(Out(Call("grouped", Ask("other.test"))), "hello"));
  allow("other.test");
  EXPECT_TRUE(
      WaitUntil([&] { return Contains(Out(Call("grouped", Ask("other.test"))), "hello"); }));
  EXPECT_FALSE(Contains(Out(Call("grouped", Ask("api.test"))), "hello"));
  // A mistake changes nothing.
  Configure("[egress.sets]\nfriends = [\"*\"]\n");
  ::kill(daemon_.monitor(), SIGHUP);
  EXPECT_TRUE(WaitUntil([&] { return Contains(daemon_.Said(), "egress.sets.friends"); }))
      << daemon_.Said();
  EXPECT_TRUE(Contains(Out(Call("grouped", Ask("other.test"))), "hello"));
}

// Two tenants at the same time, each with its own rules and its own record.
TEST_F(DaemonEgress, TenantsShareNothing) {
  Declare("stranger", Plain("other.test"));
  ASSERT_TRUE(Start());
  const std::string one = daemon_.NewKey("one", "agent", "a")["key"];
  const std::string two = daemon_.NewKey("two", "agent", "a")["key"];
  HttpAnswer first, second;
  const std::string wait = "\nsleep 1\n";
  std::thread beside([&] {
    first = Call("reader", Ask("api.test", "/v1/one") + wait + Ask("other.test", "/v1/one"), kAsIs,
                 one);
  });
  second = Call("stranger", Ask("other.test", "/v1/two") + wait + Ask("api.test", "/v1/two"), kAsIs,
                two);
  beside.join();
  EXPECT_TRUE(Contains(Out(first), "hello /v1/one")) << first.text;
  EXPECT_TRUE(Contains(Out(first), "host_not_allowed")) << first.text;
  EXPECT_TRUE(Contains(Out(second), "hello /v1/two")) << second.text;
  EXPECT_TRUE(Contains(Out(second), "host_not_allowed")) << second.text;
  EXPECT_FALSE(Contains(ReceiptOf(first, one).dump(), "/v1/two"));
  EXPECT_FALSE(Contains(ReceiptOf(second, two).dump(), "/v1/one"));
}

TEST_F(DaemonEgress, AKilledRoleEndsItsCallsAndComesBack) {
  ASSERT_TRUE(Start());
  const pid_t before = daemon_.Find(RoleOf::kProxy);
  ASSERT_GT(before, 0);
  HttpAnswer user, other;
  std::thread with([&] {
    user = Call("reader", Ask("api.test", "/v1/began") + "\nsleep 3\n" + Ask("api.test"));
  });
  std::thread without([&] { other = Call("mute", "sleep 3; echo whole"); });
  std::string seen;
  EXPECT_TRUE(WaitUntil([&] { return Contains(seen += Seen(), "/v1/began"); }));
  EXPECT_TRUE(WaitUntil([&] { return daemon_.Runners().size() == 2; }));
  ASSERT_EQ(::kill(before, SIGKILL), 0);
  with.join();
  without.join();
  EXPECT_EQ(user.Outcome(), "error") << user.text;
  EXPECT_TRUE(Contains(user.text, "egress.ended")) << user.text;
  EXPECT_TRUE(Contains(user.text, "hello /v1/began")) << "what came before is kept";
  EXPECT_EQ(other.Outcome(), "success") << other.text;
  EXPECT_TRUE(Contains(ReceiptOf(user).dump(), "/v1/began")) << "and so is its record";
  EXPECT_TRUE(WaitUntil([&] {
    const pid_t now = daemon_.Find(RoleOf::kProxy);
    return now > 0 && now != before;
  }));
  EXPECT_TRUE(Contains(Out(Call("reader", Ask("api.test"))), "hello"));
  EXPECT_EQ(daemon_.Stop(), 0);
}

// The role keeps nothing of a call that is over: no descriptor and no connection.
TEST_F(DaemonEgress, NothingOfACallStaysInTheRole) {
  ASSERT_TRUE(Start());
  if (!IsRoot()) {
    GTEST_SKIP() << "only root may look at the descriptors of a process that is not dumpable";
  }
  const auto open = [&] {
    size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(
             "/proc/" + std::to_string(daemon_.Find(RoleOf::kProxy)) + "/fd")) {
      ++count;
    }
    return count;
  };
  EXPECT_TRUE(Contains(Out(Call("reader", Ask("api.test"))), "hello"));
  EXPECT_TRUE(WaitUntil([&] { return open() > 0; }));
  size_t least = 1000;
  EXPECT_TRUE(WaitUntil([&] {
    const size_t now = open();
    const bool same = now == least;
    least = std::min(least, now);
    return same;
  }));
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(
        Contains(Out(Call("reader", Ask("api.test", "/v1/" + std::to_string(i)))), "hello"));
  }
  EXPECT_TRUE(WaitUntil([&] { return open() <= least; })) << open() << " after " << least;
}

// `coffer call` has no daemon and no role: a process of the call's own does the same.
TEST_F(DaemonEgress, TheSameWithoutADaemon) {
  RunOptions options;
  options.timeout = Seconds(60);
  const auto call = [&](const std::string& host) {
    return RunProgram(
        {CofferPath(), "call", "--tools", daemon_.tools(), "--config", file_, "--state",
         dir_.path() + "/state", "--args", Json{{"script", kClient + Ask(host)}}.dump(), "reader"},
        options);
  };
  const RunResult good = call("api.test");
  EXPECT_TRUE(Contains(good.out, "hello /v1/x")) << good.out << good.err;
  const RunResult bad = call("other.test");
  EXPECT_TRUE(Contains(bad.out, "host_not_allowed")) << bad.out << bad.err;
}

}  // namespace
}  // namespace coffer::test
