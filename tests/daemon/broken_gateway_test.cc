// SPDX-License-Identifier: Apache-2.0
//
// A gateway that was broken into, played by the test: it takes the gateway's own socket out of the running daemon and
// speaks the wire to the real warden by hand. It gets calls that some manifest allows, with arguments of its choice, and
// nothing else.
#include <dirent.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

#include "base/sys.h"
#include "call/warden/collect.h"
#include "call/warden/launcher.h"
#include "call/warden/protocol.h"
#include "call/warden/volumes.h"
#include "call/warden/wire.h"
#include "limits/volume.h"
#include "policy/egress_line.h"
#include "tests/daemon/daemon.h"

namespace coffer::test {
namespace {

using policy::Access;

constexpr const char* kTool = R"(
[tool]
name = "keep"
version = "1.0.0"
owner = "tests"
summary = "Runs a script beside some data."
effect = "reversible"
[input.schema]
type = "object"
required = ["script"]
properties.script = { type = "string", maxLength = 8 }
[run]
runtime = "bash"
argv = ["bash", "--noprofile", "--norc", "-c", "{script}"]
[files]
workspace = "session-write"
[[files.mount]]
host = "@DATA@"
at = "/data"
mode = "write"
[[examples.allow]]
args = { script = "true" }
why = "a script"
[[examples.deny]]
args = {}
why = "no script"
)";

// The gateway's sockets, lowest descriptor first: to the warden, to the egress role, to the monitor.
UniqueFd SocketToWarden(pid_t gateway) {
  std::vector<int> found;
  const std::string place = "/proc/" + std::to_string(gateway) + "/fd";
  DIR* const dir = ::opendir(place.c_str());
  EXPECT_NE(dir, nullptr);
  while (const dirent* entry = dir == nullptr ? nullptr : ::readdir(dir)) {
    if (entry->d_name[0] != '.') {
      found.push_back(std::atoi(entry->d_name));
    }
  }
  ::closedir(dir);
  std::sort(found.begin(), found.end());
  const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, gateway, 0)));
  for (const int number : found) {
    UniqueFd fd(static_cast<int>(::syscall(SYS_pidfd_getfd, pidfd.get(), number, 0)));
    int type = 0;
    socklen_t size = sizeof(type);
    if (::getsockopt(fd.get(), SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET) {
      return fd;
    }
  }
  ADD_FAILURE() << "the gateway has no socket to the warden";
  return {};
}

class BrokenGateway : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!IsRoot()) {
      GTEST_SKIP() << "only root may take a descriptor of a process that is not dumpable";
    }
    data_ = dir_.MakeDir("data");
    ASSERT_EQ(::chown(data_.c_str(), 12345, 12345), 0);
    roots_ = dir_.MakeDir("roots");
    Declare("keep", data_);
    DeclareNetwork();
    Declare("outer", data_);
    std::ofstream(daemon_.tools() + "/outer.toml", std::ios::app)
        << "[isolation]\nlevel = \"container\"\n[calls]\ntools = [\"keep\"]\nmost = 3\n";
    ASSERT_TRUE(daemon_.Start());
    session_ = daemon_.NewSession(daemon_.key());
    socket_ = SocketToWarden(daemon_.Find(RoleOf::kGateway));
    ASSERT_TRUE(socket_);
  }

  void DeclareNetwork() const {
    Declare("netted", data_);
    std::ofstream(daemon_.tools() + "/netted.toml", std::ios::app)
        << "[[network.allow]]\nhost = \"api.example.com\"\ntls = \"splice\"\n";
  }
  void Declare(const std::string& name, const std::string& data) const {
    std::string text = kTool;
    const std::string slot = "@DATA@";
    text.replace(text.find(slot), slot.size(), data);
    text.replace(text.find("\"keep\""), 6, "\"" + name + "\"");
    std::ofstream(daemon_.tools() + "/" + name + ".toml") << text;
  }

  // What an honest gateway would send, but for the length of the script.
  call::RunRequest Allowed(const std::string& script) const {
    call::RunRequest request;
    request.entry = "keep";
    request.tenant = 1;
    request.command = {"bash", "--noprofile", "--norc", "-c", script};
    request.envelope.level = policy::Level::kContainer;
    request.envelope.runtimes = {"bash"};
    request.envelope.mounts = {{data_, "/data", Access::kWrite}};
    request.envelope.workspace = daemon_.WorkspacePath(session_);
    return request;
  }

  call::Collected Send(const call::RunRequest& request) {
    call::WardenLauncher launcher(socket_.get());
    Result<call::RunChannels> channels =
        launcher.Launch("broken-" + std::to_string(next_++), request, "");
    EXPECT_TRUE(channels.ok());
    return call::Collect(std::move(channels).value(), {});
  }
  std::string CodeOf(const call::Collected& got) {
    return !got.report ? "no report" : got.report->error ? got.report->error->code : "";
  }

  TempDir dir_;
  std::string data_, roots_, session_;
  Daemon daemon_;
  UniqueFd socket_;
  int next_ = 0;
};

// Rules of its own, wider rules, rules of another tool: none of them, and a call with the manifest's own ones runs.
TEST_F(BrokenGateway, GetsNoMoreNetworkThanTheManifestAllows) {
  policy::NetworkRule own;
  own.host = "api.example.com";
  own.tls = policy::TlsMode::kSplice;
  const auto with = [&](const std::string& entry, const std::vector<std::string>& network) {
    call::RunRequest request = Allowed("true");
    request.entry = entry;
    request.envelope.network = network;
    return CodeOf(Send(request));
  };
  EXPECT_EQ(with("netted", {policy::EgressLine(own)}), "") << "the control";
  EXPECT_EQ(with("netted", {}), "") << "less";
  EXPECT_EQ(with("keep", {policy::EgressLine(own)}), "policy.entry.envelope") << "another tool's";
  policy::NetworkRule wider = own;
  wider.host = "**.example.com";
  EXPECT_EQ(with("netted", {policy::EgressLine(wider)}), "policy.entry.envelope");
  wider = own;
  wider.tls = policy::TlsMode::kNone;
  EXPECT_EQ(with("netted", {policy::EgressLine(own), policy::EgressLine(wider)}),
            "policy.entry.envelope");
  wider = own;
  wider.ports = {{1, 65535}};
  EXPECT_EQ(with("netted", {policy::EgressLine(wider)}), "policy.entry.envelope");
  EXPECT_EQ(with("netted", {"@anything"}), "policy.entry.envelope");
  EXPECT_EQ(with("netted", {"evil.example.com"}), "policy.entry.envelope");
  // What belongs to the operator has no place in a request at all.
  call::RunRequest request = Allowed("true");
  request.entry = "netted";
  request.egress.allow = {"evil.example.com"};
  request.egress.addresses = {"127.0.0.0/8"};
  const call::Collected got = Send(request);
  EXPECT_EQ(CodeOf(got), "");
  EXPECT_TRUE(got.report->receipt.network.empty());
}

TEST_F(BrokenGateway, GetsWhatSomeManifestAllowsAndNothingElse) {
  // The control: what the manifest allows, with an argument that its schema would not.
  const call::Collected good = Send(Allowed("echo here > /data/file; echo done; id -u"));
  EXPECT_EQ(CodeOf(good), "") << good.report->error->message;
  EXPECT_TRUE(Contains(good.stdout_text, "done")) << good.stderr_text;
  EXPECT_EQ(ReadFile(data_ + "/file").value_or(""), "here\n");

  const std::string token = NewToken();
  const std::string write = "echo " + token + " > /data/" + token;
  const std::string program = daemon_.WorkspacePath(session_) + "/program";
  const std::string seen = daemon_.Workspace(session_) + "/program";
  std::ofstream(seen) << "#!/bin/bash\ncat /etc/shadow\n";
  ASSERT_EQ(::chmod(seen.c_str(), 0755), 0);
  using Request = call::RunRequest;
  const auto mount = [](Request& r, const std::string& host, Access access) {
    r.envelope.mounts = {{host, "/data", access}};
  };
  std::vector<std::pair<std::string, std::function<void(Request&)>>> asked = {
      {"a root-owned directory", [&](Request& r) { mount(r, roots_, Access::kWrite); }},
      {"reading another directory", [&](Request& r) { mount(r, dir_.path(), Access::kRead); }},
      {"the state directory", [&](Request& r) { mount(r, daemon_.state(), Access::kRead); }},
      {"the manifests", [&](Request& r) { mount(r, daemon_.tools(), Access::kWrite); }},
      {"everything", [&](Request& r) { mount(r, "/", Access::kRead); }},
      {"a program of the session", [&](Request& r) { r.command = {program}; }},
      {"a program of the host", [&](Request& r) { r.command = {"/usr/bin/env"}; }},
      {"another command", [&](Request& r) { r.command[1] = "--posix"; }},
      {"all of /usr", [&](Request& r) { r.envelope.runtimes = {"host-usr"}; }},
      {"the process level", [&](Request& r) { r.envelope.level = policy::Level::kProcess; }},
      {"another tool's name", [&](Request& r) { r.entry = "python"; }},
      {"no tool", [&](Request& r) { r.entry.clear(); }},
      {"root's uids", [&](Request& r) { r.tenant = 0; }},
      {"uids of no tenant", [&](Request& r) { r.tenant = 60'000; }},
      {"a preloaded library",
       [&](Request& r) { r.envelope.env = {{"LD_PRELOAD", "/workspace/x.so"}}; }},
      {"2^50 bytes", [&](Request& r) { r.envelope.limits.memory = 1ULL << 50; }},
      {"4 million processes", [&](Request& r) { r.envelope.limits.processes = 4'000'000; }},
      {"a year", [&](Request& r) { r.envelope.limits.cpu = std::chrono::hours(24 * 365); }},
      {"all system calls",
       [&](Request& r) { r.envelope.syscalls = policy::SyscallProfile::kCompat; }},
      {"uid 0 inside", [&](Request& r) { r.envelope.uid = 0; }},
      {"a workspace that is none", [&](Request& r) { r.envelope.workspace = roots_; }},
      {"an input", [&](Request& r) { r.envelope.inputs = {"/etc/shadow"}; }},
  };
  for (const char* host :
       {"/etc/cron.d", "/etc/systemd", "/etc/pam.d", "/etc/ld.so.conf.d", "/usr/bin", "/usr/lib",
        "/var/lib/dpkg", "/etc", "/root", "/var/spool/cron"}) {
    asked.emplace_back(host, [&, host](Request& r) { mount(r, host, Access::kWrite); });
    asked.emplace_back(std::string(host) + " by its word", [&, host](Request& r) {
      r.envelope.mounts = {{host, "/data", Access::kWrite, true, true}};
    });
  }
  for (const auto& [what, change] : asked) {
    Request request = Allowed(write);
    change(request);
    const call::Collected got = Send(request);
    ASSERT_TRUE(got.report) << what;
    EXPECT_EQ(got.report->exit_status, 120) << what << ": " << CodeOf(got);
    EXPECT_EQ(got.stdout_text, "") << what;
    for (const policy::Mount& mounted : request.envelope.mounts) {
      EXPECT_FALSE(Exists(mounted.host + "/" + token) && mounted.host != data_) << what;
    }
  }
  EXPECT_FALSE(Exists(data_ + "/" + token)) << "a refused request ran";
  EXPECT_EQ(CodeOf(Send(Allowed("true"))), "")
      << "the warden is there, and the control still holds";
}

// A call that names the one which makes it, and sockets for tools: only as the manifests say. Without a parent it could launch the
// same tool by itself, as far as that one's own entry goes.
TEST_F(BrokenGateway, ACallOfACallIsHeldAgainstTheOneThatMakesIt) {
  call::WardenLauncher launcher(socket_.get());
  const auto pair = [] { return call::MakeSocketPair(SOCK_STREAM).value(); };
  const auto outer_request = [&](const std::string& script) {
    call::RunRequest request = Allowed(script);
    request.entry = "outer";
    request.tools = {"keep"};
    request.tool_calls = 3;
    request.envelope.limits.memory = 64 << 20;
    request.envelope.limits.wall = std::chrono::seconds(20);
    return request;
  };
  call::SocketPair relay = pair();
  call::RunRequest outer = outer_request("echo up; exec sleep 60");
  outer.tools_channel = relay.second.get();
  Result<call::RunChannels> held = launcher.Launch("outer", outer, "");
  ASSERT_TRUE(held.ok());
  char up = 0;
  ASSERT_EQ(::read(held->out.get(), &up, 1), 1) << "NO-CONTROL: a call with a socket for its tools";

  const auto child = [&](const std::function<void(call::RunRequest&)>& change) {
    call::RunRequest request = Allowed("true");
    request.envelope.limits.memory = 64 << 20;
    request.envelope.limits.wall = std::chrono::seconds(20);
    request.parent = "outer";
    change(request);
    return CodeOf(Send(request));
  };
  using Request = call::RunRequest;
  EXPECT_EQ(child([](Request&) {}), "") << "NO-CONTROL";
  EXPECT_EQ(child([](Request& r) { r.envelope.limits.memory *= 2; }), "policy.parent");
  EXPECT_EQ(child([](Request& r) { r.envelope.limits.wall += Nanos(1); }), "policy.parent");
  EXPECT_EQ(child([](Request& r) { r.tenant = 2; }), "policy.parent");
  EXPECT_EQ(child([](Request& r) { r.entry = "netted"; }), "policy.parent") << "not in its list";
  EXPECT_EQ(child([](Request& r) { r.parent = "nobody"; }), "policy.parent");
  EXPECT_EQ(child([](Request& r) { r.parent.clear(); }), "") << "by itself: its own entry alone";

  // Sockets and lists that an entry does not have, each beside one that it has.
  const auto with_socket = [&](call::RunRequest request) {
    const call::SocketPair other = pair();
    request.tools_channel = other.second.get();
    return CodeOf(Send(request));
  };
  EXPECT_EQ(with_socket(outer_request("true")), "") << "NO-CONTROL";
  EXPECT_EQ(with_socket(Allowed("true")), "policy.entry.calls") << "an entry without [calls]";
  call::RunRequest more = Allowed("true");
  more.tools = {"keep"};
  EXPECT_EQ(with_socket(more), "policy.entry.calls");
  more = outer_request("true");
  more.tools = {"keep", "netted"};
  EXPECT_EQ(with_socket(more), "policy.entry.calls") << "a tool that it does not name";
  more = outer_request("true");
  more.tool_calls = 4;
  EXPECT_EQ(with_socket(more), "policy.entry.calls") << "more calls than it names";
  // A parent that has no socket for tools makes no calls.
  Result<call::RunChannels> plain = launcher.Launch("plain", Allowed("echo up; exec sleep 60"), "");
  ASSERT_TRUE(plain.ok());
  ASSERT_EQ(::read(plain->out.get(), &up, 1), 1);
  EXPECT_EQ(child([](Request& r) { r.parent = "plain"; }), "policy.parent");
  launcher.Kill("plain");

  // The end of the outer call is the end of what it makes, without a word of the gateway, and nothing new names it.
  call::RunRequest inner = Allowed("echo up; exec sleep 60");
  inner.envelope.limits.memory = 64 << 20;
  inner.envelope.limits.wall = std::chrono::seconds(20);
  inner.parent = "outer";
  Result<call::RunChannels> running = launcher.Launch("inner", inner, "");
  ASSERT_TRUE(running.ok());
  ASSERT_EQ(::read(running->out.get(), &up, 1), 1);
  relay.first.Reset();  // so that the relay does not wait for the calls to be sealed
  launcher.Kill("outer");
  const call::Collected ended = call::Collect(std::move(running).value(), {});
  ASSERT_TRUE(ended.report);
  EXPECT_EQ(ended.report->receipt.outcome, "terminated");
  EXPECT_EQ(child([](Request&) {}), "policy.parent");
}

// It may ask for file systems of sessions, and chooses neither an image nor a place nor a size past the bounds.
TEST_F(BrokenGateway, GetsNoVolumeButThoseOfSessions) {
  using call::WardenVerb;
  const auto ask = [&](WardenVerb verb, const std::string& id, uint64_t bytes) {
    const Status done = call::AskForVolume(socket_.get(), verb, id, bytes);
    return done.ok() ? "" : done.error().code;
  };
  // One question for a session at a time: the next is answered when the process that answered the last one is gone.
  const auto refused = [&](WardenVerb verb, const std::string& id, uint64_t bytes) {
    std::string code;
    return WaitUntil([&] { return (code = ask(verb, id, bytes)) != "limits.volume"; }) &&
           code == "policy.request";
  };
  constexpr uint64_t kSize = 4ULL << 20;
  const std::string control = ask(WardenVerb::kOpenVolume, session_, kSize);
  if (control == limits::kNoVolumes) {
    GTEST_SKIP() << "this host has no loop devices or no mke2fs";
  }
  ASSERT_EQ(control, "") << "NO-CONTROL: the session's own";
  const std::string warden = "/proc/" + std::to_string(daemon_.Find(RoleOf::kWarden)) + "/mounts";
  const auto mounts = [&] { return ReadFile(warden).value_or(""); };
  const auto images = [&] {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(daemon_.state() + "/volumes")) {
      names.insert(entry.path().filename());
    }
    return names;
  };
  const std::string mounts_before = mounts();
  const std::set<std::string> images_before = images();
  ASSERT_TRUE(Contains(mounts_before, session_)) << "NO-CONTROL";
  std::ofstream(daemon_.Workspace(session_) + "/kept") << "kept";

  const std::string sessions = daemon_.state() + "/sessions";
  const std::string link = "00000000-0000-7000-8000-00000000000a";
  ASSERT_EQ(::symlink(data_.c_str(), (sessions + "/session-" + link).c_str()), 0);
  const std::string file = "00000000-0000-7000-8000-00000000000b";
  std::ofstream(sessions + "/session-" + file) << "x";
  for (const std::string& id : {std::string("../../data"), std::string("x/../../../etc"),
                                std::string("."), std::string("/etc"), std::string("ABC"),
                                std::string("a b"), std::string("a%2fb"), std::string("\n")}) {
    EXPECT_TRUE(refused(WardenVerb::kOpenVolume, id, kSize)) << id;
    EXPECT_TRUE(refused(WardenVerb::kCloseVolume, id, 0)) << id;
  }
  for (const uint64_t size : {uint64_t{0}, call::kSmallestVolume - 1, call::kLargestVolume + 1,
                              uint64_t{1} << 63, ~uint64_t{0}}) {
    EXPECT_TRUE(refused(WardenVerb::kOpenVolume, session_, size)) << size;
  }
  for (const std::string& id : {std::string(kNoSuchId), link, file}) {
    EXPECT_NE(ask(WardenVerb::kOpenVolume, id, kSize), "") << id;
    (void)ask(WardenVerb::kCloseVolume, id, 0);  // there is nothing to close
  }
  // With anything but a socket for the answer nothing is done: writing to it could wait for ever.
  const Result<UniqueFd> in = call::SealedBytes("");
  Result<sys::Pipe> pipe = sys::MakePipe();
  ASSERT_TRUE(in.ok() && pipe.ok());
  for (const int answer : {pipe->write_end.get(), in->get()}) {
    call::WardenMessage message;
    message.verb = static_cast<uint32_t>(WardenVerb::kCloseVolume);
    memcpy(message.call_id, session_.data(), session_.size());
    ASSERT_TRUE(call::SendMessage(socket_.get(), message, std::span(&answer, 1)).ok());
  }
  pipe->write_end.Reset();
  char byte = 0;
  EXPECT_EQ(::read(pipe->read_end.get(), &byte, 1), 0) << "a pipe was answered";
  EXPECT_EQ(CodeOf(Send(Allowed("true"))), "") << "the warden is there";
  EXPECT_EQ(mounts(), mounts_before);
  EXPECT_EQ(images(), images_before);
  EXPECT_EQ(ReadFile(daemon_.Workspace(session_) + "/kept").value_or(""), "kept");
  EXPECT_TRUE(
      WaitUntil([&] { return ask(WardenVerb::kCloseVolume, session_, 0) != "limits.volume"; }));
  EXPECT_FALSE(Contains(mounts(), session_)) << "NO-CONTROL: over a socket it is closed";
}

// The monitor, not the gateway, says what the warden knows.
TEST_F(BrokenGateway, AToolComesByTheOperatorsFilesAlone) {
  call::RunRequest request = Allowed("true");
  request.entry = "late";
  EXPECT_EQ(CodeOf(Send(request)), "policy.entry");
  // What it may write: its own state directory. Neither a reload nor anything else makes that policy.
  const std::string planted = daemon_.state() + "/tools";
  ASSERT_EQ(::mkdir(planted.c_str(), 0755), 0);
  std::ofstream(planted + "/late.toml") << "[tool]\n";
  ASSERT_EQ(::chown(planted.c_str(), 0x6fff0001, 0x6fff0001), 0);
  ::kill(daemon_.monitor(), SIGHUP);
  EXPECT_EQ(CodeOf(Send(request)), "policy.entry");
  // The control: the operator's own manifest is noticed, and takes the same request.
  Declare("late", data_);
  EXPECT_TRUE(WaitUntil([&] { return CodeOf(Send(request)).empty(); }));
  // And is gone with its file.
  ASSERT_EQ(::unlink((daemon_.tools() + "/late.toml").c_str()), 0);
  EXPECT_TRUE(WaitUntil([&] { return CodeOf(Send(request)) == "policy.entry"; }));
}

}  // namespace
}  // namespace coffer::test
