// SPDX-License-Identifier: Apache-2.0
#include "call/warden/warden.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "audit/receipt.h"
#include "base/sys.h"
#include "call/config_ceilings.h"
#include "call/warden/collect.h"
#include "call/warden/launcher.h"
#include "call/warden/protocol.h"
#include "call/warden/table.h"
#include "call/warden/volumes.h"
#include "call/warden/wire.h"
#include "limits/volume.h"
#include "tests/support/run.h"

namespace coffer::call {
namespace {

SocketPair MakeEnds(int type = SOCK_SEQPACKET) {
  Result<SocketPair> made = MakeSocketPair(type);
  EXPECT_TRUE(made.ok());
  return std::move(made).value();
}

// A shell with a script of the caller's choice, and nothing of the host.
TableEntry ShellEntry() {
  using policy::WordKind;
  TableEntry entry;
  entry.tool = "shell";
  entry.envelope.runtimes = {"bash"};
  entry.argv = {{{{WordKind::kLiteral, "bash", {}}}, false},
                {{{WordKind::kLiteral, "-c", {}}}, false},
                {{{WordKind::kParameter, "script", {}}}, false}};
  entry.stdin_word = policy::Word{WordKind::kParameter, "text", {}};
  return entry;
}

RunRequest Script(const std::string& script) {
  RunRequest request;
  request.entry = "shell";
  request.tenant = 1;
  request.envelope.runtimes = {"bash"};
  request.command = {"bash", "-c", script};
  return request;
}

// A warden in a process of its own, as in the daemon.
class WardenTest : public ::testing::Test {
 protected:
  void Start(const WardenRules& rules, const std::vector<TableEntry>& entries = {ShellEntry()}) {
    SocketPair launches = MakeEnds();
    SocketPair tables = MakeEnds();
    pid_ = ::fork();
    if (pid_ == 0) {
      launches.first.Reset();
      tables.first.Reset();
      if (stderr_ >= 0) {
        ::dup2(stderr_, STDERR_FILENO);
      }
      ::_exit(RunWarden({launches.second.get(), tables.second.get()}, rules, {}).ok() ? 0 : 7);
    }
    control_ = std::move(launches.first);
    monitor_ = std::move(tables.first);
    if (!entries.empty()) {
      HandOver(entries);
    }
  }
  ~WardenTest() override {
    control_.Reset();
    if (pid_ > 0) {
      ::waitpid(pid_, nullptr, 0);
    }
  }
  void HandOver(const std::vector<TableEntry>& entries) const {
    const std::string bytes = EncodeTable({DefaultCeilings(), {}, entries});
    const Result<UniqueFd> sealed = SealedBytes(bytes);
    ASSERT_TRUE(sealed.ok());
    ASSERT_TRUE(SendTable(monitor_.get(), sealed->get(), bytes.size()).ok());
  }
  Collected Run(const std::string& id, const RunRequest& request, std::string_view in = "") {
    WardenLauncher launcher(control_.get());
    Result<RunChannels> channels = launcher.Launch(id, request, in);
    EXPECT_TRUE(channels.ok());
    return Collect(std::move(channels).value(), {});
  }
  std::string CodeOf(const std::string& id, const RunRequest& request) {
    const Collected got = Run(id, request);
    return !got.report ? "no report" : got.report->error ? got.report->error->code : "";
  }
  // A launch by hand, with descriptors of the test's own.
  void Launch(const std::string& id, const RunRequest& request, int in, int out, int report) const {
    const std::string bytes = EncodeRun(request);
    const Result<UniqueFd> sealed = SealedBytes(bytes);
    ASSERT_TRUE(sealed.ok());
    WardenMessage message;
    message.verb = static_cast<uint32_t>(WardenVerb::kLaunch);
    message.size = bytes.size();
    memcpy(message.call_id, id.data(), id.size());
    const int descriptors[] = {sealed->get(), in, out, out, report};
    ASSERT_TRUE(SendMessage(control_.get(), message, descriptors).ok());
  }

  int stderr_ = -1;  // of the warden, if not the test's
  UniqueFd control_, monitor_;
  pid_t pid_ = -1;
};

TEST_F(WardenTest, RunsACallAndReports) {
  Start({});
  const Collected got = Run("one", Script("cat; echo err >&2; exit 5"), "in put");
  ASSERT_TRUE(got.report.has_value());
  EXPECT_EQ(got.stdout_text, "in put");
#ifdef COFFER_SANITIZED
  // The sanitizer of clang warns that init has a stack which it did not make.
  EXPECT_TRUE(got.stderr_text.ends_with("err\n")) << got.stderr_text;
#else
  EXPECT_EQ(got.stderr_text, "err\n");
#endif
  EXPECT_EQ(got.report->exit_status, 5);
  EXPECT_EQ(got.report->receipt.outcome, "error");
}

TEST_F(WardenTest, KillsWhatItIsAskedToKillAndNothingElse) {
  Start({});
  WardenLauncher launcher(control_.get());
  Result<RunChannels> doomed = launcher.Launch("doomed", Script("echo up; sleep 60"), "");
  Result<RunChannels> other = launcher.Launch("other", Script("echo up; cat"), "");
  ASSERT_TRUE(doomed.ok() && other.ok());
  char word[4] = {};
  ASSERT_EQ(::read(doomed->out.get(), word, 3), 3);
  launcher.Kill("nobody");
  launcher.Kill("doomed");
  const Collected killed = Collect(std::move(doomed).value(), {});
  ASSERT_TRUE(killed.report.has_value());
  EXPECT_EQ(killed.report->receipt.outcome, "terminated");
  const Collected lived = Collect(std::move(other).value(), {});
  ASSERT_TRUE(lived.report.has_value());
  EXPECT_EQ(lived.report->exit_status, 0);
}

// What a broken gateway could write on the wire: only the entry's own command runs, with any argument.
TEST_F(WardenTest, LaunchesWhatTheTableAllowsAndNothingElse) {
  const test::TempDir dir;
  const std::string secret = dir.Write("secret", "secret of the host");
  const std::string program = dir.Write("program", "#!/bin/bash\ncat " + secret + "\n", 0755);
  Start({});
  EXPECT_EQ(CodeOf("allowed", Script("true")), "") << "the control";
  const std::pair<const char*, std::function<void(RunRequest&)>> asked[] = {
      {"program", [&](RunRequest& r) { r.command = {program}; }},
      {"path", [&](RunRequest& r) { r.command[0] = "/bin/bash"; }},
      {"mount", [&](RunRequest& r) { r.envelope.mounts = {{dir.path(), "/data"}}; }},
      {"etc",
       [&](RunRequest& r) {
         r.envelope.mounts = {{"/etc/cron.d", "/data", policy::Access::kWrite}};
       }},
      {"runtime", [&](RunRequest& r) { r.envelope.runtimes = {"host-usr"}; }},
      {"memory", [&](RunRequest& r) { r.envelope.limits.memory = 1ULL << 50; }},
      {"processes", [&](RunRequest& r) { r.envelope.limits.processes = 4'000'000; }},
      {"cpu", [&](RunRequest& r) { r.envelope.limits.cpu = std::chrono::hours(24 * 365); }},
      {"entry", [&](RunRequest& r) { r.entry = "other"; }},
      {"tenant", [&](RunRequest& r) { r.tenant = 0; }},
      {"range", [&](RunRequest& r) { r.tenant = 9000; }},
  };
  for (const auto& [what, change] : asked) {
    RunRequest request = Script("cat " + secret + " /data/secret");
    change(request);
    const Collected got = Run(what, request);
    ASSERT_TRUE(got.report && got.report->error) << what;
    EXPECT_EQ(got.report->exit_status, 120) << what;
    EXPECT_EQ(got.stdout_text, "") << what;
  }
  // The control: with a table that allows the mount, the same message shows the file.
  TableEntry wider = ShellEntry();
  wider.envelope.mounts = {{dir.path(), "/data"}};
  HandOver({wider});
  RunRequest request = Script("cat /data/secret");
  request.envelope.mounts = wider.envelope.mounts;
  EXPECT_EQ(Run("control", request).stdout_text, "secret of the host");
}

TEST_F(WardenTest, AFixedStdinIsTheTables) {
  TableEntry entry = ShellEntry();
  entry.stdin_word = policy::Word{policy::WordKind::kLiteral, "the manifest's", {}};
  Start({}, {entry});
  EXPECT_EQ(Run("fixed", Script("cat"), "the gateway's").stdout_text, "the manifest's");
  entry.stdin_word.reset();
  HandOver({entry});
  EXPECT_EQ(Run("none", Script("cat"), "the gateway's").stdout_text, "");
  HandOver({ShellEntry()});
  EXPECT_EQ(Run("control", Script("cat"), "the gateway's").stdout_text, "the gateway's");
}

TEST_F(WardenTest, WithoutATableNothingRunsAndANewOneHoldsAtOnce) {
  Start({}, {});
  EXPECT_EQ(CodeOf("none", Script("true")), "policy.entry");
  HandOver({ShellEntry()});
  EXPECT_EQ(CodeOf("one", Script("true")), "");
  TableEntry other = ShellEntry();
  other.tool = "other";
  HandOver({other});
  EXPECT_EQ(CodeOf("two", Script("true")), "policy.entry");
  // A table that does not decode changes nothing.
  const Result<UniqueFd> nonsense = SealedBytes("nonsense");
  ASSERT_TRUE(nonsense.ok() && SendTable(monitor_.get(), nonsense->get(), 8).ok());
  EXPECT_EQ(CodeOf("three", Script("true")), "policy.entry");
  HandOver({ShellEntry()});
  EXPECT_EQ(CodeOf("four", Script("true")), "");
}

TEST_F(WardenTest, TheGatewayHandsOverNoTables) {
  Start({});
  const std::string bytes = EncodeTable({DefaultCeilings(), {}, {ShellEntry()}});
  const Result<UniqueFd> sealed = SealedBytes(bytes);
  ASSERT_TRUE(sealed.ok() && SendTable(control_.get(), sealed->get(), bytes.size()).ok());
  int status = 0;
  ASSERT_EQ(::waitpid(pid_, &status, 0), pid_);
  pid_ = -1;
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << "it ends, as after any nonsense";
}

// The warden answers itself if no runner can: a peer that is gone, or never reads, costs nobody else a moment.
TEST_F(WardenTest, APeerThatDoesNotReadLosesItsAnswer) {
  WardenRules rules;
  rules.max_running = 1;
  Start(rules);
  WardenLauncher launcher(control_.get());
  Result<RunChannels> first = launcher.Launch("first", Script("echo up; sleep 60"), "");
  ASSERT_TRUE(first.ok());
  char word[4] = {};
  ASSERT_EQ(::read(first->out.get(), word, 3), 3);
  const Result<UniqueFd> in = SealedBytes("");
  const Result<sys::Pipe> out = sys::MakePipe();
  ASSERT_TRUE(in.ok() && out.ok());
  // Gone before it is answered: writing would raise SIGPIPE.
  SocketPair gone = MakeEnds(SOCK_STREAM);
  gone.first.Reset();
  Launch("gone", Script("true"), in->get(), out->write_end.get(), gone.second.get());
  // Full: writing would wait for ever.
  const SocketPair full = MakeEnds(SOCK_STREAM);
  const std::string block(4096, 'x');
  while (::send(full.second.get(), block.data(), block.size(), MSG_DONTWAIT) > 0) {
  }
  Launch("full", Script("true"), in->get(), out->write_end.get(), full.second.get());
  // Pipes, files and the like are not answered to at all.
  Launch("pipe", Script("true"), in->get(), out->write_end.get(), out->write_end.get());
  Launch("file", Script("true"), in->get(), in->get(), full.second.get());
  // It is there, and answers whoever reads.
  EXPECT_EQ(CodeOf("second", Script("true")), "limit.concurrency");
  launcher.Kill("first");
  EXPECT_TRUE(Collect(std::move(first).value(), {}).report.has_value());
}

// A verb about a volume is carried out if its answer can be sent without waiting, and that is so on a socket alone.
TEST_F(WardenTest, AVolumeIsAnsweredOnASocketOnly) {
  WardenRules rules;
  rules.max_running = 1;
  Start(rules);
  const auto ask_by_hand = [&](const std::string& id, int answer) {
    WardenMessage message;
    message.verb = static_cast<uint32_t>(WardenVerb::kOpenVolume);
    message.size = kSmallestVolume;
    memcpy(message.call_id, id.data(), id.size());
    ASSERT_TRUE(SendMessage(control_.get(), message, std::span(&answer, 1)).ok());
  };
  // Here it has no directory for volumes. That it says so is the control.
  EXPECT_EQ(
      AskForVolume(control_.get(), WardenVerb::kOpenVolume, "a", kSmallestVolume).error().code,
      limits::kNoVolumes);
  const auto runs = [&] {
    return test::WaitUntil([&] { return CodeOf("call", Script("true")).empty(); });
  };
  ASSERT_TRUE(runs());

  Result<sys::Pipe> pipe = sys::MakePipe();
  ASSERT_TRUE(pipe.ok());
  ask_by_hand("b", pipe->write_end.get());
  pipe->write_end.Reset();
  char byte = 0;
  EXPECT_EQ(::read(pipe->read_end.get(), &byte, 1), 0) << "a pipe was answered";
  const Result<UniqueFd> file = MakeMemoryFile();
  ASSERT_TRUE(file.ok());
  ask_by_hand("c", file->get());
  const SocketPair packets = MakeEnds(SOCK_SEQPACKET);
  ask_by_hand("d", packets.second.get());
  ASSERT_TRUE(runs());
  struct stat info{};
  ASSERT_EQ(::fstat(file->get(), &info), 0);
  EXPECT_EQ(info.st_size, 0) << "a file was answered";
  EXPECT_LT(::recv(packets.first.get(), &byte, 1, MSG_DONTWAIT), 0);

  // Full, and gone: neither holds a process, whose place the next call would miss.
  const SocketPair full = MakeEnds(SOCK_STREAM);
  const std::string block(4096, 'x');
  while (::send(full.second.get(), block.data(), block.size(), MSG_DONTWAIT) > 0) {
  }
  ask_by_hand("e", full.second.get());
  EXPECT_TRUE(runs());
  SocketPair gone = MakeEnds(SOCK_STREAM);
  gone.first.Reset();
  ask_by_hand("f", gone.second.get());
  EXPECT_TRUE(runs());
}

// The log of its service may be a pipe that is not read: what the warden has to say waits there, and the warden does not.
TEST_F(WardenTest, AFullStderrHoldsNothing) {
  Result<sys::Pipe> err = sys::MakePipe();
  ASSERT_TRUE(err.ok());
  const auto set_flags = [](int fd, int flags) { ASSERT_EQ(::fcntl(fd, F_SETFL, flags), 0); };
  set_flags(err->write_end.get(), O_NONBLOCK);
  const std::string block(4096, 'x');
  while (::write(err->write_end.get(), block.data(), block.size()) > 0) {
  }
  set_flags(err->write_end.get(), 0);
  stderr_ = err->write_end.get();
  Start({});
  const Result<UniqueFd> nonsense = SealedBytes("nonsense");
  ASSERT_TRUE(nonsense.ok());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(SendTable(monitor_.get(), nonsense->get(), 8).ok());
  }
  EXPECT_EQ(CodeOf("call", Script("true")), "") << "what was allowed before stays";
  // What it says was not given up, so the call did not wait for it.
  set_flags(err->read_end.get(), O_NONBLOCK);
  std::string said;
  EXPECT_TRUE(test::WaitUntil([&] {
    std::string more(65536, '\0');
    const ssize_t got = ::read(err->read_end.get(), more.data(), more.size());
    said += more.substr(0, static_cast<size_t>(std::max<ssize_t>(got, 0)));
    return said.find("coffer: ") != std::string::npos;
  }));
}

TEST_F(WardenTest, MoreCallsThanItMayRunAreRefusedNotQueued) {
  WardenRules rules;
  rules.max_running = 1;
  Start(rules);
  WardenLauncher launcher(control_.get());
  Result<RunChannels> first = launcher.Launch("first", Script("echo up; sleep 60"), "");
  ASSERT_TRUE(first.ok());
  char word[4] = {};
  ASSERT_EQ(::read(first->out.get(), word, 3), 3);
  const Collected second = Run("second", Script("true"));
  ASSERT_TRUE(second.report && second.report->error);
  EXPECT_EQ(second.report->error->code, "limit.concurrency");
  launcher.Kill("first");
  EXPECT_TRUE(Collect(std::move(first).value(), {}).report.has_value());
}

TEST_F(WardenTest, EndsEverythingWhenTheGatewayIsGone) {
  Start({});
  WardenLauncher launcher(control_.get());
  Result<RunChannels> call = launcher.Launch("call", Script("echo up; sleep 60"), "");
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
  const SocketPair ends = MakeEnds();
  const int before = count();
  WardenMessage message;
  message.verb = static_cast<uint32_t>(WardenVerb::kKill);
  message.call_id[0] = 'x';
  const int extra[] = {0, 1};
  ASSERT_TRUE(SendMessage(ends.first.get(), message, extra).ok());
  EXPECT_FALSE(ReceiveMessage(ends.second.get(), WardenPeer::kGateway).ok())
      << "a kill carries no descriptors";
  EXPECT_EQ(count(), before);
  ASSERT_TRUE(SendMessage(ends.first.get(), message, {}).ok());
  EXPECT_TRUE(ReceiveMessage(ends.second.get(), WardenPeer::kGateway).ok());
  for (const auto& change : std::vector<std::function<void(WardenMessage&)>>{
           [](WardenMessage& m) { m.magic = 1; }, [](WardenMessage& m) { m.version = 1; },
           [](WardenMessage& m) { m.verb = 9; }, [](WardenMessage& m) { m.call_id[0] = 0; },
           [](WardenMessage& m) { m.reserved = 1; },
           [](WardenMessage& m) { m.verb = static_cast<uint32_t>(WardenVerb::kTable); },
           [](WardenMessage& m) { m.parent_id[0] = 'p'; },  // a kill has none
           [](WardenMessage& m) { memset(m.call_id, 'a', sizeof(m.call_id)); }}) {
    WardenMessage wrong = message;
    change(wrong);
    ASSERT_TRUE(SendMessage(ends.first.get(), wrong, {}).ok());
    EXPECT_FALSE(ReceiveMessage(ends.second.get(), WardenPeer::kGateway).ok());
  }
  EXPECT_EQ(count(), before);
}

}  // namespace
}  // namespace coffer::call
