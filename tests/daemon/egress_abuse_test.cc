// SPDX-License-Identifier: Apache-2.0
//
// The egress role under calls that abuse it: what one call's flood costs another, the limits of a rule on live traffic, and
// programs without a proxy when the role dies.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "tests/daemon/egress_daemon.h"

namespace coffer::test {
namespace {

// A request on a connection of its own and one on a kept connection, by turns, until the server says that it is over. A line for
// each pair: when it began, and the microseconds that each took. By the wall clock: each boundary has a monotonic clock of its own, which
// begins with it.
constexpr const char* kMeasure = R"(python3 -c "
import socket, time
HEAD = b'GET http://api.test:PORT/v1/until/over HTTP/1.1\r\nHost: api.test:PORT\r\n'
def dial():
    s = socket.create_connection(('127.0.0.1', 3128), 60)
    s.settimeout(60)
    return s
def ask(s, more):
    s.sendall(HEAD + more)
    got = b''
    while not got.endswith((b'go on', b'end it')):
        more = s.recv(4096)
        if not more: raise SystemExit('closed')
        got += more
    return got.endswith(b'go on')
kept, more, pairs = dial(), True, 0
while more and pairs < 20000:
    a = time.time()
    s = dial(); ask(s, b'Connection: close\r\n\r\n'); s.close()
    b = time.time()
    more = ask(kept, b'\r\n')
    print('%.6f %.0f %.0f' % (a, (b - a) * 1e6, (time.time() - b) * 1e6))
    pairs += 1
")";

// 10,000 connections, while 16 others stay in the middle of their head. Three batches of four ask for a host that is not allowed and hear
// so. The fourth begins TLS with one that is judged, all at once, which costs the proxy a handshake each, and leaves. A proxy has 64 in its hands at
// once, so of each batch some wait to be accepted. It takes turns with another one (egress_pages.py: turn), in parts of 1,250, and says
// of each part when it began and ended, and how many were answered.
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
def turn(what):
    s = one(); s.settimeout(120)
    s.sendall(b'GET http://api.test:PORT/v1/turn/' + what + b'/NAME HTTP/1.1\r\nHost: api.test:PORT\r\nConnection: close\r\n\r\n')
    answer(s, b'HTTP/1.1 200'); s.close()
def part():
    stuck = [one() for i in range(16)]
    for s in stuck: s.sendall(b'CONN')
    begin, count, batches = time.time(), 0, 0
    while count < 1250:
        tls = batches % 4 == 0
        batch = [one() for i in range(min(64, 1250 - count))]
        for s in batch:
            s.sendall(b'CONNECT n.wide.test:443 HTTP/1.1\r\n\r\n' + hello if tls else
                      b'CONNECT n.evil.test:443 HTTP/1.1\r\n\r\n')
        for s in batch:
            answer(s, b'\r\n\r\n\x16\x03' if tls else b'HTTP/1.1 403')
            s.close()
        count += len(batch); batches += 1
    end = time.time()
    for s in stuck: s.close()
    print('flooded %.6f %.6f %d' % (begin, end, count))
for i in range(8):
    turn(b'take'); part(); turn(b'give')
")";

// Microseconds of requests.
struct Waits {
  std::vector<long> fresh, kept;
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

  std::string WithPort(std::string text, const std::string& name = {}) const {
    for (const auto& [from, to] :
         {std::pair<std::string, std::string>{"PORT", std::to_string(plain_)}, {"NAME", name}}) {
      for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
        text.replace(at, from.size(), to);
      }
    }
    return text;
  }

  using Interval = std::pair<double, double>;
  using Intervals = std::vector<Interval>;
  struct Measured {
    std::string lines;  // of kMeasure
    // Of the requests that began and ended within one of them; nothing if they are too few to say something.
    std::optional<Waits> Within(const Intervals& when) const {
      Waits waits;
      for (const std::string& line : Lines(lines)) {
        double began = 0;
        long fresh = 0, kept = 0;
        if (sscanf(line.c_str(), "%lf %ld %ld", &began, &fresh, &kept) != 3) {
          continue;
        }
        const double ended = began + static_cast<double>(fresh + kept) / 1e6;
        if (std::any_of(when.begin(), when.end(), [&](const Interval& one) {
              return began >= one.first && ended <= one.second;
            })) {
          waits.fresh.push_back(fresh);
          waits.kept.push_back(kept);
        }
      }
      return waits.fresh.size() < kFewest ? std::nullopt : std::optional(std::move(waits));
    }
  };
  // What `reader` waits for its requests while `beside` runs.
  Measured Measure(const std::function<void()>& beside) {
    const std::string over = dir_.path() + "/over";
    std::filesystem::remove(over);
    HttpAnswer answer;
    std::thread reader([&] { answer = CallForLong("reader", WithPort(kMeasure)); });
    EXPECT_TRUE(WaitUntil([&] { return Contains(Seen(), "/v1/until"); }, Seconds(60)));
    beside();
    dir_.Write("over", "");
    reader.join();
    EXPECT_EQ(answer.Outcome(), "success") << answer.text.substr(0, 400);
    return {Out(answer)};
  }

  // The parts of one flood; none if it did not come to its end.
  static Intervals ReadFlood(const std::string& said) {
    Intervals parts;
    long all = 0;
    for (const std::string& line : Lines(said)) {
      Interval when;
      long count = 0;
      if (sscanf(line.c_str(), "flooded %lf %lf %ld", &when.first, &when.second, &count) == 3) {
        parts.push_back(when);
        all += count;
      }
    }
    return all == kFlooding ? parts : Intervals();
  }
  // Through the role that serves the measured call too. All of it is in the receipt.
  Intervals FloodTheRole() {
    const HttpAnswer flooded = CallForLong("flooder", WithPort(kFlood, "here"));
    const Intervals parts = ReadFlood(Out(flooded));
    if (parts.empty()) {
      // Without a cgroup the supervisor may end the flooding call as too fast to count.
      EXPECT_TRUE(::geteuid() != 0 && Contains(flooded.text, "faster than they can be counted"))
          << flooded.text.substr(0, 400);
      return parts;
    }
    long written = 0;
    const Json receipt = ReceiptOf(flooded);
    for (const Json& use : receipt["network"]) {
      written += use["count"].get<long>();
    }
    EXPECT_GE(written, kFlooding) << "NO-CONTROL: they did not reach the role";
    return parts;
  }
  // The same work for the machine, through an egress process of its own.
  Intervals FloodAnother() const {
    Strings words = {
        CofferPath(), "run",     "--quiet",
        "--wall",     "300s",    "--allow",
        kWide,        "--allow", "GET http://api.test:" + std::to_string(plain_) + "/v1/**"};
    const Strings here = Here();
    words.insert(words.end(), here.begin(), here.end());
    words.insert(words.end(), {"--", "/bin/sh", "-c", WithPort(kFlood, "elsewhere")});
    RunOptions options;
    options.timeout = Seconds(300);
    return ReadFlood(RunProgram(words, options).out);
  }
  // How many times longer requests take while the role stands still for `stop` after each `run`; 0: not measured.
  double HoldTheRole(std::chrono::duration<double> run, std::chrono::duration<double> stop) {
    const pid_t role = daemon_.Find(RoleOf::kProxy);
    EXPECT_GT(role, 0);
    const auto now = [] {
      return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch());
    };
    Intervals free, held;
    const Measured measured = Measure([&] {
      for (int i = 0; i < 6 && role > 0; ++i) {
        const bool holds = i % 2 == 1;
        const auto begin = now();
        for (size_t seen = 0; seen < kFewest && now() < begin + Seconds(60);) {
          // Counting takes longer than a request, so the role stands still meanwhile too.
          const auto until = now() + stop;
          if (holds) {
            ::kill(role, SIGSTOP);
          }
          for (const std::string& line : Lines(Seen())) {
            seen += Contains(line, "/v1/until") ? 1 : 0;
          }
          if (holds) {
            std::this_thread::sleep_for(until - now());
            ::kill(role, SIGCONT);
          }
          std::this_thread::sleep_for(run);
        }
        (holds ? held : free).emplace_back(begin.count(), now().count());
      }
    });
    const std::optional<Waits> without = measured.Within(free), with = measured.Within(held);
    return without && with ? TimesLonger(*with, *without) : 0;
  }
};

// One call's 10,000 connections through the role that serves another call too cost that one no more than the same 10,000 through
// another process, which takes as much of the machine. The two floods take turns while one call measures, so what else the
// machine does meets both alike. A role that is held up shows in the same measure.
TEST_F(DaemonEgressAbuse, AFloodOfOneCallDoesNotSlowAnother) {
  const std::string long_enough = "wall = \"300s\"\n";
  Declare("reader", Plain("api.test"), long_enough);
  Declare("flooder",
          Plain("api.test",
                "[[network.allow]]\nhost = \"*.wide.test\"\nmethods = "
                "[\"GET\"]\npaths = [\"/**\"]\n"),
          long_enough);
  ASSERT_TRUE(Start());
  (void)Call("reader", "true");  // the first call of a tool pays for more
  // A flood that slows requests does so each time.
  double longer = 0;
  Waits control;
  std::string figures;
  for (int i = 0; i < 3 && (longer == 0 || longer >= kNoticed); ++i) {
    Intervals through_role, through_another;
    const Measured measured = Measure([&] {
      std::thread beside([&] { through_another = FloodAnother(); });
      through_role = FloodTheRole();
      beside.join();
    });
    const std::optional<Waits> flooded = measured.Within(through_role);
    const std::optional<Waits> elsewhere = measured.Within(through_another);
    if (flooded && elsewhere) {
      control = *elsewhere;
      longer = TimesLonger(*flooded, control);
      figures += "elsewhere " + Describe(control) + "here " + Describe(*flooded);
    }
  }
  ASSERT_GT(longer, 0) << "NO-CONTROL: not measured";
  EXPECT_LT(longer, kNoticed) << "OPEN\n" << figures;
  RecordProperty("times_longer", std::to_string(longer));

  // The control: in every other part the role stands still most of the time, and runs as long as a request takes in between.
  // A machine that has become slower meanwhile hides short stops, so the next ones are longer.
  const auto usual = std::chrono::duration<double>(1e-6 * Quantile(control.fresh, 0.5));
  double noticed = 0;
  for (int times = 8; times <= 72 && noticed < kNoticed; times *= 3) {
    noticed = std::max(noticed, HoldTheRole(usual, times * usual));
  }
  EXPECT_GE(noticed, kNoticed) << "NO-CONTROL";
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
