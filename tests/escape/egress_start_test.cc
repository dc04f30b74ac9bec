// SPDX-License-Identifier: Apache-2.0
//
// The start of a call with network, attacked from beside: an egress process that hangs, says the wrong thing or says it for ever, an
// init that hangs, a start that is interrupted, an environment that tells OpenSSL what to load, and an address that the host gets
// while the call runs.
//
// The egress process is whatever is called cofferd beside coffer, so these tests put a script there.
#include <errno.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <memory>

#include "tests/support/run.h"
#include "tests/support/verdicts.h"

namespace coffer::test {
namespace {

constexpr const char* kSpliced = "api.test:443";
constexpr const char* kJudged = "GET https://api.test/**";
// The process hangs.
constexpr const char* kSilent = "exec sleep 1000";
// The process stops init, once that waits for the certificate, and then says what a good one says.
constexpr const char* kStopsInit = R"sh(
init=; before=; now=-
until [ "$init" ] && [ "$before" = "$now" ] && grep -q 'State:.S' /proc/$init/status; do
  before=$now
  for p in $(cat /proc/$PPID/task/$PPID/children); do [ $p = $$ ] || init=$p; done
  sleep 0.1
  now=$(cat /proc/$init/status)
done
kill -STOP $init
echo $init >>"$0.init"
printf 'K%s\n' "$(cat "$0.pem")" >&3
printf R >&3
exec sleep 1000)sh";

class EgressStart : public ::testing::Test {
 protected:
  void SetUp() override {
    ::chmod(dir_.path().c_str(), 0755);
    std::filesystem::copy_file(CofferPath(), dir_ / "coffer");
  }

  // A call whose egress process is this script of sh. Descriptor 3 leads to the supervisor; a write is one message.
  std::unique_ptr<Background> Begin(const std::string& script, const char* rule,
                                    const std::string& command, const char* wall = "60s") {
    // Its number, by that of the call.
    dir_.Write("cofferd", "#!/bin/sh\necho $$ >$0.$PPID\n" + script + "\n", 0755);
    std::filesystem::remove(dir_ / "receipt");
    return std::make_unique<Background>(
        Strings{dir_ / "coffer", "run", "--quiet", "--receipt", dir_ / "receipt", "--wall", wall,
                "--allow", rule, "--", "/bin/sh", "-c", command},
        options_);
  }
  RunResult CallWith(const std::string& script, const char* rule, const std::string& command,
                     const char* wall = "60s") {
    return Begin(script, rule, command, wall)->Wait();
  }
  pid_t ScriptOf(pid_t call) const {
    const std::string name = "cofferd." + std::to_string(call);
    return Exists(dir_ / name) ? ::atoi(dir_.Read(name).c_str()) : 0;
  }
  std::string Real() const {
    return "exec " + (std::filesystem::path(CofferPath()).parent_path() / "cofferd").string() +
           " egress-call";
  }
  // Its script has said all it says, and the call itself sleeps: not once did it run between twenty looks.
  bool Hangs(const Background& call) const {
    std::string before;
    int same = 0;
    return WaitUntil([&] {
      const std::string script = std::to_string(ScriptOf(call.pid()));
      const std::string status =
          ReadFile("/proc/" + std::to_string(call.pid()) + "/status").value_or("");
      const bool sleeps = Contains(status, "State:\tS") && status == before &&
                          ReadFile("/proc/" + script + "/comm") == "sleep\n";
      before = status;
      same = sleeps ? same + 1 : 0;
      return same >= 20;
    });
  }
  // 0: a process that was killed before it could write its number.
  static bool IsGone(pid_t pid) { return pid == 0 || (::kill(pid, 0) != 0 && errno == ESRCH); }

  TempDir dir_;
  RunOptions options_;
};

TEST_F(EgressStart, AProcessThatHangsEndsTheCallInItsTime) {
  const RunResult control = CallWith(Real(), kJudged, "echo ran");
  ASSERT_EQ(control.out, "ran\n") << "NO-CONTROL: the script cannot be the process\n"
                                  << control.Describe();

  const struct {
    const char* what;
    const char* script;
    const char* rule;
  } cases[] = {
      {"silent", "exec sleep 1000", kSpliced},
      {"silent, and its certificate is awaited", "exec sleep 1000", kJudged},
      {"stopped", "kill -STOP $$", kJudged},
      {"says its certificate for ever", "while :; do printf K >&3; sleep 0.1; done", kSpliced},
      {"never confined", "printf K >&3; exec sleep 1000", kSpliced},
  };
  for (const auto& one : cases) {
    SCOPED_TRACE(one.what);
    // Its process begins earlier and has more time: it must still be waited for when the other is not.
    const std::unique_ptr<Background> patient = Begin(one.script, one.rule, "echo ran");
    ASSERT_TRUE(WaitUntil([&] { return ScriptOf(patient->pid()) > 0; }));
    const std::unique_ptr<Background> call = Begin(one.script, one.rule, "echo ran", "1s");
    const RunResult run = call->Wait();
    EXPECT_FALSE(patient->ended()) << "OPEN: the wall time does not count";
    EXPECT_FALSE(run.timed_out) << "OPEN: the call hangs";
    EXPECT_EQ(run.exit, 125) << run.Describe();
    EXPECT_TRUE(Contains(run.err, "egress.start")) << run.Describe();
    EXPECT_EQ(run.out, "") << "OPEN: the command ran without its network";
    EXPECT_TRUE(IsGone(ScriptOf(call->pid()))) << "OPEN: the process is left";
  }
}

// Ctrl-C, or a SIGTERM, while the call waits for its egress process or for init: it ends at once, as it would once its command runs, and
// leaves nothing.
TEST_F(EgressStart, ASignalEndsACallThatStillStarts) {
  // What a user sees of a call that is interrupted later.
  struct Seen {
    int exit = 0;
    std::string outcome, error_class, message;
    Json cpu;  // that it used; null: not known
  };
  const auto interrupt = [&](Background& call, int signal) {
    call.Signal(signal);
    const RunResult run = call.Wait();
    EXPECT_FALSE(run.timed_out) << run.Describe();
    const Json receipt =
        Json::parse(ReadFile(dir_ / "receipt").value_or(""), nullptr, /*allow_exceptions=*/false);
    const auto text = [&](const char* place) {
      const Json::json_pointer at(place);
      return receipt.is_object() && receipt.contains(at) && receipt[at].is_string()
                 ? receipt[at].get<std::string>()
                 : "missing in " + receipt.dump();
    };
    return Seen{run.exit, text("/outcome"), text("/error/class"), text("/error/message"),
                receipt.value("/limits/cpu/used"_json_pointer, Json())};
  };
  // Any certificate does.
  const RunResult made = RunProgram(
      {"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
       "-keyout", "/dev/null", "-out", dir_ / "cofferd.pem", "-days", "1", "-subj", "/CN=any"});
  ASSERT_EQ(made.exit, 0) << made.Describe();

  const struct {
    const char* what;
    const char* script;
    const char* rule;
    bool stops_init;
  } cases[] = {
      {"the process is silent", kSilent, kSpliced, false},
      {"the process is silent, and its certificate is awaited", kSilent, kJudged, false},
      {"init is stopped", kStopsInit, kJudged, true},
  };
  for (const int signal : {SIGINT, SIGTERM}) {
    const std::unique_ptr<Background> runs = Begin(Real(), kJudged, "echo runs; sleep 1000");
    ASSERT_TRUE(runs->WaitForOutput("runs")) << "NO-CONTROL";
    const Seen later = interrupt(*runs, signal);
    EXPECT_EQ(later.exit, 128 + signal) << "NO-CONTROL";
    EXPECT_EQ(later.error_class, "policy.cancelled") << "NO-CONTROL";
    EXPECT_GT(later.cpu, 0) << "NO-CONTROL";
    for (const auto& one : cases) {
      SCOPED_TRACE(one.what);
      std::filesystem::remove(dir_ / "cofferd.init");
      // Begun earlier and not told to end: it must still hang when the other has ended.
      const std::unique_ptr<Background> control = Begin(one.script, one.rule, "echo ran");
      ASSERT_TRUE(Hangs(*control)) << "NO-CONTROL";
      const std::unique_ptr<Background> call = Begin(one.script, one.rule, "echo ran");
      ASSERT_TRUE(Hangs(*call)) << "NO-CONTROL";
      const Seen now = interrupt(*call, signal);
      EXPECT_FALSE(control->ended()) << "OPEN: the signal waited for the end of the start";
      EXPECT_EQ(now.exit, later.exit);
      EXPECT_EQ(now.outcome, later.outcome);
      EXPECT_EQ(now.error_class, later.error_class);
      EXPECT_EQ(now.message, later.message);
      EXPECT_EQ(now.cpu, 0) << "what is not known counts as all of it, in a call that makes calls";
      EXPECT_EQ(call->out(), "") << "OPEN: the command ran";
      EXPECT_TRUE(IsGone(ScriptOf(call->pid()))) << "OPEN: the process is left";
      if (one.stops_init) {
        const Strings stopped = Lines(dir_.Read("cofferd.init"));
        ASSERT_EQ(stopped.size(), 2U) << "NO-CONTROL";
        EXPECT_FALSE(IsGone(::atoi(stopped[0].c_str()))) << "NO-CONTROL";
        EXPECT_TRUE(IsGone(::atoi(stopped[1].c_str()))) << "OPEN: init is left";
      }
    }
  }
}

// The root is writable for init until the certificate has come. Nothing of the command runs by then, and none of it can write there
// afterwards.
TEST_F(EgressStart, TheCommandNeverSeesARootThatIsNotSealed) {
  const std::string command =
      "echo ran; for f in /etc/coffer/ca-bundle.pem /etc/coffer/new /etc/new; do echo x 2>&- >>$f "
      "&& echo "
      "wrote $f; done; echo x >>/tmp/new && echo wrote /tmp/new";
  const RunResult control = CallWith(Real(), kJudged, command);
  ASSERT_TRUE(Contains(control.out, "ran\n") && Contains(control.out, "wrote /tmp/new"))
      << "NO-CONTROL: the command cannot write where it may\n"
      << control.Describe();
  EXPECT_EQ(control.out, "ran\nwrote /tmp/new\n") << "OPEN\n" << control.Describe();

  for (const char* const script :
       {"printf 'K%s' \"$(cat /etc/passwd)\" >&3; printf R >&3; exec sleep 1000",  // no certificate
        "printf K >&3; printf R >&3; exec sleep 1000",                             // none at all
        "printf R >&3; exec sleep 1000",                                           // too early
        "printf K >&3; exit 0",                                                    // gone after it
        "exit 0"}) {
    const RunResult run = CallWith(script, kJudged, command);
    EXPECT_EQ(run.out, "") << "OPEN: " << script;
    EXPECT_EQ(run.exit, 125) << run.Describe();
    EXPECT_TRUE(Contains(run.err, "egress.")) << run.Describe();
  }
}

// A variable of the caller's may come from a project (a file of settings, an IDE). It must not name a library for the process that holds
// the boundary's key.
TEST_F(EgressStart, TheCallersEnvironmentDoesNotConfigureItsOpenssl) {
  const std::string config =
      dir_.Write("openssl.cnf",
                 "config_diagnostics = 1\nopenssl_conf = init\n[init]\nproviders = list\n[list]\n"
                 "evil = evil\n[evil]\nmodule = /nonexistent/evil.so\nactivate = 1\n");
  const RunResult control = CallWith("OPENSSL_CONF=" + config + " " + Real(), kJudged, "echo ran");
  ASSERT_EQ(control.out, "") << "NO-CONTROL: the process does not heed the variable\n"
                             << control.Describe();
  options_.environment = {{"OPENSSL_CONF=" + config, "OPENSSL_MODULES=" + dir_.path(),
                           "OPENSSL_ENGINES=" + dir_.path(), "LD_PRELOAD=/nonexistent/evil.so",
                           "HOME=" + dir_.path(), "PATH=/usr/bin:/bin"}};
  const RunResult run = CallWith(Real(), kJudged, "echo ran");
  EXPECT_EQ(run.out, "ran\n") << "OPEN: a variable of the caller reached the process\n"
                              << run.Describe();
}

// The host's own openssl.cnf is broken: what OpenSSL makes nothing of changes nothing, and where it has no P-256 left, calls that need
// one fail as the host's fault, with a hint. Others run.
TEST_F(EgressStart, ABrokenConfigurationOfOpensslIsTheHostsFault) {
  const RunResult control = CallWith(Real(), kJudged, "echo ran");
  ASSERT_EQ(control.out, "ran\n") << "NO-CONTROL: it fails with a good one too\n"
                                  << control.Describe();
  const std::string no_provider =
      "openssl_conf = init\n[init]\nproviders = list\n[list]\nno = no\n[no]\n"
      "module = /nonexistent/no.so\nactivate = 1\n";
  const struct {
    const char* what;
    std::string text;
    bool has_keys;
  } cases[] = {
      {"noise", std::string("\x7f\x45\0[\xff\n]\n===\n$(\n", 14), true},
      {"syntax", "[broken\nno = = \n.include /nonexistent\n", true},
      {"TLS settings that mean nothing",
       "openssl_conf = init\n[init]\nssl_conf = s\n[s]\nsystem_default = d\n[d]\n"
       "MinProtocol = TLSv9\nCipherString = NONSENSE\n",
       true},
      {"no provider", no_provider, false},
      {"no provider, and errors count", "config_diagnostics = 1\n" + no_provider, false},
  };
  for (const auto& one : cases) {
    SCOPED_TRACE(one.what);
    const std::string script = "OPENSSL_CONF=" + dir_.Write("broken.cnf", one.text) + " " + Real();
    const RunResult spliced = CallWith(script, kSpliced, "echo ran");
    EXPECT_EQ(spliced.out, "ran\n") << spliced.Describe();
    const RunResult judged = CallWith(script, kJudged, "echo ran");
    EXPECT_EQ(judged.out, one.has_keys ? "ran\n" : "") << judged.Describe();
    EXPECT_EQ(judged.exit, one.has_keys ? 0 : 125) << judged.Describe();
    EXPECT_EQ(Contains(judged.err, "egress.start"), !one.has_keys) << judged.Describe();
    EXPECT_EQ(Contains(judged.err, "openssl.cnf"), !one.has_keys) << judged.Describe();
  }
}

TEST_F(EgressStart, AnAddressThatTheHostGetsLaterIsRefusedToo) {
  const char* const source = ::getenv("COFFER_SOURCE");
  ASSERT_NE(source, nullptr) << "COFFER_SOURCE must be the checkout";
  RunOptions options;
  options.timeout = Seconds(240);
  const RunResult run = RunProgram(
      {"python3", std::string(source) + "/tests/support/egress_late_address.py", CofferPath()},
      options);
  const Strings expected = {"before | runs HTTP/1.1 403 Forbidden an address of this host",
                            "later | runs HTTP/1.1 403 Forbidden an address of this host",
                            "later, and named | runs hello"};
  EXPECT_TRUE(Contains(run.out, expected.back())) << "NO-CONTROL\n" << run.out << run.err;
  EXPECT_EQ(Lines(run.out), expected) << "OPEN\n" << run.out << run.err;
}

}  // namespace
}  // namespace coffer::test
