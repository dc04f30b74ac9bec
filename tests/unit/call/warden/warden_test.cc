// SPDX-License-Identifier: Apache-2.0
#include "call/warden/warden.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <utility>

#include "audit/receipt.h"
#include "base/sys.h"
#include "call/warden/collect.h"
#include "call/warden/launcher.h"
#include "call/warden/protocol.h"
#include "tests/support/run.h"

namespace coffer::call {
namespace {

struct Ends {
  UniqueFd ours, theirs;
};

Ends MakeEnds() {
  int ends[2] = {-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// A warden in a process of its own, as in the daemon.
class WardenTest : public ::testing::Test {
 protected:
  void Start(const WardenRules& rules) {
    Ends ends = MakeEnds();
    pid_ = ::fork();
    if (pid_ == 0) {
      ends.ours.Reset();
      ::_exit(RunWarden(ends.theirs.get(), rules).ok() ? 0 : 7);
    }
    control_ = std::move(ends.ours);
  }
  ~WardenTest() override {
    control_.Reset();
    if (pid_ > 0) {
      ::waitpid(pid_, nullptr, 0);
    }
  }
  Collected Run(const std::string& id, const RunRequest& request, std::string_view in = "") {
    WardenLauncher launcher(control_.get());
    Result<RunChannels> channels = launcher.Launch(id, request, in);
    EXPECT_TRUE(channels.ok());
    return Collect(std::move(channels).value(), {});
  }

  UniqueFd control_;
  pid_t pid_ = -1;
};

RunRequest Command(std::vector<std::string> words) {
  RunRequest request;
  request.command = std::move(words);
  return request;
}

TEST_F(WardenTest, RunsACallAndReports) {
  Start({});
  const Collected got =
      Run("one", Command({"/bin/sh", "-c", "cat; echo err >&2; exit 5"}), "in put");
  ASSERT_TRUE(got.report.has_value());
  EXPECT_EQ(got.stdout_text, "in put");
  EXPECT_EQ(got.stderr_text, "err\n");
  EXPECT_EQ(got.report->exit_status, 5);
  const Result<audit::Receipt> receipt = audit::ParseReceipt(got.report->receipt);
  ASSERT_TRUE(receipt.ok());
  EXPECT_EQ(receipt->outcome, "error");
}

TEST_F(WardenTest, KillsWhatItIsAskedToKillAndNothingElse) {
  Start({});
  WardenLauncher launcher(control_.get());
  Result<RunChannels> doomed =
      launcher.Launch("doomed", Command({"/bin/sh", "-c", "echo up; sleep 60"}), "");
  Result<RunChannels> other =
      launcher.Launch("other", Command({"/bin/sh", "-c", "echo up; cat"}), "");
  ASSERT_TRUE(doomed.ok() && other.ok());
  char word[4] = {};
  ASSERT_EQ(::read(doomed->out.get(), word, 3), 3);
  launcher.Kill("nobody");
  launcher.Kill("doomed");
  const Collected killed = Collect(std::move(doomed).value(), {});
  ASSERT_TRUE(killed.report.has_value());
  EXPECT_NE(killed.report->receipt.find("\"terminated\""), std::string::npos);
  const Collected lived = Collect(std::move(other).value(), {});
  ASSERT_TRUE(lived.report.has_value());
  EXPECT_EQ(lived.report->exit_status, 0);
}

TEST_F(WardenTest, RefusesWhatItsRulesForbid) {
  WardenRules rules;
  rules.sessions = "/state/sessions";
  RunRequest request = Command({"/bin/true"});
  EXPECT_TRUE(CheckRequest(rules, request).ok());
  for (const char* workspace : {"/etc", "/state/sessions", "/state/sessionsx/a",
                                "/state/sessions/../../etc", "/state/sessions/a/../../../etc",
                                "/state/sessions/..", "/state/sessions/a/b", "/state/sessions/"}) {
    request.envelope.workspace = workspace;
    EXPECT_FALSE(CheckRequest(rules, request).ok()) << workspace;
  }
  request.envelope.workspace = "/state/sessions/a";
  EXPECT_TRUE(CheckRequest(rules, request).ok());
  request.envelope.mounts = {{"/etc", "/data", policy::Access::kRead, true}};
  EXPECT_FALSE(CheckRequest(rules, request).ok());
  rules.allow_broad = true;
  EXPECT_TRUE(CheckRequest(rules, request).ok());
  // Ways to a file of the host that no declared tool has.
  for (const auto& ask : std::vector<std::function<void(RunRequest&)>>{
           [](RunRequest& r) { r.envelope.tty = true; }, [](RunRequest& r) { r.script = true; },
           [](RunRequest& r) { r.envelope.inputs = {"/etc/shadow"}; },
           [](RunRequest& r) { r.envelope.imported_seccomp = "{}"; },
           [](RunRequest& r) { r.out_dir = "/etc"; }}) {
    RunRequest asked = request;
    ask(asked);
    EXPECT_FALSE(CheckRequest(rules, asked).ok());
  }
}

// The gateway may have been broken into: what it says about a mount is looked at again.
// A tool that could write manifests or the configuration would decide what it may do next.
TEST_F(WardenTest, NothingThatDecidesIsWritableAndNoKeyIsShown) {
  std::string dir = ::testing::TempDir() + "/wardenXXXXXX";
  ASSERT_NE(::mkdtemp(dir.data()), nullptr);
  for (const char* name : {"/project", "/project/tools", "/keys", "/fine"}) {
    ASSERT_EQ(::mkdir((dir + name).c_str(), 0755), 0);
  }
  WardenRules rules;
  rules.relied = {dir + "/project/tools", dir + "/config/coffer.toml"};
  rules.closed = {dir + "/keys/tls.key"};
  const auto code = [&](const std::string& host, policy::Access access) {
    RunRequest request = Command({"/bin/true"});
    request.envelope.mounts = {{host, "/data", access}};
    const Status checked = CheckRequest(rules, request);
    return checked.ok() ? "" : checked.error().code;
  };
  using policy::Access;
  for (const char* name : {"/project", "/project/tools", ""}) {
    EXPECT_EQ(code(dir + name, Access::kWrite), "policy.path.state") << name;
  }
  EXPECT_EQ(code(dir + "/project", Access::kRead), "") << "manifests may be read";
  EXPECT_EQ(code(dir + "/keys", Access::kRead), "policy.path.state");
  EXPECT_EQ(code(dir + "/fine", Access::kWrite), "");
  std::filesystem::remove_all(dir);
}

TEST_F(WardenTest, LooksAtMountsItself) {
  std::string dir = ::testing::TempDir() + "/wardenXXXXXX";
  ASSERT_NE(::mkdtemp(dir.data()), nullptr);
  const auto make = [&](const std::string& name) {
    EXPECT_EQ(::mkdir((dir + "/" + name).c_str(), 0755), 0);
    return dir + "/" + name;
  };
  WardenRules rules;
  const std::string state = make("state");
  rules.sessions = make("state/sessions");
  const std::string fine = make("fine");
  const std::string below = make("state/sessions/of-somebody");
  const std::string link = dir + "/link";
  ASSERT_EQ(::symlink(fine.c_str(), link.c_str()), 0);
  const auto code = [&](const std::string& host, bool dangerous) {
    RunRequest request = Command({"/bin/true"});
    request.envelope.mounts = {{host, "/data", policy::Access::kRead, dangerous}};
    const Status checked = CheckRequest(rules, request);
    return checked.ok() ? "" : checked.error().code;
  };
  EXPECT_EQ(code(fine, false), "");
  EXPECT_NE(code(link, false), "");
  EXPECT_NE(code(dir + "/fine/../state", false), "");
  EXPECT_NE(code("relative", false), "");
  EXPECT_NE(code(dir + "/missing", false), "");
  for (const char* broad : {"/", "/etc", "/home", "/proc", "/proc/self", "/dev"}) {
    EXPECT_NE(code(broad, false), "") << broad;
  }
  for (const std::string& own : {state, rules.sessions, below, dir}) {
    EXPECT_EQ(code(own, false), "policy.path.state") << own;
  }
  // Also if the operator named it by a link.
  const std::string alias = dir + "/alias";
  ASSERT_EQ(::symlink(state.c_str(), alias.c_str()), 0);
  const std::string sessions = std::exchange(rules.sessions, alias + "/sessions");
  EXPECT_EQ(code(below, false), "policy.path.state");
  EXPECT_EQ(code(fine, false), "");
  rules.sessions = sessions;
  EXPECT_EQ(code("/etc", true), "policy.path.broad");
  rules.allow_broad = true;
  EXPECT_EQ(code("/etc", true), "");
  EXPECT_NE(code("/etc", false), "");
  // No permission shows the store of all tenants.
  EXPECT_EQ(code("/", true), "policy.path.state");
  std::filesystem::remove_all(dir);
}

TEST_F(WardenTest, MoreCallsThanItMayRunAreRefusedNotQueued) {
  WardenRules rules;
  rules.max_running = 1;
  Start(rules);
  WardenLauncher launcher(control_.get());
  Result<RunChannels> first =
      launcher.Launch("first", Command({"/bin/sh", "-c", "echo up; sleep 60"}), "");
  ASSERT_TRUE(first.ok());
  char word[4] = {};
  ASSERT_EQ(::read(first->out.get(), word, 3), 3);
  const Collected second = Run("second", Command({"/bin/true"}));
  ASSERT_TRUE(second.report && second.report->error);
  EXPECT_EQ(second.report->error->code, "limit.concurrency");
  launcher.Kill("first");
  EXPECT_TRUE(Collect(std::move(first).value(), {}).report.has_value());
}

TEST_F(WardenTest, EndsEverythingWhenTheGatewayIsGone) {
  Start({});
  WardenLauncher launcher(control_.get());
  Result<RunChannels> call =
      launcher.Launch("call", Command({"/bin/sh", "-c", "echo up; sleep 60"}), "");
  ASSERT_TRUE(call.ok());
  char word[4] = {};
  ASSERT_EQ(::read(call->out.get(), word, 3), 3);
  control_.Reset();
  int status = 0;
  ASSERT_EQ(::waitpid(pid_, &status, 0), pid_);
  pid_ = -1;
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  const Collected got = Collect(std::move(call).value(), {});
  EXPECT_FALSE(got.report.has_value()) << "nobody knows how it went";
}

TEST_F(WardenTest, NonsenseEndsIt) {
  Start({});
  ASSERT_EQ(::send(control_.get(), "hello", 5, MSG_NOSIGNAL), 5);
  int status = 0;
  ASSERT_EQ(::waitpid(pid_, &status, 0), pid_);
  pid_ = -1;
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << status;
}

TEST(WardenProtocol, AnUnsealedRequestIsRefused) {
  const int fd = ::memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  const UniqueFd open(fd);
  ASSERT_EQ(::write(fd, "abc", 3), 3);
  EXPECT_FALSE(ReadSealed(fd, 3).ok());
  const Result<UniqueFd> sealed = SealedBytes("abc");
  ASSERT_TRUE(sealed.ok());
  EXPECT_EQ(*ReadSealed(sealed->get(), 3), "abc");
  EXPECT_FALSE(ReadSealed(sealed->get(), 4).ok());
  EXPECT_LT(::write(sealed->get(), "x", 1), 0);
}

TEST(WardenProtocol, MessagesAreCheckedAndTheirDescriptorsNeverLeak) {
  const auto count = [] {
    int open = 0;
    for (int fd = 0; fd < 256; ++fd) {
      open += ::fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
    }
    return open;
  };
  const Ends ends = MakeEnds();
  const int before = count();
  WardenMessage message;
  message.verb = static_cast<uint32_t>(WardenVerb::kKill);
  message.call_id[0] = 'x';
  const int extra[] = {0, 1};
  ASSERT_TRUE(SendMessage(ends.ours.get(), message, extra).ok());
  EXPECT_FALSE(ReceiveMessage(ends.theirs.get()).ok()) << "a kill carries no descriptors";
  EXPECT_EQ(count(), before);
  ASSERT_TRUE(SendMessage(ends.ours.get(), message, {}).ok());
  EXPECT_TRUE(ReceiveMessage(ends.theirs.get()).ok());
  for (const auto& change : std::vector<std::function<void(WardenMessage&)>>{
           [](WardenMessage& m) { m.magic = 1; }, [](WardenMessage& m) { m.version = 2; },
           [](WardenMessage& m) { m.verb = 9; }, [](WardenMessage& m) { m.call_id[0] = 0; },
           [](WardenMessage& m) { m.reserved = 1; },
           [](WardenMessage& m) { memset(m.call_id, 'a', sizeof(m.call_id)); }}) {
    WardenMessage wrong = message;
    change(wrong);
    ASSERT_TRUE(SendMessage(ends.ours.get(), wrong, {}).ok());
    EXPECT_FALSE(ReceiveMessage(ends.theirs.get()).ok());
  }
  EXPECT_EQ(count(), before);
}

}  // namespace
}  // namespace coffer::call
