// SPDX-License-Identifier: Apache-2.0
//
// What SIGHUP changes: each key of [egress] and this host's certificates, for the calls that come. And SIGHUP again and again
// while calls hold the egress roles of before.
#include <signal.h>

#include <fstream>
#include <thread>

#include "tests/daemon/egress_daemon.h"
#include "tests/support/host.h"

namespace coffer::test {
namespace {

constexpr size_t kMostRetired = 4;

class DaemonEgressReload : public DaemonEgress {
 protected:
  std::vector<pid_t> Proxies() const {
    std::vector<pid_t> proxies;
    for (const pid_t child : ChildrenOf(daemon_.monitor())) {
      if (StatusOf(child)["Name"] == "coffer-proxy") {
        proxies.push_back(child);
      }
    }
    return proxies;
  }
  // The whole configuration, with what it says beside its certificates.
  void Write(const std::string& rest) const {
    std::ofstream(file_, std::ios::trunc)
        << "[egress]\nupstream_ca = \"" << dir_.path() << "/ca.pem\"\n"
        << rest;
  }
  void Reload() const { ASSERT_EQ(::kill(daemon_.monitor(), SIGHUP), 0); }
  // Calls until the answer has `part`. The last answer.
  std::string Until(const std::string& tool, const std::string& script, const std::string& part) {
    std::string out;
    EXPECT_TRUE(WaitUntil(
        [&] {
          out = Out(Call(tool, script));
          return Contains(out, part);
        },
        Seconds(60)))
        << part << "\n"
        << out;
    return out;
  }
  // An authority that signed nothing.
  std::string Stranger() const {
    const std::string file = dir_.path() + "/stranger.pem";
    EXPECT_EQ(RunProgram({"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                          "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
                          dir_.path() + "/stranger.key", "-out", file, "-days", "2", "-subj",
                          "/CN=stranger"})
                  .exit,
              0);
    return ReadFile(file).value_or("");
  }
  void DeclareSecure() const {
    Declare("secure", "[[network.allow]]\nhost = \"api.test\"\nports = [" + std::to_string(tls_) +
                          "]\npaths = [\"/v1/**\"]\n");
  }
  // Requests inside TLS until the answer is another than "go on"; each on a connection of its own.
  std::string Fetch(const std::string& path) const {
    return "python3 -c \"import time, urllib.request as u\nsaid = 'go on'\nwhile said == 'go on':\n"
           "  try: said = u.urlopen('https://api.test:" +
           std::to_string(tls_) + path +
           "').read().decode()\n  except Exception as e: said = 'failed %s' % e\n"
           "  time.sleep(0.1)\nprint(said)\"";
  }
  Json Waiting() const {
    return daemon_.Ask("GET", "/v1/access", daemon_.key()).body.value("access", Json::array());
  }
  void Answer(const std::string& id) const {
    EXPECT_EQ(
        daemon_.Ask("POST", "/v1/access/" + id, daemon_.key(), R"({"decision":"grant"})").status,
        200);
  }
};

// Where a name leads, and which addresses are open.
TEST_F(DaemonEgressReload, NamesAndAddressesAreReadAgain) {
  const std::string here = "resolve = [\"api.test=127.0.0.1\"]\n";
  const std::string open = "dangerously_addresses = [\"127.0.0.1/32\"]\n";
  Write(here + open);
  ASSERT_TRUE(Start());
  EXPECT_TRUE(Contains(Out(Call("reader", Ask("api.test"))), "hello")) << "NO-CONTROL";
  // No server is at that address, and only the other one is open.
  Write("resolve = [\"api.test=127.0.0.9\"]\n" + open);
  EXPECT_TRUE(Contains(Out(Call("reader", Ask("api.test"))), "hello")) << "it is not told yet";
  (void)Seen();
  Reload();
  Until("reader", Ask("api.test"), "leads to 127.0.0.9");
  Write("resolve = [\"api.test=127.0.0.9\"]\ndangerously_addresses = [\"127.0.0.9/32\"]\n");
  Reload();
  Until("reader", Ask("api.test"), "upstream_unreachable");
  Write(here);
  Reload();
  Until("reader", Ask("api.test"), "address_denied");
  (void)Seen();
  EXPECT_TRUE(Contains(Out(Call("reader", Ask("api.test"))), "leads to 127.0.0.1")) << "OPEN";
  EXPECT_EQ(Seen(), "") << "OPEN";
  Write(here + open);
  Reload();
  Until("reader", Ask("api.test"), "hello");
}

// The same file with other certificates in it.
TEST_F(DaemonEgressReload, TheOperatorsCertificatesAreReadAgain) {
  DeclareSecure();
  ASSERT_TRUE(Start());
  EXPECT_TRUE(Contains(Out(Call("secure", Fetch("/v1/x"))), "hello")) << "NO-CONTROL";
  const std::string ours = ReadFile(dir_.path() + "/ca.pem").value_or("");
  const auto trust = [&](const std::string& pem) {
    std::ofstream(dir_.path() + "/ca.pem", std::ios::trunc) << pem;
    Reload();
  };
  trust(Stranger());
  Until("secure", Fetch("/v1/x"), "failed HTTP Error 502");
  (void)Seen();
  const HttpAnswer refused = Call("secure", Fetch("/v1/secret"));
  EXPECT_TRUE(Contains(ReceiptOf(refused)["network"].dump(), "is not good")) << refused.text;
  EXPECT_FALSE(Contains(Seen(), "secret")) << "OPEN: sent to a server that is not trusted";
  trust(ours);
  Until("secure", Fetch("/v1/x"), "hello");
}

// The certificates that the host itself trusts. A call that runs keeps those of its start, on new connections too.
TEST_F(DaemonEgressReload, TheHostsCertificatesAreReadAgain) {
  constexpr const char* kBundle = "/etc/ssl/certs/ca-certificates.crt";
  if (!Exists(kBundle)) {
    GTEST_SKIP() << "this host has no " << kBundle;
  }
  const std::string ours = ReadFile(dir_.path() + "/ca.pem").value_or("");
  const std::string strange = Stranger();
  const std::string bundle = dir_.path() + "/bundle.pem";
  const auto trust = [&](const std::string& pem) {
    std::ofstream(bundle, std::ios::trunc) << pem;
    ::chmod(bundle.c_str(), 0644);
  };
  trust(ours);
  std::ofstream(file_, std::ios::trunc) << "[egress]\nresolve = [\"api.test=127.0.0.1\"]\n"
                                           "dangerously_addresses = [\"127.0.0.0/8\"]\n";
  DeclareSecure();
  ASSERT_TRUE(daemon_.StartWithFile(bundle, kBundle, {"--config", file_}));
  EXPECT_TRUE(Contains(Out(Call("secure", Fetch("/v1/x"))), "hello")) << "NO-CONTROL";
  HttpAnswer running;
  std::thread call([&] { running = Call("secure", Fetch("/v1/until/done")); });
  std::string seen;
  EXPECT_TRUE(WaitUntil([&] { return Contains(seen += Seen(), "/v1/until/done"); }, Seconds(60)));
  trust(strange);
  EXPECT_TRUE(Contains(Out(Call("secure", Fetch("/v1/x"))), "hello")) << "it is not told yet";
  Reload();
  Until("secure", Fetch("/v1/x"), "failed HTTP Error 502");
  (void)Seen();
  const HttpAnswer refused = Call("secure", Fetch("/v1/secret"));
  EXPECT_TRUE(Contains(ReceiptOf(refused)["network"].dump(), "is not good")) << refused.text;
  EXPECT_FALSE(Contains(Seen(), "secret")) << "OPEN: sent to a server that is not trusted";
  // Only from here on does its server say another thing, so the answer came by the certificates of before.
  std::ofstream(dir_.path() + "/done") << "";
  call.join();
  EXPECT_TRUE(Contains(Out(running), "end it")) << running.text;
  trust(ours);
  Reload();
  Until("secure", Fetch("/v1/x"), "hello");
}

// Connections of one call at a time. One more waits until another has ended, by whichever way it comes.
TEST_F(DaemonEgressReload, TheCeilingOfConnectionsIsReadAgain) {
  const auto script = [&](int seconds) {
    return "python3 -c \"\nport = " + std::to_string(plain_) +
           "\nseconds = " + std::to_string(seconds) + R"(
import select, socket
def ask(to):
    s = socket.create_connection(to, 30)
    s.settimeout(60)
    s.sendall(b'GET http://api.test:%d/v1/x HTTP/1.1\r\nHost: api.test:%d\r\n\r\n' % (port, port))
    return s
def said(s): return s.recv(4096).split(b'\r\n')[0].decode()
one = ask(('127.0.0.1', 3128))
print('one', said(one))
two = ask(('127.0.0.1', 3128))
print('two', 'answered' if select.select([two], [], [], seconds)[0] else 'waits')
one.close()
print('then', said(two))
")";
  };
  const auto lines = [](const std::string& two) {
    return Strings{"one HTTP/1.1 200 OK", "two " + two, "then HTTP/1.1 200 OK"};
  };
  const std::string rest =
      "resolve = [\"api.test=127.0.0.1\"]\n"
      "dangerously_addresses = [\"127.0.0.0/8\"]\nmax_connections = ";
  Write(rest + "1\n");
  ASSERT_TRUE(Start());
  EXPECT_EQ(Lines(Out(Call("reader", script(2)))), lines("waits")) << "OPEN";
  Write(rest + "2\n");
  Reload();
  Until("reader", script(2), "two answered");
  EXPECT_EQ(Lines(Out(Call("reader", script(60)))), lines("answered")) << "NO-CONTROL";
  Write(rest + "1\n");
  Reload();
  Until("reader", script(2), "two waits");
}

// Bytes that one rule lets one call receive: the smaller of the manifest's limit and the ceiling.
TEST_F(DaemonEgressReload, TheCeilingOfBytesInIsReadAgain) {
  Declare("narrow", Plain("api.test", "bytes_in = \"12KiB\"\n"));
  const std::string rest =
      "resolve = [\"api.test=127.0.0.1\"]\n"
      "dangerously_addresses = [\"127.0.0.0/8\"]\n";
  // The bytes of three answers of 10,000 each.
  std::string script;
  for (int i = 0; i < 3; ++i) {
    script += Ask("api.test", "/v1/bytes/10000") + " | tr -cd '\\0' | wc -c\n";
  }
  const auto sum = [](const std::string& out) {
    long bytes = 0;
    for (const std::string& line : Lines(out)) {
      bytes += std::stol(line);
    }
    return bytes;
  };
  const auto bounded = [&](const std::string& tool, long most, const std::string& name) {
    const HttpAnswer answer = Call(tool, script);
    const Strings got = Lines(Out(answer));
    ASSERT_EQ(got.size(), 3U) << answer.text;
    EXPECT_EQ(got[0], "10000") << "NO-CONTROL\n" << answer.text;
    EXPECT_LE(sum(Out(answer)), most) << "OPEN\n" << answer.text;
    EXPECT_EQ(got[2], "0") << "OPEN\n" << answer.text;
    const Json receipt = ReceiptOf(answer);
    EXPECT_TRUE(Contains(receipt["denials"].dump(), "are spent: " + name + " in"))
        << receipt.dump();
  };
  Write(rest + "max_bytes_in = \"16KiB\"\n");
  ASSERT_TRUE(Start());
  bounded("reader", 16 * 1024, "16KiB");
  bounded("narrow", 12 * 1024, "12KiB");
  Write(rest + "max_bytes_in = \"1MiB\"\n");
  Reload();
  Until("reader", script, "10000\n10000\n10000\n");
  bounded("narrow", 12 * 1024, "12KiB");
  Write(rest + "max_bytes_in = \"11KiB\"\n");
  Reload();
  Until("reader", script, "\n0\n");
  bounded("reader", 11 * 1024, "11KiB");
  bounded("narrow", 11 * 1024, "11KiB");
}

// A question without an answer is a denial after a second, and after the reload it still stands when another call has slept for
// longer than that.
TEST_F(DaemonEgressReload, TheTimeOfAQuestionIsReadAgain) {
  Declare("asker", Plain("api.test", "ask = true\n"));
  Configure("hold_time = \"1s\"\n");
  ASSERT_TRUE(Start());
  EXPECT_TRUE(Contains(Out(Call("asker", Ask("api.test"))), "access_unanswered")) << "NO-CONTROL";
  EXPECT_EQ(Seen(), "") << "OPEN";
  // The denial says when the new configuration holds.
  Configure("hold_time = \"10m\"\ndeny = [\"*.test:22\"]\n");
  Declare("marked",
          "[[network.allow]]\nhost = \"other.test\"\ntls = \"plain\"\nports = [22]\n"
          "paths = [\"/**\"]\n");
  Reload();
  Until("marked", "ask GET other.test 22 /", "host_denied");
  HttpAnswer answer;
  std::thread call([&] { answer = Call("asker", Ask("api.test")); });
  EXPECT_TRUE(WaitUntil([&] { return Waiting().size() == 1; }, Seconds(30)));
  EXPECT_TRUE(Contains(Out(Call("mute", "sleep 2; echo slept")), "slept"));
  const Json waiting = Waiting();
  EXPECT_EQ(waiting.size(), 1U) << "it was not held for as long as is said now";
  if (!waiting.empty()) {
    Answer(waiting[0]["id"]);
  }
  call.join();
  EXPECT_TRUE(Contains(Out(answer), "hello /v1/x")) << answer.text;
}

// Each earlier role has a call that waits. With four of them the next replacement waits too, says so, and is made when one
// of them has ended.
TEST_F(DaemonEgressReload, TooManyEarlierRolesDelayTheReplacementAndSaySo) {
  Declare("asker", Plain("api.test", "ask = true\n"));
  ASSERT_TRUE(Start());
  std::vector<std::thread> calls;
  std::vector<HttpAnswer> answers(kMostRetired + 1);
  for (size_t i = 0; i <= kMostRetired; ++i) {
    calls.emplace_back([this, &answer = answers[i]] { answer = Call("asker", Ask("api.test")); });
    EXPECT_TRUE(WaitUntil([&] { return Waiting().size() == i + 1; }, Seconds(30))) << i;
    EXPECT_FALSE(Contains(daemon_.Said(), "earlier egress roles")) << "NO-CONTROL";
    EXPECT_EQ(::kill(daemon_.monitor(), SIGHUP), 0);
    const size_t expected = std::min(i + 1, kMostRetired) + 1;
    EXPECT_TRUE(WaitUntil([&] { return Proxies().size() == expected; }, Seconds(30))) << i;
  }
  EXPECT_TRUE(
      WaitUntil([&] { return Contains(daemon_.Said(), "earlier egress roles"); }, Seconds(30)))
      << daemon_.Said();
  const std::vector<pid_t> before = Proxies();
  // The last call is in the role that should have been replaced. The others end first.
  const Json waiting = Waiting();
  ASSERT_EQ(waiting.size(), kMostRetired + 1);
  Answer(waiting[0]["id"]);
  const auto fresh = [&] {
    for (const pid_t pid : Proxies()) {
      if (std::find(before.begin(), before.end(), pid) == before.end()) {
        return true;
      }
    }
    return false;
  };
  EXPECT_TRUE(WaitUntil(fresh, Seconds(30))) << "the replacement was forgotten";
  EXPECT_TRUE(Contains(Out(Call("reader", Ask("api.test"))), "hello")) << "the new one serves";
  for (size_t i = 1; i < waiting.size(); ++i) {
    Answer(waiting[i]["id"]);
  }
  for (std::thread& call : calls) {
    call.join();
  }
  for (const HttpAnswer& answer : answers) {
    EXPECT_TRUE(Contains(Out(answer), "hello /v1/x")) << answer.text;
  }
  EXPECT_TRUE(WaitUntil([&] { return Proxies().size() == 1; }, Seconds(30)));
}

}  // namespace
}  // namespace coffer::test
