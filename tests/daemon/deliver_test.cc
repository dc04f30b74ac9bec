// SPDX-License-Identifier: Apache-2.0
//
// What the daemon tells others: it arrives, signed, at least once, whatever the receiver does, and no call waits for it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "tests/daemon/daemon.h"
#include "tests/daemon/http_receiver.h"
#include "tests/support/export_rules.h"

namespace coffer::test {
namespace {

constexpr const char* kTraceParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

class Deliver : public ::testing::Test {
 protected:
  Deliver() : secret_(NewToken()), secret_file_(dir_.Write("secret", secret_ + "\n", 0600)) {}

  std::string Webhook(const HttpReceiver& receiver, const std::string& more = {}) const {
    return "[[webhook]]\nurl = \"" + receiver.Url("/hook?token=x") + "\"\nsecret_file = \"" +
           secret_file_ + "\"\n" + more;
  }
  static std::string Otlp(const HttpReceiver& receiver) {
    return "[otlp]\nendpoint = \"" + receiver.Url("") + "\"\n";
  }
  bool Start(Daemon& daemon, const std::string& config) const {
    const std::string file = dir_.Write("coffer.toml", config, 0600);
    return daemon.Start({"--config", file});
  }
  // A daemon that does not start with it.
  RunResult Refused(const std::string& config, unsigned mode = 0600) const {
    const std::string file = dir_.Write("bad.toml", config, mode);
    EXPECT_EQ(::chmod(file.c_str(), mode), 0);
    return RunProgram({CofferPath(), "serve", "--state", dir_ / "bad-state", "--listen",
                       "127.0.0.1:0", "--json", "--config", file},
                      {.timeout = Seconds(20)});
  }
  // A call that does nothing; its id.
  static std::string Work(const Daemon& daemon, const std::string& fields = {}) {
    const HttpAnswer answer = daemon.Call(daemon.key(), Bash("true"), fields);
    EXPECT_EQ(answer.Outcome(), "success") << answer.text;
    return answer.At("call_id");
  }
  // Of all that came: the calls that were told.
  static std::set<std::string> Told(const HttpReceiver& receiver) {
    std::set<std::string> calls;
    for (const Posted& post : receiver.posts()) {
      calls.insert(post.json().value("subject", ""));
    }
    return calls;
  }
  static bool WaitForCalls(const HttpReceiver& receiver, const std::set<std::string>& calls,
                           Seconds limit = Seconds(30)) {
    return WaitUntil(
        [&] {
          const std::set<std::string> told = Told(receiver);
          return std::includes(told.begin(), told.end(), calls.begin(), calls.end());
        },
        limit);
  }
  static bool WaitForSaid(const Daemon& daemon, const std::string& words,
                          Seconds limit = Seconds(20)) {
    return WaitUntil([&] { return Contains(daemon.Said(), words); }, limit);
  }

  TempDir dir_;
  const std::string secret_, secret_file_;
};

TEST_F(Deliver, EventsArriveAndTheirSignaturesAreGood) {
  HttpReceiver receiver;
  Daemon daemon;
  ASSERT_TRUE(Start(daemon, Webhook(receiver)));
  const std::string good = Work(daemon, std::string("traceparent: ") + kTraceParent + "\r\n");
  const HttpAnswer denied =
      daemon.Call(daemon.key(), {{"tool", "bash"}, {"args", {{"nonsense", 1}}}});
  EXPECT_EQ(denied.Outcome(), "denied") << denied.text;
  ASSERT_EQ(
      daemon.Ask("PUT", "/v1/switches/tool/python", daemon.key(), R"({"reason":"drill"})").status,
      200);
  const auto of_type = [&](const std::string& type) {
    for (const Posted& post : receiver.posts()) {
      if (post.json().value("type", "") == "io.cofferdam." + type) {
        return post.json();
      }
    }
    return Json();
  };
  EXPECT_TRUE(WaitUntil([&] {
    return of_type("call.finished").is_object() && of_type("call.denied").is_object() &&
           of_type("switch.on").is_object();
  }));
  EXPECT_EQ(of_type("call.finished")["subject"], good);
  EXPECT_EQ(of_type("call.finished")["data"]["outcome"], "success");
  EXPECT_TRUE(Contains(of_type("call.finished").value("traceparent", ""),
                       "4bf92f3577b34da6a3ce929d0e0e4736"));
  EXPECT_EQ(of_type("call.denied")["subject"], denied.At("call_id"));
  for (const Posted& post : receiver.posts()) {
    EXPECT_EQ(CheckCloudEvent(post.json()), Strings()) << post.body;
    EXPECT_LE(post.body.size(), 65536U);
    std::map<std::string, std::string> fields = post.fields;
    EXPECT_EQ(fields["content-type"], "application/cloudevents+json; charset=utf-8");
    EXPECT_EQ(post.path, "/hook?token=x");
    EXPECT_EQ(fields["webhook-id"], post.json()["id"]);
    const std::string time = fields["webhook-timestamp"];
    EXPECT_NEAR(std::stod(time), static_cast<double>(::time(nullptr)), 60);
    const std::string signed_text = fields["webhook-id"] + "." + time + "." + post.body;
    EXPECT_EQ(fields["webhook-signature"], "t=" + time + ",v1=" + HmacHex(secret_, signed_text));
    EXPECT_NE(HmacHex(secret_, signed_text), HmacHex(secret_, signed_text + " ")) << "the control";
  }
}

TEST_F(Deliver, OnlyTheEventsThatWereAskedForArrive) {
  HttpReceiver all, some;
  Daemon daemon;
  ASSERT_TRUE(Start(daemon, Webhook(all) + Webhook(some, "events = [\"call.denied\"]\n")));
  Work(daemon);
  EXPECT_EQ(daemon.Call(daemon.key(), {{"tool", "bash"}, {"args", {{"x", 1}}}}).Outcome(),
            "denied");
  ASSERT_TRUE(all.WaitForPosts(2));
  ASSERT_TRUE(some.WaitForPosts(1));
  for (const Posted& post : some.posts()) {
    EXPECT_EQ(post.json()["type"], "io.cofferdam.call.denied");
  }
}

TEST_F(Deliver, TracesFollowTheSchemaAndHangWhereTheAgentsTraceIs) {
  HttpReceiver collector;
  Daemon daemon;
  ASSERT_TRUE(Start(daemon, Otlp(collector)));
  std::set<std::string> calls = {
      Work(daemon, std::string("traceparent: ") + kTraceParent + "\r\n")};
  for (int i = 0; i < 5; ++i) {
    calls.insert(Work(daemon));
  }
  std::map<std::string, Json> spans;
  const auto look = [&] {
    for (const Posted& post : collector.posts()) {
      EXPECT_EQ(CheckOtlp(post.json()), Strings()) << post.body;
      EXPECT_EQ(post.path, "/v1/traces");
      for (const Json& span : SpansOf(post.json())) {
        if (span.value("name", "") == "execute_tool bash") {
          spans[AttributeOf(span, "gen_ai.tool.call.id")] = span;
        }
      }
    }
    return spans.size() >= calls.size();
  };
  EXPECT_TRUE(WaitUntil(look, Seconds(20)));
  size_t in_trace = 0;
  for (const auto& [call, span] : spans) {
    EXPECT_TRUE(calls.contains(call));
    if (span["traceId"] == "4bf92f3577b34da6a3ce929d0e0e4736") {
      ++in_trace;
      EXPECT_EQ(span["parentSpanId"], "00f067aa0ba902b7");
    }
  }
  EXPECT_EQ(in_trace, 1U);
}

// Resolving happens inside the role: under its filter, without any file but those it needs for that.
TEST_F(Deliver, AReceiverMayHaveAName) {
  HttpReceiver receiver;
  std::string config = Webhook(receiver);
  const size_t host = config.find("127.0.0.1");
  ASSERT_NE(host, std::string::npos);
  Daemon daemon;
  ASSERT_TRUE(Start(daemon, config.replace(host, 9, "localhost")));
  const std::string call = Work(daemon);
  EXPECT_TRUE(WaitForCalls(receiver, {call})) << daemon.Said();
  EXPECT_TRUE(receiver.posts().at(0).fields.at("host").starts_with("localhost:"));
}

TEST_F(Deliver, AReceiverThatWasAwayGetsEverything) {
  HttpReceiver receiver;
  Daemon daemon;
  ASSERT_TRUE(Start(daemon, Webhook(receiver)));
  receiver.Leave();
  std::set<std::string> calls;
  for (int i = 0; i < 5; ++i) {
    calls.insert(Work(daemon));
  }
  ASSERT_TRUE(WaitForSaid(daemon, "it cannot be reached"));
  EXPECT_EQ(receiver.posts().size(), 0U) << "the control";
  receiver.ComeBack();
  EXPECT_TRUE(WaitForCalls(receiver, calls)) << Told(receiver).size() << " of 5";
  EXPECT_TRUE(WaitForSaid(daemon, "it answers again"));
}

TEST_F(Deliver, WhatFailsIsSentAgainAsTheSameEvent) {
  HttpReceiver receiver;
  std::atomic<int> left{2};
  receiver.Answer([&](const Posted&) {
    return std::string(left-- > 0 ? "HTTP/1.1 503 No\r\nRetry-After: 1\r\n"
                                  : "HTTP/1.1 204 Yes\r\n") +
           "Content-Length: 0\r\n\r\n";
  });
  Daemon daemon;
  ASSERT_TRUE(Start(daemon, Webhook(receiver)));
  const std::string call = Work(daemon);
  ASSERT_TRUE(receiver.WaitForPosts(3, Seconds(30)));
  std::set<std::string> ids, bodies;
  for (const Posted& post : receiver.posts()) {
    ids.insert(post.fields.at("webhook-id"));
    bodies.insert(post.body);
  }
  EXPECT_EQ(ids, std::set<std::string>{"call." + call});
  EXPECT_EQ(bodies.size(), 1U);
}

TEST_F(Deliver, WhatWaitsSurvivesAKill) {
  HttpReceiver receiver;
  receiver.Leave();
  Daemon daemon;
  ASSERT_TRUE(Start(daemon, Webhook(receiver)));
  std::set<std::string> calls;
  for (int i = 0; i < 4; ++i) {
    calls.insert(Work(daemon));
  }
  ASSERT_EQ(::kill(daemon.monitor(), SIGKILL), 0);
  ASSERT_TRUE(daemon.Gone());
  receiver.ComeBack();
  EXPECT_EQ(receiver.posts().size(), 0U) << "the control";
  ASSERT_TRUE(Start(daemon, Webhook(receiver)));
  EXPECT_TRUE(WaitForCalls(receiver, calls)) << Told(receiver).size() << " of 4";
}

// A call that was running when everything was killed ended too.
TEST_F(Deliver, ACallThatAKillInterruptedIsToldOf) {
  HttpReceiver receiver;
  Daemon daemon;
  ASSERT_TRUE(Start(daemon, Webhook(receiver)));
  const std::string session = daemon.NewSession(daemon.key());
  const HttpAnswer began = daemon.Call(daemon.key(), Bash(WaitForGo(), session), kAsync);
  ASSERT_TRUE(WaitUntil([&] { return Exists(daemon.Workspace(session) + "/began"); }));
  ASSERT_EQ(::kill(daemon.monitor(), SIGKILL), 0);
  ASSERT_TRUE(daemon.Gone());
  ASSERT_TRUE(Start(daemon, Webhook(receiver)));
  EXPECT_TRUE(WaitForCalls(receiver, {began.At("call_id")}));
  for (const Posted& post : receiver.posts()) {
    if (post.json()["subject"] == began.At("call_id")) {
      EXPECT_EQ(post.json()["data"]["outcome"], "unknown");
    }
  }
}

TEST_F(Deliver, AReceiverThatHangsSlowsNoCall) {
  HttpReceiver hanging;
  hanging.Answer([](const Posted&) { return std::string(); });
  Daemon with, without;
  ASSERT_TRUE(Start(with, Webhook(hanging) + Otlp(hanging)));
  ASSERT_TRUE(without.Start());
  using Clock = std::chrono::steady_clock;
  std::vector<double> slow, fast;
  const auto took = [](const Daemon& daemon) {
    const Clock::time_point begin = Clock::now();
    Work(daemon);
    return Seconds(Clock::now() - begin).count();
  };
  took(with), took(without);
  // In turns, so that whatever else the machine does hits both.
  for (int i = 0; i < 25; ++i) {
    slow.push_back(took(with));
    fast.push_back(took(without));
  }
  EXPECT_TRUE(hanging.WaitForPosts(1)) << "the control: it was asked";
  std::sort(slow.begin(), slow.end());
  std::sort(fast.begin(), fast.end());
  const double ratio = slow[slow.size() / 2] / fast[fast.size() / 2];
  RecordProperty("ratio", std::to_string(ratio));
  EXPECT_EQ(with.Stop(), 0);
  EXPECT_EQ(without.Stop(), 0);
  // A call that waited for the receiver would take seconds.
  EXPECT_LT(ratio, 4) << slow[12] << " s against " << fast[12] << " s";
}

TEST_F(Deliver, ARedirectIsNotFollowed) {
  HttpReceiver elsewhere, receiver;
  receiver.Answer(302, "Location: " + elsewhere.Url("/stolen") + "\r\n");
  Daemon daemon;
  ASSERT_TRUE(Start(daemon, Webhook(receiver)));
  const std::string call = Work(daemon);
  // It is a refusal: tried again as it is, not somewhere else.
  ASSERT_TRUE(receiver.WaitForPosts(3, Seconds(30)));
  EXPECT_EQ(Told(receiver), std::set<std::string>{call});
  EXPECT_EQ(elsewhere.connections(), 0U);
}

TEST_F(Deliver, WhatIsRefusedEachTimeIsDroppedAndSaid) {
  HttpReceiver receiver;
  receiver.Answer(410);
  Daemon daemon;
  ASSERT_TRUE(Start(daemon, Webhook(receiver)));
  Work(daemon);
  EXPECT_TRUE(WaitForSaid(daemon, "1 event(s) dropped", Seconds(40))) << daemon.Said();
  EXPECT_EQ(receiver.posts().size(), 5U);
  EXPECT_FALSE(Contains(daemon.Said(), "token=x")) << "the path of the URL is nobody's business";
}

TEST_F(Deliver, AHugeAnswerIsNotRead) {
  HttpReceiver receiver;
  receiver.Answer(
      [](const Posted&) { return "HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n"; });
  receiver.AddBody(1ULL << 30);
  Daemon daemon;
  ASSERT_TRUE(Start(daemon, Webhook(receiver)));
  const std::string first = Work(daemon);
  ASSERT_TRUE(receiver.WaitForPosts(1));
  const std::string second = Work(daemon);
  ASSERT_TRUE(WaitForCalls(receiver, {first, second}));
  EXPECT_EQ(receiver.posts().size(), 2U) << "it was taken as an answer, once";
  EXPECT_LT(receiver.body_sent(), 64ULL << 20) << "what the kernel buffers, and no more";
  // A head without end is none.
  receiver.AddBody(0);
  receiver.Answer([](const Posted&) {
    return "HTTP/1.1 200 OK\r\nX: " + std::string(1 << 20, 'x') + "\r\n\r\n";
  });
  Work(daemon);
  EXPECT_TRUE(WaitForSaid(daemon, "its events wait")) << daemon.Said();
}

class DeliverTls : public Deliver {
 protected:
  ~DeliverTls() override { ::unsetenv("SSL_CERT_FILE"); }
  std::vector<std::string> Certificate(const std::string& name, const std::string& for_names,
                                       Validity validity = Validity::kNow) const {
    std::vector<std::string> files = {dir_ / (name + ".crt"), dir_ / (name + ".key")};
    MakeCertificate(for_names, files[0], files[1], validity);
    return files;
  }
};

TEST_F(DeliverTls, ATrustedReceiverGetsItsEvents) {
  const std::vector<std::string> files = Certificate("good", "IP:127.0.0.1");
  ::setenv("SSL_CERT_FILE", files[0].c_str(), 1);
  HttpReceiver receiver(files);
  Daemon daemon;
  ASSERT_TRUE(Start(daemon, Webhook(receiver)));
  const std::string call = Work(daemon);
  EXPECT_TRUE(WaitForCalls(receiver, {call})) << daemon.Said();
}

TEST_F(DeliverTls, ACertificateThatNobodyVouchesForIsRefused) {
  const std::vector<std::string> trusted = Certificate("trusted", "IP:127.0.0.1");
  ::setenv("SSL_CERT_FILE", trusted[0].c_str(), 1);
  HttpReceiver receiver(Certificate("other", "IP:127.0.0.1"));
  Daemon daemon;
  ASSERT_TRUE(Start(daemon, Webhook(receiver)));
  Work(daemon);
  EXPECT_TRUE(WaitForSaid(daemon, "its certificate is not trusted")) << daemon.Said();
  EXPECT_GT(receiver.connections(), 0U);
  EXPECT_EQ(receiver.posts().size(), 0U);
}

TEST_F(DeliverTls, ACertificateForSomebodyElseIsRefused) {
  const std::vector<std::string> files = Certificate("else", "DNS:other.example,IP:127.0.0.2");
  ::setenv("SSL_CERT_FILE", files[0].c_str(), 1);
  HttpReceiver receiver(files);
  Daemon daemon;
  ASSERT_TRUE(Start(daemon, Webhook(receiver)));
  Work(daemon);
  EXPECT_TRUE(WaitForSaid(daemon, "its certificate is not trusted")) << daemon.Said();
  EXPECT_EQ(receiver.posts().size(), 0U);
}

TEST_F(DeliverTls, ACertificateOutsideItsTimeIsRefused) {
  for (const Validity validity : {Validity::kOver, Validity::kToCome}) {
    const std::vector<std::string> files = Certificate("time", "IP:127.0.0.1", validity);
    ::setenv("SSL_CERT_FILE", files[0].c_str(), 1);
    HttpReceiver receiver(files);
    Daemon daemon;
    ASSERT_TRUE(Start(daemon, Webhook(receiver)));
    Work(daemon);
    EXPECT_TRUE(WaitForSaid(daemon, "its certificate is not trusted")) << daemon.Said();
    EXPECT_GT(receiver.connections(), 0U);
    EXPECT_EQ(receiver.posts().size(), 0U);
  }
}

// Whether a process has these bytes in its memory.
bool MemoryHolds(pid_t pid, const std::string& bytes) {
  const std::string proc = "/proc/" + std::to_string(pid);
  const int memory = ::open((proc + "/mem").c_str(), O_RDONLY | O_CLOEXEC);
  EXPECT_GE(memory, 0);
  bool found = false;
  for (const std::string& line : Lines(ReadFile(proc + "/maps").value_or(""))) {
    unsigned long begin = 0, end = 0;
    char rights[5] = {};
    if (std::sscanf(line.c_str(), "%lx-%lx %4s", &begin, &end, rights) != 3 || rights[0] != 'r' ||
        rights[1] != 'w' || end - begin > (256UL << 20)) {
      continue;
    }
    std::string part(end - begin, '\0');
    const ssize_t got = ::pread(memory, part.data(), part.size(), static_cast<off_t>(begin));
    part.resize(got > 0 ? static_cast<size_t>(got) : 0);
    found = found || Contains(part, bytes);
  }
  ::close(memory);
  return found;
}

TEST_F(Deliver, OnlyTheEgressRoleHasTheSecret) {
  if (!IsRoot()) {
    GTEST_SKIP() << "only root may look into the memory of a process that is not dumpable";
  }
  HttpReceiver receiver;
  Daemon daemon;
  ASSERT_TRUE(Start(daemon, Webhook(receiver)));
  const std::string call = Work(daemon);
  ASSERT_TRUE(WaitForCalls(receiver, {call}));
  EXPECT_TRUE(MemoryHolds(daemon.Find(RoleOf::kEgress), secret_)) << "the control";
  for (const RoleOf role : {RoleOf::kMonitor, RoleOf::kGateway, RoleOf::kWarden}) {
    EXPECT_FALSE(MemoryHolds(daemon.Find(role), secret_)) << static_cast<int>(role);
  }
}

TEST_F(Deliver, AMistakeInTheConfigurationEndsTheStart) {
  const RunResult plain = Refused("[[webhook]]\nurl = \"http://example.com/\"\n");
  EXPECT_EQ(plain.exit, 120) << plain.Describe();
  EXPECT_TRUE(Contains(plain.err, "http:// to another host")) << plain.err;
  const RunResult writable = Refused("[[webhook]]\nurl = \"https://example.com/\"\n", 0666);
  EXPECT_EQ(writable.exit, 120) << writable.Describe();
  const RunResult missing = Refused("[[webhook]]\nurl = \"http://127.0.0.1:1/\"\nsecret_file = \"" +
                                    (dir_ / "none") + "\"\n");
  EXPECT_EQ(missing.exit, 125) << missing.Describe();
  EXPECT_TRUE(Contains(missing.err, "none")) << missing.err;
}

// However the operator writes it, unless its range is opened.
TEST_F(Deliver, AMetadataServiceIsNoReceiver) {
  const auto webhook = [](const std::string& url) {
    return "[[webhook]]\nurl = \"" + url + "\"\n";
  };
  const auto collector = [](const std::string& url) {
    return "[otlp]\nendpoint = \"" + url + "\"\n";
  };
  for (const auto& [config, why] :
       {std::pair(webhook("https://169.254.169.254/x"), "metadata service of a cloud"),
        std::pair(webhook("https://metadata.google.internal/x"), "metadata service of a cloud"),
        std::pair(webhook("https://[fd00:ec2::254]/x"), "metadata service of a cloud"),
        std::pair(webhook("https://169.254.7.7/x"), "a link-local address"),
        std::pair(collector("http://[fe80::7]:4318"), "a link-local address")}) {
    const RunResult run = Refused(config);
    EXPECT_EQ(run.exit, 120) << "OPEN: " << config << run.Describe();
    EXPECT_TRUE(Contains(run.err, why)) << run.err;
  }
  Daemon daemon;
  EXPECT_TRUE(Start(daemon, "[egress]\ndangerously_addresses = [\"169.254.7.7/32\"]\n" +
                                webhook("https://169.254.7.7/x")))
      << "the control";
}

}  // namespace
}  // namespace coffer::test
