// SPDX-License-Identifier: Apache-2.0
//
// Everything that a gateway that was broken into could ask for beyond what a manifest allows, each beside the request that
// is allowed.
#include "call/warden/check.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>

#include "call/config_ceilings.h"
#include "tests/support/run.h"

namespace coffer::call {
namespace {

using policy::Access;
using policy::Word;
using policy::WordGroup;
using policy::WordKind;

WordGroup Literal(const std::string& text) { return {{{WordKind::kLiteral, text, {}}}, false}; }
WordGroup Parameter(const std::string& name) { return {{{WordKind::kParameter, name, {}}}, false}; }
WordGroup Spread(const std::string& name) { return {{{WordKind::kSpread, name, {}}}, false}; }

using Words = std::vector<std::string>;

TEST(MatchesTemplate, WhatATemplateCanBecome) {
  // grep ["-m" {max}] -- {pattern} {files...}
  const std::vector<WordGroup> argv = {
      Literal("grep"),
      {{{WordKind::kLiteral, "-m", {}}, {WordKind::kParameter, "max", {}}}, true},
      Literal("--"),
      Parameter("pattern"),
      Spread("files")};
  for (const Words& fits : {Words{"grep", "--", "x"}, Words{"grep", "-m", "3", "--", "x"},
                            Words{"grep", "--", "-x", "a", "-b"}, Words{"grep", "--"},
                            Words{"grep", "-m", "3", "--"}}) {
    EXPECT_TRUE(MatchesTemplate(argv, fits)) << fits.size();
  }
  for (const Words& other :
       {Words{}, Words{"grep"}, Words{"egrep", "--", "x"}, Words{"grep", "-m", "--", "x"},
        Words{"grep", "-r", "--", "x"}, Words{"grep", "-m", "-f", "--", "x"},
        Words{"x", "grep", "--", "x"}, Words{"grep", "x"}, Words{"/workspace/grep", "--", "x"}}) {
    EXPECT_FALSE(MatchesTemplate(argv, other)) << other.size();
  }
  const std::vector<WordGroup> plain = {Literal("cat"), Parameter("file")};
  EXPECT_TRUE(MatchesTemplate(plain, {"cat", "a"}));
  EXPECT_TRUE(MatchesTemplate(plain, {"cat"}));
  EXPECT_FALSE(MatchesTemplate(plain, {"cat", "-a"})) << "an option where the template has none";
  EXPECT_FALSE(MatchesTemplate(plain, {"cat", "a", "b"}));
  // No request makes it slow.
  const std::vector<WordGroup> many(200, Spread("x"));
  Words long_command(20'000, "a");
  EXPECT_TRUE(MatchesTemplate(many, long_command));
}

class Check : public ::testing::Test {
 protected:
  void SetUp() override {
    rules_.sessions = dir_.MakeDir("state") + "/sessions";
    workspace_ = dir_.MakeDir("state/sessions") + "/session-1";
    dir_.MakeDir("state/sessions/session-1");
    data_ = dir_.MakeDir("data");
    dir_.MakeDir("data/part");
    secret_ = dir_.MakeDir("secret");
    if (test::IsRoot()) {  // a session is the gateway's, and the data some user's
      for (const std::string& place : {workspace_, data_, data_ + "/part", secret_}) {
        ASSERT_EQ(::chown(place.c_str(), 0x6fff0001, 0x6fff0001), 0);
      }
    }
    table_.ceilings = DefaultCeilings();
    TableEntry entry;
    entry.tool = "note";
    entry.envelope.level = policy::Level::kContainer;
    entry.envelope.floor = {policy::Layer::kSeccomp};
    entry.envelope.runtimes = {"bash"};
    entry.envelope.mounts = {{data_, "/data", Access::kWrite}, {"/usr/share", "/share"}};
    entry.workspace = policy::Workspace::kSessionWrite;
    entry.argv = {Literal("bash"), Literal("-c"), Parameter("text")};
    entry.env = {{"LANG", {WordKind::kLiteral, "C", {}}},
                 {"NAME", {WordKind::kParameter, "n", {}}}};
    table_.entries = {entry};
    good_.entry = "note";
    good_.tenant = 1;
    good_.envelope = entry.envelope;
    good_.envelope.workspace = workspace_;
    good_.envelope.env = {{"LANG", "C"}, {"NAME", "anything"}};
    good_.command = {"bash", "-c", "any text"};
  }

  std::string Code(const std::function<void(RunRequest&)>& change) const {
    RunRequest asked = good_;
    change(asked);
    const Status checked = CheckRequest(rules_, table_, asked);
    return checked.ok() ? "" : checked.error().code;
  }

  test::TempDir dir_;
  std::string workspace_, data_, secret_;
  WardenRules rules_;
  WardenTable table_;
  RunRequest good_;
};

TEST_F(Check, WhatTheManifestAllowsAndLessOfIt) {
  EXPECT_EQ(Code([](RunRequest&) {}), "");
  EXPECT_EQ(Code([](RunRequest& r) { r.command[2] = "other text"; }), "");
  EXPECT_EQ(Code([](RunRequest& r) { r.envelope.env[1].second = "x"; }), "");
  EXPECT_EQ(Code([](RunRequest& r) { r.envelope.env.pop_back(); }), "");
  EXPECT_EQ(Code([](RunRequest& r) { r.envelope.mounts.clear(); }), "");
  EXPECT_EQ(Code([](RunRequest& r) { r.envelope.mounts[0].access = Access::kRead; }), "");
  EXPECT_EQ(Code([&](RunRequest& r) {
              r.envelope.mounts[0] = {data_ + "/part", "/data/part", Access::kWrite};
            }),
            "");
  EXPECT_EQ(Code([](RunRequest& r) { r.envelope.workspace.clear(); }), "");
  EXPECT_EQ(Code([](RunRequest& r) { r.envelope.limits.memory /= 2; }), "");
  EXPECT_EQ(Code([](RunRequest& r) { r.envelope.floor.Add(policy::Layer::kNetns); }), "");
  EXPECT_EQ(Code([](RunRequest& r) { r.envelope.syscalls = policy::SyscallProfile::kStrict; }), "");
  EXPECT_EQ(Code([](RunRequest& r) { r.tenant = 8000; }), "");
}

TEST_F(Check, OnlyWhatTheManifestExports) {
  const auto with = [&](const std::vector<std::string>& exports) {
    return Code([&](RunRequest& r) { r.envelope.exports = exports; });
  };
  EXPECT_EQ(with({"**"}), "policy.entry.exports");
  table_.entries[0].envelope.exports = {"report.html", "plots/**"};
  EXPECT_EQ(with({"report.html", "plots/**"}), "") << "the control";
  EXPECT_EQ(with({"plots/**"}), "");
  EXPECT_EQ(with({}), "");
  EXPECT_EQ(with({"plots/**", "**"}), "policy.entry.exports");
  EXPECT_EQ(with({"../report.html"}), "policy.entry.exports");
}

TEST_F(Check, OnlyTheNetworkOfTheManifest) {
  const std::string api = R"({"host":"api.example.com"})";
  const std::string set = "@pypi";
  const std::string broad = R"(!{"host":"*"})";
  const auto with = [&](const std::vector<std::string>& network) {
    return Code([&](RunRequest& r) { r.envelope.network = network; });
  };
  EXPECT_EQ(with({}), "");
  EXPECT_EQ(with({api}), "policy.entry.envelope") << "the manifest has none";
  table_.entries[0].envelope.network = {api, set};
  EXPECT_EQ(with({api, set}), "") << "the control";
  EXPECT_EQ(with({set}), "");
  EXPECT_EQ(with({}), "");
  EXPECT_EQ(with({api, R"({"host":"evil.example.com"})"}), "policy.entry.envelope");
  EXPECT_EQ(with({R"({"host":"*.example.com"})"}), "policy.entry.envelope");
  EXPECT_EQ(with({"@other"}), "policy.entry.envelope");
  EXPECT_EQ(with({api + " "}), "policy.entry.envelope") << "not the same bytes";
  EXPECT_EQ(with({broad}), "policy.entry.envelope");
  // What is dangerous needs the operator's word beside the manifest's.
  table_.entries[0].envelope.network = {broad};
  EXPECT_EQ(with({broad}), "policy.egress.broad");
  rules_.allow_broad = true;
  EXPECT_EQ(with({broad}), "");

  table_.entries[0].envelope.connections = 4;
  const auto connections = [&](uint64_t count) {
    return Code([&](RunRequest& r) { r.envelope.connections = count; });
  };
  EXPECT_EQ(connections(4), "");
  EXPECT_EQ(connections(1), "");
  EXPECT_EQ(connections(5), "policy.entry.envelope");
  EXPECT_EQ(connections(0), "policy.entry.envelope") << "no bound of its own";
}

TEST_F(Check, NothingElse) {
  using Change = std::function<void(RunRequest&)>;
  const std::pair<const char*, Change> asked[] = {
      {"a tool that is not declared", [](RunRequest& r) { r.entry = "notes"; }},
      {"no tool", [](RunRequest& r) { r.entry.clear(); }},
      {"no tenant", [](RunRequest& r) { r.tenant = 0; }},
      {"another program", [](RunRequest& r) { r.command[0] = "python3"; }},
      {"a program of the workspace", [&](RunRequest& r) { r.command[0] = workspace_ + "/bash"; }},
      {"another option", [](RunRequest& r) { r.command[1] = "-x"; }},
      {"a word more", [](RunRequest& r) { r.command.emplace_back("more"); }},
      {"an option for a value", [](RunRequest& r) { r.command[2] = "-i"; }},
      {"another runtime", [](RunRequest& r) { r.envelope.runtimes = {"python3"}; }},
      {"a runtime more", [](RunRequest& r) { r.envelope.runtimes.emplace_back("host-usr"); }},
      {"no runtime", [](RunRequest& r) { r.envelope.runtimes.clear(); }},
      {"a lower level", [](RunRequest& r) { r.envelope.level = policy::Level::kProcess; }},
      {"any level", [](RunRequest& r) { r.envelope.level = policy::Level::kAuto; }},
      {"no floor", [](RunRequest& r) { r.envelope.floor = {}; }},
      {"more system calls",
       [](RunRequest& r) { r.envelope.syscalls = policy::SyscallProfile::kCompat; }},
      {"system calls of its own",
       [](RunRequest& r) { r.envelope.syscalls = policy::SyscallProfile::kImported; }},
      {"a variable more", [](RunRequest& r) { r.envelope.env.emplace_back("LD_PRELOAD", "x"); }},
      {"another fixed value", [](RunRequest& r) { r.envelope.env[0].second = "D"; }},
      {"a fixed value left out",
       [](RunRequest& r) { r.envelope.env.erase(r.envelope.env.begin()); }},
      {"a variable twice", [](RunRequest& r) { r.envelope.env.emplace_back("NAME", "x"); }},
      {"another directory",
       [&](RunRequest& r) { r.envelope.mounts.push_back({secret_, "/secret"}); }},
      {"writing what may be read",
       [](RunRequest& r) { r.envelope.mounts[1].access = Access::kWrite; }},
      {"the same elsewhere", [](RunRequest& r) { r.envelope.mounts[0].at = "/elsewhere"; }},
      {"what is above", [&](RunRequest& r) { r.envelope.mounts[0].host = dir_.path(); }},
      {"a name like it", [&](RunRequest& r) { r.envelope.mounts[0].host = data_ + "x"; }},
      {"a danger", [](RunRequest& r) { r.envelope.mounts[0].dangerous = true; }},
      {"a danger of the system", [](RunRequest& r) { r.envelope.mounts[0].system = true; }},
      {"another working directory", [](RunRequest& r) { r.envelope.cwd = "/data"; }},
      {"root inside", [](RunRequest& r) { r.envelope.uid = 0; }},
      {"another uid inside", [](RunRequest& r) { r.envelope.uid = 1001; }},
      {"a workspace elsewhere", [&](RunRequest& r) { r.envelope.workspace = secret_; }},
      {"a terminal", [](RunRequest& r) { r.envelope.tty = true; }},
      {"a script", [](RunRequest& r) { r.script = true; }},
      {"an input", [](RunRequest& r) { r.envelope.inputs = {"/etc/shadow"}; }},
      {"a profile", [](RunRequest& r) { r.envelope.imported_seccomp = "{}"; }},
      {"an output directory", [](RunRequest& r) { r.out_dir = "/etc"; }},
  };
  for (const auto& [what, change] : asked) {
    EXPECT_NE(Code(change), "") << what;
  }
  for (uint64_t policy::Limits::* limit :
       {&policy::Limits::memory, &policy::Limits::processes, &policy::Limits::open_files,
        &policy::Limits::disk, &policy::Limits::inodes, &policy::Limits::io,
        &policy::Limits::output, &policy::Limits::tmp}) {
    EXPECT_EQ(Code([&](RunRequest& r) { r.envelope.limits.*limit += 1; }), "policy.entry.envelope");
  }
  EXPECT_EQ(Code([](RunRequest& r) { r.envelope.limits.cpu += Nanos(1); }),
            "policy.entry.envelope");
}

TEST_F(Check, TheDirectoriesOfTheSystemNeedTheirWordAlsoInTheTable) {
  for (const char* host : {"/etc/cron.d", "/etc/systemd", "/etc/pam.d", "/usr/bin", "/usr/lib",
                           "/var/lib/dpkg", "/usr/local/bin"}) {
    if (!test::Exists(host)) {
      continue;
    }
    const policy::Mount mount = {host, "/data", Access::kWrite};
    table_.entries[0].envelope.mounts = {mount};
    EXPECT_EQ(Code([&](RunRequest& r) { r.envelope.mounts = {mount}; }), "policy.path.system")
        << host;
    // With the manifest's word and the operator's flag it is allowed: the control.
    policy::Mount danger = mount;
    danger.dangerous = true;
    table_.entries[0].envelope.mounts = {danger};
    const auto ask = [&] { return Code([&](RunRequest& r) { r.envelope.mounts = {danger}; }); };
    EXPECT_EQ(ask(), "policy.path.broad") << host;
    rules_.allow_broad = true;
    EXPECT_EQ(ask(), "") << host;
    rules_.allow_broad = false;
  }
}

// A tool that could write manifests or the configuration would decide what it may do next.
TEST_F(Check, NothingThatDecidesIsWritableAndNoKeyIsShown) {
  for (const char* name : {"project", "project/tools", "keys", "fine"}) {
    dir_.MakeDir(name);
    if (test::IsRoot()) {
      ASSERT_EQ(::chown((dir_ / name).c_str(), 12345, 12345), 0);
    }
  }
  rules_.relied = {dir_ / "project/tools", dir_ / "config/coffer.toml"};
  rules_.closed = {dir_ / "keys/tls.key"};
  const auto code = [&](const std::string& host, Access access) {
    const policy::Mount mount = {host, "/data", access};
    table_.entries[0].envelope.mounts = {mount};
    return Code([&](RunRequest& r) { r.envelope.mounts = {mount}; });
  };
  EXPECT_EQ(code(dir_ / "project", Access::kWrite), "policy.path.state");
  EXPECT_EQ(code(dir_ / "project/tools", Access::kWrite), "policy.path.state");
  EXPECT_EQ(code(dir_ / "project", Access::kRead), "") << "manifests may be read";
  EXPECT_EQ(code(dir_ / "keys", Access::kRead), "policy.path.state");
  EXPECT_EQ(code(dir_ / "fine", Access::kWrite), "");
}

// Also what the table allows is opened and looked at: it may have changed since it was compiled.
TEST_F(Check, LooksAtMountsItself) {
  const std::string fine = dir_.MakeDir("fine");
  ASSERT_EQ(::symlink(fine.c_str(), (dir_ / "link").c_str()), 0);
  ASSERT_EQ(::symlink((dir_ / "state").c_str(), (dir_ / "alias").c_str()), 0);
  const auto code = [&](const std::string& host, bool dangerous) {
    const policy::Mount mount = {host, "/data", Access::kRead, dangerous};
    table_.entries[0].envelope.mounts = {mount};
    return Code([&](RunRequest& r) {
      r.envelope.mounts = {mount};
      r.envelope.workspace.clear();
    });
  };
  EXPECT_EQ(code(fine, false), "");
  for (const std::string& other :
       {dir_ / "link", dir_ / "fine/../state", std::string("relative"), dir_ / "missing",
        std::string("/"), std::string("/etc"), std::string("/home"), std::string("/proc/self")}) {
    EXPECT_NE(code(other, false), "") << other;
  }
  for (const std::string& own : {dir_ / "state", rules_.sessions, workspace_, dir_.path()}) {
    EXPECT_EQ(code(own, false), "policy.path.state") << own;
  }
  // Also if the operator named it by a link.
  rules_.sessions = dir_ / "alias/sessions";
  EXPECT_EQ(code(workspace_, false), "policy.path.state");
  EXPECT_EQ(code(fine, false), "");
  EXPECT_EQ(code("/etc", true), "policy.path.broad");
  rules_.allow_broad = true;
  EXPECT_EQ(code("/etc", true), "");
  EXPECT_EQ(code("/", true), "policy.path.state") << "no permission shows the store";
}

// A project is what the caller of the command line named. The daemon names none, so there no request has one.
TEST_F(Check, AProjectIsTheCallersWordAlone) {
  const std::string project = dir_.MakeDir("project");
  const std::string other = dir_.MakeDir("other");
  const auto in = [](const std::string& place, RunRequest& r) {
    r.project = place;
    r.envelope.workspace.clear();
    r.envelope.cwd = place;
    r.envelope.mounts.push_back({place, place, Access::kWrite});
  };
  const auto good = [&](RunRequest& r) { in(project, r); };
  EXPECT_EQ(Code(good), "policy.entry.project") << "no project was named";
  rules_.project = project;
  EXPECT_EQ(Code(good), "");
  EXPECT_EQ(Code([&](RunRequest& r) { in(other, r); }), "policy.entry.project");
  EXPECT_EQ(Code([&](RunRequest& r) {
              in(project, r);
              r.project.clear();
            }),
            "policy.entry.envelope")
      << "a mount without its word";
  EXPECT_EQ(Code([&](RunRequest& r) {
              in(project, r);
              r.envelope.mounts.push_back({other, other, Access::kRead});
            }),
            "policy.entry.envelope");
  table_.entries[0].workspace = policy::Workspace::kSessionRead;
  EXPECT_EQ(Code(good), "policy.entry.envelope") << "the manifest only reads";
  EXPECT_EQ(Code([&](RunRequest& r) {
              in(project, r);
              r.envelope.mounts.back().access = Access::kRead;
            }),
            "");
  table_.entries[0].workspace = policy::Workspace::kFresh;
  EXPECT_EQ(Code(good), "policy.entry.project") << "the manifest wants none of it";
  // One that shows our own files, or what decides.
  table_.entries[0].workspace = policy::Workspace::kSessionWrite;
  rules_.project = dir_.path();
  EXPECT_EQ(Code([&](RunRequest& r) { in(dir_.path(), r); }).substr(0, 11), "policy.path");
}

TEST_F(Check, CeilingsHoldWhateverTheManifestSays) {
  table_.entries[0].envelope.limits.memory = 1ULL << 40;
  const auto ask = [&](uint64_t memory) {
    return Code([&](RunRequest& r) { r.envelope.limits.memory = memory; });
  };
  EXPECT_EQ(ask(1ULL << 40), "policy.ceiling");
  EXPECT_EQ(ask(1ULL << 30), "");
  table_.ceilings.memory = 1ULL << 40;
  EXPECT_EQ(ask(1ULL << 40), "") << "the control";
}

TEST_F(Check, AWorkspaceIsOneOfTheGatewaysOwnDirectories) {
  for (const std::string& other : {std::string("/etc"), rules_.sessions, rules_.sessions + "x/a",
                                   rules_.sessions + "/../../etc", rules_.sessions + "/..",
                                   workspace_ + "/b", rules_.sessions + "/"}) {
    EXPECT_NE(Code([&](RunRequest& r) { r.envelope.workspace = other; }), "") << other;
  }
  table_.entries[0].workspace = policy::Workspace::kSessionRead;
  EXPECT_EQ(Code([](RunRequest&) {}), "policy.entry.workspace") << "writing";
  EXPECT_EQ(Code([](RunRequest& r) { r.envelope.workspace_access = Access::kRead; }), "");
  table_.entries[0].workspace = policy::Workspace::kFresh;
  EXPECT_EQ(Code([](RunRequest& r) { r.envelope.workspace_access = Access::kRead; }),
            "policy.entry.workspace");
  table_.entries[0].workspace = policy::Workspace::kSessionWrite;
  EXPECT_EQ(Code([](RunRequest&) {}), "") << "the control";
  if (test::IsRoot()) {
    // What the gateway could have moved there from its own directory.
    ASSERT_EQ(::chown(workspace_.c_str(), 0, 0), 0);
    EXPECT_EQ(Code([](RunRequest&) {}), "policy.workspace");
  }
}

TEST_F(Check, ABackgroundProcessHasWhatItsSectionAllows) {
  const auto background = [](RunRequest& r) {
    r.background = true;
    r.envelope.limits.wall = std::chrono::hours(2);
  };
  EXPECT_EQ(Code(background), "policy.entry.background") << "the entry has no such section";
  policy::BackgroundSpec allowed;
  allowed.wall = std::chrono::hours(2);
  allowed.cpu = std::chrono::minutes(1);
  allowed.ports = {{8000, 8009}};
  table_.entries[0].background = allowed;
  EXPECT_EQ(Code(background), "") << "the control";
  EXPECT_EQ(Code([](RunRequest& r) { r.envelope.limits.wall = std::chrono::hours(2); }),
            "policy.entry.envelope")
      << "the longer time is for processes only";
  const auto with = [&](const std::function<void(RunRequest&)>& change) {
    return Code([&](RunRequest& r) {
      background(r);
      r.ports = {8000, 8001};
      r.port_channels = {7};
      change(r);
    });
  };
  EXPECT_EQ(with([](RunRequest&) {}), "");
  EXPECT_EQ(with([](RunRequest& r) { r.envelope.limits.wall *= 2; }), "policy.entry.envelope");
  EXPECT_EQ(with([](RunRequest& r) { r.envelope.limits.cpu *= 9; }), "policy.entry.envelope");
  EXPECT_EQ(with([](RunRequest& r) { r.envelope.workspace.clear(); }), "policy.entry.background");
  EXPECT_EQ(with([](RunRequest& r) { r.background = false; }), "policy.entry.ports");
  EXPECT_EQ(with([](RunRequest& r) { r.ports = {8010}; }), "policy.entry.ports");
  EXPECT_EQ(with([](RunRequest& r) { r.ports = {80}; }), "policy.entry.ports");
  EXPECT_EQ(with([](RunRequest& r) { r.ports = {8000, 8000}; }), "policy.entry.ports");
  EXPECT_EQ(with([](RunRequest& r) { r.port_channels.clear(); }), "policy.entry.ports");
  EXPECT_EQ(with([](RunRequest& r) { r.envelope.level = policy::Level::kProcess; }),
            "policy.entry.ports");
}

TEST_F(Check, PortsOfOthersAreForCallsOfTheirSession) {
  const auto with = [&](const std::function<void(RunRequest&)>& change) {
    return Code([&](RunRequest& r) {
      r.forwards = {{8000, 0}, {8001, 1}};
      r.port_channels = {7, 8};
      change(r);
    });
  };
  EXPECT_EQ(with([](RunRequest&) {}), "") << "the control";
  EXPECT_EQ(with([](RunRequest& r) { r.envelope.workspace.clear(); }), "policy.entry.ports");
  EXPECT_EQ(with([](RunRequest& r) { r.forwards[1].port = 8000; }), "policy.entry.ports");
  EXPECT_EQ(with([](RunRequest& r) { r.forwards[1].port = 443; }), "policy.entry.ports");
  EXPECT_EQ(with([](RunRequest& r) { r.forwards[1].channel = 2; }), "policy.entry.ports");
  EXPECT_EQ(with([](RunRequest& r) {
              r.forwards.clear();
              for (uint16_t port = 2000; port < 2017; ++port) {
                r.forwards.push_back({port, 0});
              }
            }),
            "policy.entry.ports");
  table_.entries[0].envelope.level = policy::Level::kProcess;
  EXPECT_NE(with([](RunRequest& r) { r.envelope.level = policy::Level::kProcess; }), "");
}

TEST_F(Check, ACallOffersTheToolsOfItsEntryAndNoOthers) {
  EXPECT_EQ(Code([](RunRequest& r) { r.tools = {"other"}; }), "policy.entry.calls");
  table_.entries[0].calls = {{"more", "other"}, 5};
  EXPECT_EQ(Code([](RunRequest& r) { r.tools = {"other"}; }), "policy.entry.calls") << "100 calls";
  const auto five = [](std::vector<std::string> tools) {
    return [tools](RunRequest& r) {
      r.tools = tools;
      r.tool_calls = 5;
    };
  };
  EXPECT_EQ(Code(five({"other"})), "");
  EXPECT_EQ(Code(five({"more", "other"})), "");
  EXPECT_EQ(Code(five({"other", "note"})), "policy.entry.calls");
}

TEST_F(Check, ACallOfACallHasNoMoreThanItsMaker) {
  table_.entries[0].calls = {{"other"}, 5};
  RunRequest maker = good_;
  maker.tools = {"other"};
  const auto code = [&](const std::function<void(RunRequest&)>& change) {
    RunRequest child = good_;
    child.entry = "other";
    change(child);
    const Status checked = CheckChild(table_, maker, child);
    return checked.ok() ? "" : checked.error().code;
  };
  EXPECT_EQ(code([](RunRequest&) {}), "");
  EXPECT_EQ(code([](RunRequest& r) { r.envelope.mounts.clear(); }), "") << "less";
  const std::pair<const char*, std::function<void(RunRequest&)>> kWider[] = {
      {"a tool that is not named", [](RunRequest& r) { r.entry = "note"; }},
      {"another tenant", [](RunRequest& r) { r.tenant = 2; }},
      {"a mount", [&](RunRequest& r) { r.envelope.mounts.push_back({secret_, "/s"}); }},
      {"more access", [](RunRequest& r) { r.envelope.mounts[1].access = Access::kWrite; }},
      {"memory", [](RunRequest& r) { r.envelope.limits.memory += 1; }},
      {"time", [](RunRequest& r) { r.envelope.limits.wall += Nanos(1); }},
      {"a runtime", [](RunRequest& r) { r.envelope.runtimes = {"python3"}; }},
      {"hosts", [](RunRequest& r) { r.envelope.network = {"example.com"}; }},
      {"a session's files", [](RunRequest& r) { r.envelope.workspace += "2"; }},
      {"a weaker filter",
       [](RunRequest& r) { r.envelope.syscalls = policy::SyscallProfile::kCompat; }},
  };
  for (const auto& [what, change] : kWider) {
    EXPECT_EQ(code(change), "policy.parent") << what;
  }
  // The maker's list counts as it was launched, and the table as it is now.
  maker.tools = {"more"};
  EXPECT_EQ(code([](RunRequest&) {}), "policy.parent");
  maker.tools = {"other"};
  table_.entries[0].calls.tools = {"more"};
  EXPECT_EQ(code([](RunRequest&) {}), "policy.parent");
}

}  // namespace
}  // namespace coffer::call
