// SPDX-License-Identifier: Apache-2.0
//
// The egress role under calls that abuse it: what one call's flood costs another, the limits of a rule on live traffic, and
// programs without a proxy when the role dies.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <limits>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "tests/daemon/egress_daemon.h"

namespace coffer::test {
namespace {

// For some seconds, a request on a connection of its own and one on a kept connection, by turns. A line for each pair: when it began, and
// the microseconds that each took.
constexpr const char* kMeasure = R"(python3 -c "
import socket, time
HEAD = b'GET http://api.test:PORT/v1/m HTTP/1.1\r\nHost: api.test:PORT\r\n'
def dial():
    s = socket.create_connection(('127.0.0.1', 3128), 60)
    s.settimeout(60)
    return s
def ask(s, more):
    s.sendall(HEAD + more)
    got = b''
    while not got.endswith(b'hello /v1/m'):
        more = s.recv(4096)
        if not more: raise SystemExit('closed')
        got += more
kept, end = dial(), time.monotonic() + 5
while time.monotonic() < end:
    a = time.monotonic()
    s = dial(); ask(s, b'Connection: close\r\n\r\n'); s.close()
    b = time.monotonic()
    ask(kept, b'\r\n')
    print('%.6f %.0f %.0f' % (a, (b - a) * 1e6, (time.monotonic() - b) * 1e6))
")";

// 10,000 connections, while 16 others stay in the middle of their head. Three batches of four ask for a host that is not allowed and hear
// so. The fourth begins TLS with one that is judged, all at once, which costs the proxy a handshake each, and leaves. A proxy has 64 in its hands at
// once, so of each batch some wait to be accepted. It says when it began and ended, and how many were answered.
constexpr long kFlooding = 10000;
constexpr const char* kWide = "GET https://*.wide.test/**";
constexpr const char* kFlood = R"(python3 -c "
import socket, ssl, time
def one():
    s = socket.create_connection(('127.0.0.1', 3128), 60)
    s.settimeout(60)
    return s
def answer(s, expected):
    got = b''
    while expected not in got:
        more = s.recv(4096)
        if not more: raise SystemExit('not answered')
        got += more
out = ssl.MemoryBIO()
client = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), out, server_hostname='n.wide.test')
try: client.do_handshake()
except ssl.SSLWantReadError: pass
hello = out.read()
stuck = [one() for i in range(16)]
for s in stuck: s.sendall(b'CONN')
begin, count, batches = time.monotonic(), 0, 0
while count < 10000:
    tls = batches % 4 == 0
    batch = [one() for i in range(min(64, 10000 - count))]
    for s in batch:
        s.sendall(b'CONNECT n.wide.test:443 HTTP/1.1\r\n\r\n' + hello if tls else
                  b'CONNECT n.evil.test:443 HTTP/1.1\r\n\r\n')
    for s in batch:
        answer(s, b'\r\n\r\n\x16\x03' if tls else b'HTTP/1.1 403')
        s.close()
    count += len(batch); batches += 1
print('flooded %.6f %.6f %d' % (begin, time.monotonic(), count))
")";

// Microseconds of requests.
struct Waits {
  std::vector<long> fresh, kept;

  void Add(const Waits& more) {
    fresh.insert(fresh.end(), more.fresh.begin(), more.fresh.end());
    kept.insert(kept.end(), more.kept.begin(), more.kept.end());
  }
};

// What that part of them takes at most.
long Quantile(std::vector<long> values, double part) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(part * static_cast<double>(values.size() - 1))];
}

// How many times longer the median is, on fresh or on kept connections. Slower ones say more about which process the kernel runs: a
// role that works much waits longer for a processor, on a busy machine for a whole slice of time.
double TimesLonger(const Waits& some, const Waits& than) {
  const auto ratio = [](const std::vector<long>& one, const std::vector<long>& other) {
    return static_cast<double>(Quantile(one, 0.5)) / static_cast<double>(Quantile(other, 0.5));
  };
  return std::max(ratio(some.fresh, than.fresh), ratio(some.kept, than.kept));
}

std::string Describe(const Waits& waits) {
  std::string text;
  for (std::vector<long> Waits::* const which : {&Waits::fresh, &Waits::kept}) {
    text += std::to_string((waits.*which).size()) + " requests: ";
    for (const double part : {0.5, 0.9, 0.99}) {
      text += std::to_string(Quantile(waits.*which, part)) + " ";
    }
  }
  return text + "us\n";
}

class DaemonEgressAbuse : public DaemonEgress {
 protected:
  static constexpr size_t kFewest = 50;  // requests that say something
  static constexpr double kNoticed = 3;  // times longer

  std::string WithPort(std::string text) const {
    for (size_t at = 0; (at = text.find("PORT", at)) != std::string::npos;) {
      text.replace(at, 4, std::to_string(plain_));
    }
    return text;
  }

  // What `reader` waits for its requests between the two moments that `beside`, which runs meanwhile, gives. Nothing if they
  // did not meet.
  using Interval = std::pair<double, double>;
  std::optional<Waits> Measure(const std::function<std::optional<Interval>()>& beside) {
    HttpAnswer measured;
    std::thread reader([&] { measured = Call("reader", WithPort(kMeasure)); });
    EXPECT_TRUE(WaitUntil([&] { return daemon_.Runners().size() == 1; }));
    const std::optional<Interval> when = beside();
    reader.join();
    EXPECT_EQ(measured.Outcome(), "success") << measured.text.substr(0, 400);
    Waits waits;
    for (const std::string& line : Lines(Out(measured))) {
      double began = 0;
      long fresh = 0, kept = 0;
      if (when && sscanf(line.c_str(), "%lf %ld %ld", &began, &fresh, &kept) == 3 &&
          began >= when->first && began + static_cast<double>(fresh + kept) / 1e6 <= when->second) {
        waits.fresh.push_back(fresh);
        waits.kept.push_back(kept);
      }
    }
    return waits.fresh.size() < kFewest ? std::nullopt : std::optional(std::move(waits));
  }

  static std::optional<Interval> ReadFlood(const std::string& said) {
    Interval when;
    long count = 0;
    if (sscanf(said.c_str(), "flooded %lf %lf %ld", &when.first, &when.second, &count) != 3) {
      return std::nullopt;
    }
    EXPECT_EQ(count, kFlooding) << "NO-CONTROL";
    return when;
  }
  // Through the role that serves the measured call too. All of it is in the receipt.
  std::optional<Interval> FloodTheRole() {
    const HttpAnswer flooded = Call("flooder", kFlood);
    const std::optional<Interval> when = ReadFlood(Out(flooded));
    if (!when) {
      // Without a cgroup the supervisor may end the flooding call as too fast to count.
      EXPECT_TRUE(::geteuid() != 0 && Contains(flooded.text, "faster than they can be counted"))
          << flooded.text.substr(0, 400);
      return std::nullopt;
    }
    long written = 0;
    const Json receipt = ReceiptOf(flooded);
    for (const Json& use : receipt["network"]) {
      written += use["count"].get<long>();
    }
    EXPECT_GE(written, kFlooding) << "NO-CONTROL: they did not reach the role";
    return when;
  }
  // The same work for the machine, through an egress process of its own.
  std::optional<Interval> FloodAnother() const {
    const RunResult run = RunProgram(
        {CofferPath(), "run", "--quiet", "--allow", kWide, "--", "/bin/sh", "-c", kFlood});
    return ReadFlood(run.out);
  }
};

// One call's 10,000 connections through the role that serves another call too cost that one no more than the same 10,000 through
// another process, which takes as much of the machine. A role that is held up shows in the same measure.
TEST_F(DaemonEgressAbuse, AFloodOfOneCallDoesNotSlowAnother) {
  Declare("flooder", Plain("api.test",
                           "[[network.allow]]\nhost = \"*.wide.test\"\nmethods = "
                           "[\"GET\"]\npaths = [\"/**\"]\n"));
  ASSERT_TRUE(Start());
  (void)Call("reader", "true");  // the first call of a tool pays for more
  const auto elsewhere = [&] { return Measure([&] { return FloodAnother(); }); };
  const auto here = [&] { return Measure([&] { return FloodTheRole(); }); };
  // Another test beside this one slows any part of it. A flood that slows requests does so each time.
  double longer = 0;
  Waits control;
  std::string figures;
  for (int i = 0; i < 4 && (longer == 0 || longer >= kNoticed); ++i) {
    const std::optional<Waits> before = elsewhere(), flooded = here(), after = elsewhere();
    if (before && flooded && after) {
      control = *before;
      control.Add(*after);
      longer = TimesLonger(*flooded, control);
      figures += "elsewhere " + Describe(control) + "here " + Describe(*flooded);
    }
  }
  ASSERT_GT(longer, 0) << "NO-CONTROL: not measured";
  EXPECT_LT(longer, kNoticed) << "OPEN\n" << figures;
  RecordProperty("times_longer", std::to_string(longer));

  // The control: the role stands still most of the time.
  std::atomic<bool> ended = false;
  const pid_t role = daemon_.Find(RoleOf::kProxy);
  ASSERT_GT(role, 0);
  const auto pause = std::chrono::microseconds(4 * Quantile(control.fresh, 0.9));
  std::thread holds([&] {
    while (!ended) {
      ::kill(role, SIGSTOP);
      std::this_thread::sleep_for(pause);
      ::kill(role, SIGCONT);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  const std::optional<Waits> held =
      Measure([] { return std::optional(Interval(0, std::numeric_limits<double>::max())); });
  ended = true;
  holds.join();
  ASSERT_TRUE(held) << "NO-CONTROL";
  EXPECT_GE(TimesLonger(*held, control), kNoticed) << "NO-CONTROL";
}

// `limits.connections` on live traffic: a third one is not served while two are open, by the proxy and without one, and is
// when one of them has ended.
TEST_F(DaemonEgressAbuse, TheConnectionsOfACallAreCounted) {
  const std::string rule = "[[network.allow]]\nhost = \"api.test\"\ntls = \"none\"\nports = [" +
                           std::to_string(plain_) + "]\n";
  Declare("narrow", rule, "connections = 2\n");
  Declare("wide", rule);
  ASSERT_TRUE(Start());
  const std::string script = WithPort(R"(python3 -c "
import socket
def ask(to, first, wait):
    s = socket.create_connection(to, 30)
    s.settimeout(wait)
    s.sendall(first)
    return s
def line(s):
    try: return (s.recv(4096) or b'closed').split(b'\r\n')[0].decode()
    except socket.timeout: return 'waits'
def tunnel(wait=30): return ask(('127.0.0.1', 3128), b'CONNECT api.test:PORT HTTP/1.1\r\n\r\n', wait)
def direct(wait=30): return ask(('api.test', PORT), b'GET /v1/d HTTP/1.1\r\nHost: api.test\r\n\r\n', wait)
one = tunnel(); print('one', line(one))
two = direct(); print('two', line(two))
three = tunnel(1); said = line(three); print('three', said)
four = direct(1); print('four', line(four))
one.close(); two.close()
if said == 'waits':
    three.settimeout(30); four.settimeout(30)
    print('then', line(three), line(four))
")");
  const auto lines = [&](const std::string& tool) { return Lines(Out(Call(tool, script))); };
  const std::string tunnel = " HTTP/1.1 200 Connection established";
  const std::string direct = " HTTP/1.1 200 OK";
  EXPECT_EQ(lines("narrow"), (Strings{"one" + tunnel, "two" + direct, "three waits", "four waits",
                                      "then" + tunnel + direct}))
      << "OPEN";
  const Strings wide = lines("wide");
  ASSERT_EQ(wide.size(), 4U);
  EXPECT_EQ(wide[2], "three" + tunnel) << "NO-CONTROL";
  EXPECT_EQ(wide[3], "four" + direct) << "NO-CONTROL";
}

// A program that knows of no proxy is in the middle of an answer when the role dies: its call ends with a typed error, a call
// without network does not notice, and the next one is served by the new role.
TEST_F(DaemonEgressAbuse, AKilledRoleEndsProgramsWithoutAProxy) {
  Declare("direct", "[[network.allow]]\nhost = \"api.test\"\ntls = \"plain\"\nports = [" +
                        std::to_string(plain_) + "]\npaths = [\"/**\"]\n");
  ASSERT_TRUE(Start());
  const auto get = [&](const std::string& path) {
    return WithPort(R"(python3 -c "
import socket
s = socket.create_connection(('api.test', PORT), 30)
s.settimeout(30)
s.sendall(b'GET )" + path +
                    R"( HTTP/1.1\r\nHost: api.test:PORT\r\nConnection: close\r\n\r\n')
print('began', s.recv(9), flush=True)
try:
    while s.recv(4096): pass
    print('ended', flush=True)
except OSError as e: print('broken', e.__class__.__name__, flush=True)
")");
  };
  HttpAnswer user, other;
  std::thread with([&] { user = Call("direct", get("/lies/slow")); });
  std::thread without([&] { other = Call("mute", "sleep 3; echo whole"); });
  std::string seen;
  EXPECT_TRUE(WaitUntil([&] { return Contains(seen += Seen(), "GET /lies/slow"); })) << seen;
  EXPECT_TRUE(WaitUntil([&] { return daemon_.Runners().size() == 2; }));
  const pid_t before = daemon_.Find(RoleOf::kProxy);
  ASSERT_EQ(::kill(before, SIGKILL), 0);
  with.join();
  without.join();
  EXPECT_EQ(user.Outcome(), "error") << user.text;
  EXPECT_TRUE(Contains(user.text, "egress.ended")) << user.text;
  EXPECT_EQ(other.Outcome(), "success") << other.text;
  EXPECT_TRUE(WaitUntil([&] { return Contains(seen += Seen(), "slow ended"); })) << seen;
  EXPECT_TRUE(WaitUntil([&] {
    const pid_t now = daemon_.Find(RoleOf::kProxy);
    return now > 0 && now != before;
  }));
  EXPECT_TRUE(Contains(Out(Call("direct", get("/v1/again"))), "ended"));
  EXPECT_TRUE(Contains(Seen(), "GET /v1/again"));
}

}  // namespace
}  // namespace coffer::test
