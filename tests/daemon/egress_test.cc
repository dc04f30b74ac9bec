// SPDX-License-Identifier: Apache-2.0
//
// Declared tools with [[network.allow]] through the real daemon: what they reach, what they are refused, what the receipt
// says, and what happens when the role that dials for them is killed.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <thread>

#include "tests/daemon/egress_daemon.h"
#include "tests/daemon/http_receiver.h"

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
  // A program without the variables trusts the boundary too, by the system's bundle, and no other boundary's.
  const auto bundle = [&](const std::string& tool) {
    return Out(Call(tool, "tail -n 12 /etc/ssl/certs/ca-certificates.crt"));
  };
  answer = Call("secure", "env -i https_proxy=http://127.0.0.1:3128 /usr/bin/" + fetch("/v1/x"));
  EXPECT_TRUE(Contains(Out(answer), "hello /v1/x")) << answer.text;
  const std::string authority = bundle("secure");
  EXPECT_TRUE(Contains(authority, "END CERTIFICATE")) << authority;
  EXPECT_NE(bundle("secure"), authority);
  // Spliced, any path goes, and nothing of it is seen.
  answer = Call("spliced", fetch("/v2"));
  EXPECT_TRUE(Contains(Out(answer), "hello /v2")) << answer.text;
  EXPECT_EQ(ReceiptOf(answer)["network"][0]["path"], nullptr) << ReceiptOf(answer)["network"];
}

// `ask = true`: an operator decides while the connection waits. Another agent's or the caller's own key cannot.
TEST_F(DaemonEgress, AccessThatIsAskedForIsAnOperatorsToGrant) {
  Declare("asker", Plain("api.test", "ask = true\n") + Plain("other.test", "ask = true\n"));
  HttpReceiver receiver;
  Configure("[[webhook]]\nurl = \"" + receiver.Url("/hook") + "\"\nevents = [\"access.asked\"]\n");
  ASSERT_TRUE(Start());
  const std::string agent = daemon_.NewKey("local", "agent", "bot")["key"];
  const std::string stranger = daemon_.NewKey("other", "operator", "op")["key"];
  const auto waiting = [&](const std::string& key) {
    return daemon_.Ask("GET", "/v1/access", key).body.value("access", Json::array());
  };
  const auto decide = [&](const std::string& id, const std::string& key, const Json& body) {
    return daemon_.Ask("POST", "/v1/access/" + id, key, body.dump());
  };
  HttpAnswer answer;
  std::thread call([&] {
    answer = Call("asker",
                  Ask("api.test") + "\n" + Ask("api.test", "/v1/y") + "\n" + Ask("other.test") +
                      "\n" + Ask("api.test", "/v2"),
                  kAsIs, agent);
  });
  Json asked;
  const auto next = [&](const char* host) {
    return WaitUntil(
        [&] {
          asked = waiting(daemon_.key());
          return asked.size() == 1 && asked[0]["host"] == host;
        },
        Seconds(30));
  };
  EXPECT_TRUE(next("api.test")) << asked.dump();
  EXPECT_EQ(Seen(), "") << "OPEN: nothing is dialled before the answer";
  const std::string id = asked.empty() ? "x" : asked[0]["id"].get<std::string>();
  EXPECT_EQ(asked[0]["port"], plain_);
  EXPECT_EQ(asked[0]["tool"], "asker");
  EXPECT_EQ(asked[0]["agent"], "bot");
  EXPECT_EQ(waiting(stranger).size(), 0U) << "OPEN: another tenant's";
  EXPECT_EQ(decide(id, agent, {{"decision", "grant"}}).status, 403) << "OPEN: the agent's own key";
  EXPECT_EQ(decide(id, stranger, {{"decision", "grant"}}).status, 404) << "OPEN: another tenant's";
  EXPECT_EQ(decide(id, daemon_.key(), {{"decision", "maybe"}}).status, 400);
  EXPECT_EQ(decide(id, daemon_.key(), {{"decision", "grant"}, {"minutes", 5000}}).status, 400);
  EXPECT_EQ(Seen(), "") << "OPEN";
  EXPECT_EQ(decide(id, daemon_.key(), {{"decision", "grant"}, {"minutes", 5}}).status, 200);
  EXPECT_TRUE(next("other.test")) << asked.dump();
  EXPECT_EQ(decide(id, daemon_.key(), {{"decision", "grant"}}).status, 404) << "it is decided";
  const std::string other = asked.empty() ? "x" : asked[0]["id"].get<std::string>();
  EXPECT_EQ(decide(other, daemon_.key(), {{"decision", "deny"}}).status, 200);
  call.join();
  EXPECT_TRUE(Contains(Out(answer), "hello /v1/x")) << "the control\n" << answer.text;
  EXPECT_TRUE(Contains(Out(answer), "hello /v1/y")) << "asked once\n" << answer.text;
  EXPECT_TRUE(Contains(Out(answer), "access_denied")) << answer.text;
  EXPECT_TRUE(Contains(Out(answer), "path_not_allowed")) << "the rule's own terms hold";
  const Json receipt = ReceiptOf(answer);
  ASSERT_EQ(receipt["access"].size(), 2U) << receipt.dump();
  EXPECT_EQ(receipt["access"][0]["decision"], "granted");
  EXPECT_EQ(receipt["access"][0]["minutes"], 5);
  EXPECT_FALSE(receipt["access"][0]["by"].is_null());
  EXPECT_EQ(receipt["access"][1]["decision"], "denied");
  EXPECT_TRUE(waiting(daemon_.key()).empty());
  // Each question was told to the operator's receiver, once.
  ASSERT_TRUE(WaitUntil([&] { return receiver.posts().size() == 2; }, Seconds(30)));
  // They may overtake each other.
  const bool in_order = Contains(receiver.posts()[0].body, id);
  const Json told = receiver.posts()[in_order ? 0 : 1].json();
  EXPECT_EQ(told.value("type", ""), "io.cofferdam.access.asked") << told.dump();
  EXPECT_TRUE(Contains(told.dump(), id) && Contains(told.dump(), "api.test")) << told.dump();
  const std::string second = receiver.posts()[in_order ? 1 : 0].body;
  EXPECT_TRUE(Contains(second, other)) << second;
}

TEST_F(DaemonEgress, AccessThatIsNotAnsweredIsDenied) {
  Configure("hold_time = \"2s\"\n");
  Declare("asker", Plain("api.test", "ask = true\n") + Plain("other.test", "ask = true\n"));
  ASSERT_TRUE(Start());
  const HttpAnswer answer = Call("asker", Ask("api.test") + "\n" + Ask("api.test"));
  EXPECT_TRUE(Contains(Out(answer), "access_unanswered")) << answer.text;
  EXPECT_EQ(Seen(), "") << "OPEN";
  const Json receipt = ReceiptOf(answer);
  ASSERT_EQ(receipt["access"].size(), 1U) << "it is asked for once\n" << receipt.dump();
  EXPECT_EQ(receipt["access"][0]["decision"], "unanswered");
}

// The operator's verb, over the daemon's socket.
TEST_F(DaemonEgress, TheVerbListsAndGrants) {
  Declare("asker", Plain("api.test", "ask = true\n"));
  ASSERT_TRUE(Start());
  const auto access = [&](Strings words) {
    words.insert(words.begin(), {CofferPath(), "access"});
    words.insert(words.end(), {"--state", daemon_.state()});
    return RunProgram(words);
  };
  EXPECT_EQ(access({"list", "--json"}).out, "{\n  \"access\": []\n}\n");
  HttpAnswer answer;
  std::thread call([&] { answer = Call("asker", Ask("api.test")); });
  std::string id;
  EXPECT_TRUE(WaitUntil(
      [&] {
        const Json list = Json::parse(access({"list", "--json"}).out, nullptr, false);
        if (!list.is_object() || list["access"].empty()) {
          return false;
        }
        id = list["access"][0]["id"];
        return true;
      },
      Seconds(30)));
  EXPECT_TRUE(Contains(access({"list"}).out, id));
  const RunResult wrong = access({"grant", "nothing.1"});
  EXPECT_EQ(wrong.exit, 120);
  EXPECT_TRUE(Contains(wrong.err, "no call waits for that")) << wrong.err;
  EXPECT_EQ(access({"grant", id, "--minutes", "0"}).exit, 120);
  const RunResult granted = access({"grant", id});
  EXPECT_EQ(granted.exit, 0) << granted.err;
  EXPECT_TRUE(Contains(granted.out, "is open")) << granted.out;
  call.join();
  EXPECT_TRUE(Contains(Out(answer), "hello /v1/x")) << answer.text;
}

// SIGHUP: another process takes the next calls, with what the host trusts now. A call that runs keeps its own.
TEST_F(DaemonEgress, SighupReplacesTheRoleAndEndsNoCall) {
  Declare("asker", Plain("api.test", "ask = true\n"));
  ASSERT_TRUE(Start());
  const pid_t before = daemon_.Find(RoleOf::kProxy);
  ASSERT_GT(before, 0);
  HttpAnswer answer;
  std::thread call([&] { answer = Call("asker", Ask("api.test")); });
  const auto waiting = [&] {
    return daemon_.Ask("GET", "/v1/access", daemon_.key()).body.value("access", Json::array());
  };
  EXPECT_TRUE(WaitUntil([&] { return waiting().size() == 1; }, Seconds(30)));
  EXPECT_EQ(::kill(daemon_.monitor(), SIGHUP), 0);
  const auto proxies = [&] {
    size_t count = 0;
    for (const pid_t child : ChildrenOf(daemon_.monitor())) {
      count += StatusOf(child)["Name"] == "coffer-proxy" ? 1 : 0;
    }
    return count;
  };
  EXPECT_TRUE(WaitUntil([&] { return proxies() == 2; }, Seconds(30)));
  EXPECT_TRUE(Contains(Out(Call("reader", Ask("api.test"))), "hello")) << "the new one serves";
  const Json asked = waiting();
  EXPECT_EQ(asked.size(), 1U);
  if (!asked.empty()) {
    const std::string id = asked[0]["id"];
    EXPECT_EQ(
        daemon_.Ask("POST", "/v1/access/" + id, daemon_.key(), R"({"decision":"grant"})").status,
        200);
  }
  call.join();
  EXPECT_TRUE(Contains(Out(answer), "hello /v1/x")) << answer.text;
  EXPECT_TRUE(WaitUntil([&] { return !IsAlive(before) && proxies() == 1; }, Seconds(30)))
      << "it ends with its last call";
  EXPECT_FALSE(Contains(daemon_.Said(), "ended")) << daemon_.Said();
}

// What the operator denies no manifest opens, nor does an answer; and it changes with the configuration.
TEST_F(DaemonEgress, CeilingsHoldForEveryManifest) {
  Declare("asker", Plain("other.test", "ask = true\n"));
  ASSERT_TRUE(Start());
  EXPECT_TRUE(Contains(Out(Call("reader", Ask("api.test"))), "hello")) << "the control";
  Configure("deny = [\"api.test:" + std::to_string(plain_) + "\", \"*.test\"]\n");
  ASSERT_EQ(::kill(daemon_.monitor(), SIGHUP), 0);
  HttpAnswer answer;
  EXPECT_TRUE(WaitUntil(
      [&] {
        answer = Call("reader", Ask("api.test"));
        return Contains(Out(answer), "host_denied");
      },
      Seconds(30)))
      << answer.text;
  (void)Seen();
  answer = Call("asker", Ask("other.test"));
  EXPECT_TRUE(Contains(Out(answer), "host_denied")) << answer.text;
  EXPECT_TRUE(ReceiptOf(answer)["access"].empty()) << "what is denied is not asked for";
  EXPECT_EQ(Seen(), "") << "OPEN";
  Configure("max_bytes_out = \"10B\"\n");
  ASSERT_EQ(::kill(daemon_.monitor(), SIGHUP), 0);
  EXPECT_TRUE(WaitUntil(
      [&] {
        answer = Call("reader", Ask("api.test"));
        return Contains(Out(answer), "limit_reached");
      },
      Seconds(30)))
      << answer.text;
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

// One connection at a time, two seconds each: a second one is refused, the first is ended, the next one is served.
TEST_F(DaemonEgress, ConnectionsAndTimeOfARule) {
  const std::string rule = "[[network.allow]]\nhost = \"api.test\"\ntls = \"none\"\nports = [" +
                           std::to_string(plain_) + "]\n";
  Declare("narrow", rule + "connections = 1\ntime = \"2s\"\n");
  Declare("wide", rule);
  ASSERT_TRUE(Start());
  const std::string script = "python3 -c \"\nport = " + std::to_string(plain_) + R"(
import socket, time
def ask():
    s = socket.create_connection(('api.test', port), 30)
    s.settimeout(4)
    s.sendall(b'GET /v1/d HTTP/1.1\r\nHost: api.test\r\n\r\n')
    return s, (s.recv(4096) or b'closed').split(b'\r\n')[0].decode()
def rest(s):
    try:
        while s.recv(4096): pass
        return 'ended'
    except socket.timeout: return 'lasts'
one, said = ask(); print('one', said)
print('two', ask()[1])
print('one', rest(one))
one.close()
print('three', ask()[1])
")";
  HttpAnswer answer = Call("narrow", script);
  EXPECT_EQ(Lines(Out(answer)),
            (Strings{"one HTTP/1.1 200 OK", "two closed", "one ended", "three HTTP/1.1 200 OK"}))
      << "OPEN\n"
      << answer.text;
  const std::string denials = ReceiptOf(answer)["denials"].dump();
  EXPECT_TRUE(Contains(denials, "its rule allows 1 at a time")) << denials;
  EXPECT_TRUE(Contains(denials, "its rule allows a connection or request 2s")) << denials;
  answer = Call("wide", script);
  EXPECT_EQ(Lines(Out(answer)), (Strings{"one HTTP/1.1 200 OK", "two HTTP/1.1 200 OK", "one lasts",
                                         "three HTTP/1.1 200 OK"}))
      << "NO-CONTROL\n"
      << answer.text;
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
    user = Call("reader", Ask("api.test", "/v1/began") + "\n" + Ask("api.test", "/v1/second") +
                              "\nsleep 3\n" + Ask("api.test"));
  });
  std::thread without([&] { other = Call("mute", "sleep 3; echo whole"); });
  std::string seen;
  // A second request leaves only when the program has the first answer and its connection is over.
  EXPECT_TRUE(WaitUntil([&] { return Contains(seen += Seen(), "/v1/second"); }));
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
