// SPDX-License-Identifier: Apache-2.0
//
// The start of a call with network, attacked from beside: an egress process that hangs, says the wrong thing or says it for ever, an
// environment that tells OpenSSL what to load, and an address that the host gets while the call runs.
//
// The egress process is whatever is called cofferd beside coffer, so these tests put a script there.
#include <errno.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>

#include "tests/support/run.h"
#include "tests/support/verdicts.h"

namespace coffer::test {
namespace {

constexpr const char* kSpliced = "api.test:443";
constexpr const char* kJudged = "GET https://api.test/**";
// A process that does not start had 20 s, whatever the wall time. A busy machine needs some of the difference.
constexpr Seconds kInTime{15};

class EgressStart : public ::testing::Test {
 protected:
  void SetUp() override {
    ::chmod(dir_.path().c_str(), 0755);
    std::filesystem::copy_file(CofferPath(), dir_ / "coffer");
  }

  // A call whose egress process is this script of sh. Descriptor 3 leads to the supervisor; a write is one message.
  RunResult CallWith(const std::string& script, const char* rule, const std::string& command,
                     const char* wall = "60s") {
    dir_.Write("cofferd", "#!/bin/sh\necho $$ >" + dir_ / "pid" + "\n" + script + "\n", 0755);
    RunOptions options = options_;
    options.timeout = Seconds(60);
    return RunProgram({dir_ / "coffer", "run", "--quiet", "--wall", wall, "--allow", rule, "--",
                       "/bin/sh", "-c", command},
                      options);
  }
  std::string Real() const {
    return "exec " + (std::filesystem::path(CofferPath()).parent_path() / "cofferd").string() +
           " egress-call";
  }
  // Also if it was killed before it could write its number.
  bool ScriptIsGone() const {
    const pid_t pid = ::atoi(dir_.Read("pid").c_str());
    return pid == 0 || (::kill(pid, 0) != 0 && errno == ESRCH);
  }

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
    std::filesystem::remove(dir_ / "pid");
    const RunResult run = CallWith(one.script, one.rule, "echo ran", "1s");
    EXPECT_FALSE(run.timed_out) << "OPEN: the call hangs";
    EXPECT_EQ(run.exit, 125) << run.Describe();
    EXPECT_TRUE(Contains(run.err, "egress.start")) << run.Describe();
    EXPECT_EQ(run.out, "") << "OPEN: the command ran without its network";
    EXPECT_LT(run.took, kInTime);
    EXPECT_TRUE(ScriptIsGone()) << "OPEN: the process is left";
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
