// SPDX-License-Identifier: Apache-2.0
//
// The daemon's roles as the kernel describes them, and what becomes of the others when one of them dies.
#include <dirent.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "tests/daemon/daemon.h"

namespace coffer::test {
namespace {

constexpr const char* kNoCapabilities = "0000000000000000";

// Where the descriptors of a process lead. Only root may look.
std::vector<std::string> Descriptors(pid_t pid) {
  std::vector<std::string> targets;
  const std::string place = "/proc/" + std::to_string(pid) + "/fd";
  DIR* const dir = ::opendir(place.c_str());
  if (dir == nullptr) {
    ADD_FAILURE() << "cannot look into " << place;
    return targets;
  }
  while (const dirent* entry = ::readdir(dir)) {
    char target[4096];
    const ssize_t size = ::readlink((place + "/" + entry->d_name).c_str(), target, sizeof(target));
    if (size > 0) {
      targets.emplace_back(target, static_cast<size_t>(size));
    }
  }
  ::closedir(dir);
  return targets;
}

// Inodes of the sockets that listen (TCP and unix), as the process's own network namespace shows them.
std::set<std::string> Listening(pid_t pid) {
  std::set<std::string> inodes;
  const std::string net = "/proc/" + std::to_string(pid) + "/net/";
  for (const char* table : {"tcp", "tcp6"}) {
    for (const std::string& line : Lines(ReadFile(net + table).value_or(""))) {
      std::istringstream words(line);
      std::string number, local, remote, state, queues, timer, retransmits, uid, timeout, inode;
      words >> number >> local >> remote >> state >> queues >> timer >> retransmits >> uid >>
          timeout >> inode;
      if (state == "0A") {
        inodes.insert("socket:[" + inode + "]");
      }
    }
  }
  for (const std::string& line : Lines(ReadFile(net + "unix").value_or(""))) {
    std::istringstream words(line);
    std::string number, count, protocol, flags, type, state, inode;
    words >> number >> count >> protocol >> flags >> type >> state >> inode;
    if (flags == "00010000") {  // __SO_ACCEPTCON
      inodes.insert("socket:[" + inode + "]");
    }
  }
  return inodes;
}

size_t ListeningSockets(pid_t pid) {
  const std::set<std::string> listening = Listening(pid);
  size_t found = 0;
  for (const std::string& target : Descriptors(pid)) {
    found += listening.contains(target) ? 1 : 0;
  }
  return found;
}

class RolePosture : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(daemon_.Start());
    gateway_ = daemon_.Find(RoleOf::kGateway);
    egress_ = daemon_.Find(RoleOf::kEgress);
    warden_ = daemon_.Find(RoleOf::kWarden);
    proxy_ = daemon_.Find(RoleOf::kProxy);
    ASSERT_GT(gateway_, 0);
    ASSERT_GT(egress_, 0);
    ASSERT_GT(warden_, 0);
    ASSERT_GT(proxy_, 0);
    ASSERT_TRUE(WaitUntil([&] { return StatusOf(proxy_)["Seccomp"] == "2"; }));
  }
  Daemon daemon_;
  pid_t gateway_ = 0, egress_ = 0, warden_ = 0, proxy_ = 0;
};

TEST_F(RolePosture, GatewayAndEgressHaveNoPrivilege) {
  for (const auto& [pid, uid] : {std::pair(gateway_, 0x6fff0001U), std::pair(egress_, 0x6fff0002U),
                                 std::pair(proxy_, 0x6fff0004U)}) {
    std::map<std::string, std::string> status = StatusOf(pid);
    SCOPED_TRACE(uid);
    if (IsRoot()) {
      const std::string id = std::to_string(uid);
      EXPECT_EQ(status["Uid"], id + "\t" + id + "\t" + id + "\t" + id);
      EXPECT_EQ(status["Gid"], id + "\t" + id + "\t" + id + "\t" + id);
      EXPECT_EQ(status["Groups"].find_first_not_of(' '), std::string::npos) << status["Groups"];
      EXPECT_EQ(status["CapBnd"], kNoCapabilities);
    }
    for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapAmb"}) {
      EXPECT_EQ(status[set], kNoCapabilities) << set;
    }
    EXPECT_EQ(status["NoNewPrivs"], "1");
    EXPECT_EQ(status["Seccomp"], "2");
    // Every thread has them, not only the first.
    const std::string tasks = "/proc/" + std::to_string(pid) + "/task";
    DIR* const dir = ::opendir(tasks.c_str());
    ASSERT_NE(dir, nullptr);
    while (const dirent* entry = ::readdir(dir)) {
      if (entry->d_name[0] != '.') {
        std::map<std::string, std::string> thread = StatusOf(std::atoi(entry->d_name));
        EXPECT_EQ(thread["Seccomp"], "2");
        EXPECT_EQ(thread["NoNewPrivs"], "1");
        EXPECT_EQ(thread["Uid"], status["Uid"]);
        EXPECT_EQ(thread["CapEff"], kNoCapabilities);
      }
    }
    ::closedir(dir);
    // What is not dumpable belongs to root in /proc, whoever it runs as.
    struct stat info{};
    ASSERT_EQ(::stat(("/proc/" + std::to_string(pid) + "/mem").c_str(), &info), 0);
    EXPECT_EQ(info.st_uid, 0U) << "it is dumpable";
  }
  // The control: the test itself has none of that.
  std::map<std::string, std::string> own = StatusOf(::getpid());
  EXPECT_EQ(own["NoNewPrivs"], "0");
  struct stat info{};
  ASSERT_EQ(::stat("/proc/self/mem", &info), 0);
  EXPECT_EQ(info.st_uid, ::geteuid());
  if (IsRoot()) {
    EXPECT_NE(own["CapEff"], kNoCapabilities);
    EXPECT_NE(own["CapBnd"], kNoCapabilities);
  }
}

TEST_F(RolePosture, WardenIsFilteredAndListensNowhere) {
  std::map<std::string, std::string> status = StatusOf(warden_);
  EXPECT_EQ(status["Seccomp"], "2");
  EXPECT_EQ(status["Threads"], "1");
  if (!IsRoot()) {
    EXPECT_EQ(status["NoNewPrivs"], "1");
    return;
  }
  EXPECT_EQ(ListeningSockets(warden_), 0U);
  EXPECT_EQ(ListeningSockets(egress_), 0U);
  EXPECT_EQ(ListeningSockets(daemon_.monitor()), 0U);
  // The control: the gateway's two are found.
  EXPECT_EQ(ListeningSockets(gateway_), 2U);
}

TEST_F(RolePosture, NothingIsOpenThatARoleDoesNotNeed) {
  if (!IsRoot()) {
    GTEST_SKIP() << "only root may look at the descriptors of a process that is not dumpable";
  }
  // After work, so that something that leaks is there.
  EXPECT_EQ(daemon_.Call(daemon_.key(), Bash("true", daemon_.NewSession(daemon_.key()))).status,
            200);
  const auto strange = [&](const std::string& target, bool files) {
    for (const char* plain : {"socket:", "pipe:", "anon_inode:"}) {
      if (target.starts_with(plain)) {
        return false;
      }
    }
    return target != "/dev/null" && !(files && target.starts_with(daemon_.state() + "/"));
  };
  size_t databases = 0;
  for (const std::string& target : Descriptors(gateway_)) {
    EXPECT_FALSE(strange(target, true)) << "the gateway has " << target;
    databases += Contains(target, "coffer.db") ? 1 : 0;
  }
  EXPECT_GT(databases, 0U) << "the control: the gateway's store is not among its descriptors";
  for (const pid_t pid : {egress_, warden_}) {
    for (const std::string& target : Descriptors(pid)) {
      EXPECT_FALSE(strange(target, false)) << pid << " has " << target;
    }
  }
}

// The process that parses the operator's files lives for moments. It is stopped in the middle and looked at, then it goes on.
class Compiler {
 public:
  Compiler(pid_t monitor, const std::vector<pid_t>& others) : monitor_(monitor), others_(others) {}
  ~Compiler() {
    if (pid_ > 0) {
      ::kill(pid_, SIGCONT);
    }
  }
  // Asks for a reload and waits for a child of the monitor that is none of the roles, until it has its filter.
  bool Catch() {
    ::kill(monitor_, SIGHUP);
    const auto until = std::chrono::steady_clock::now() + Seconds(3);
    while (std::chrono::steady_clock::now() < until) {
      std::istringstream children(ReadFile(Children()).value_or(""));
      for (pid_t child = 0; children >> child;) {
        if (std::find(others_.begin(), others_.end(), child) == others_.end() && Stop(child)) {
          pid_ = child;
          return true;
        }
      }
    }
    return false;
  }
  pid_t pid() const { return pid_; }

 private:
  std::string Children() const {
    const std::string id = std::to_string(monitor_);
    return "/proc/" + id + "/task/" + id + "/children";
  }
  static bool Stop(pid_t child) {
    while (StatusOf(child)["Seccomp"] == "0") {
    }
    return ::kill(child, SIGSTOP) == 0 &&
           WaitUntil([&] { return !StatusOf(child)["State"].starts_with("R"); }) &&
           StatusOf(child)["State"].starts_with("T");
  }
  const pid_t monitor_;
  const std::vector<pid_t> others_;
  pid_t pid_ = 0;
};

TEST_F(RolePosture, TheCompilerHasNoPrivilegeAndEnds) {
  // Enough to parse that it can be stopped meanwhile.
  for (int i = 0; i < 200; ++i) {
    std::ofstream(daemon_.tools() + "/many" + std::to_string(i) + ".toml")
        << "[tool]\nname = \"many" << i
        << "\"\nversion = \"1.0.0\"\nowner = \"tests\"\nsummary = \"One of many.\"\n"
           "effect = \"reversible\"\n[input.schema]\ntype = \"object\"\n[run]\n"
           "runtime = \"bash\"\nargv = [\"bash\", \"--version\"]\n"
           "[[examples.allow]]\nargs = {}\nwhy = \"nothing\"\n"
           "[[examples.deny]]\nargs = { x = 1 }\nwhy = \"a parameter that is not declared\"\n";
  }
  Compiler compiler(daemon_.monitor(), ChildrenOf(daemon_.monitor()));
  for (int i = 0; i < 20 && compiler.pid() == 0; ++i) {
    compiler.Catch();
  }
  ASSERT_GT(compiler.pid(), 0) << "no compiler was seen";
  std::map<std::string, std::string> status = StatusOf(compiler.pid());
  EXPECT_EQ(status["Seccomp"], "2");
  EXPECT_EQ(status["NoNewPrivs"], "1");
  EXPECT_EQ(status["Threads"], "1");
  for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapAmb"}) {
    EXPECT_EQ(status[set], kNoCapabilities) << set;
  }
  if (IsRoot()) {
    const std::string id = std::to_string(0x6fff0003U);
    EXPECT_EQ(status["Uid"], id + "\t" + id + "\t" + id + "\t" + id);
    EXPECT_EQ(status["Gid"], id + "\t" + id + "\t" + id + "\t" + id);
    EXPECT_EQ(status["Groups"].find_first_not_of(' '), std::string::npos) << status["Groups"];
    EXPECT_EQ(status["CapBnd"], kNoCapabilities);
    // What it writes to, the last table, and the files that it is reading; no socket of any role.
    for (const std::string& target : Descriptors(compiler.pid())) {
      EXPECT_FALSE(target.starts_with("socket:")) << target;
      EXPECT_FALSE(Contains(target, daemon_.state())) << target;
    }
  }
  struct stat info{};
  ASSERT_EQ(::stat(("/proc/" + std::to_string(compiler.pid()) + "/mem").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, 0U) << "it is dumpable";
  ::kill(compiler.pid(), SIGCONT);
  EXPECT_TRUE(WaitUntil([&] { return !IsAlive(compiler.pid()); })) << "it does not end";
  EXPECT_EQ(daemon_.Call(daemon_.key(), Bash("true")).Outcome(), "success");
}

// As root, each tenant's boundaries have uids of a range of its own, which no other tenant ever had.
TEST_F(RolePosture, BoundariesHaveUidsOfTheirTenant) {
  if (!IsRoot()) {
    GTEST_SKIP() << "an ordinary user has one uid for everything";
  }
  const auto uid_of = [&](const std::string& key, const std::string& session) -> uint64_t {
    const std::vector<pid_t> before = daemon_.Runners();
    EXPECT_EQ(daemon_.Call(key, Bash(WaitForGo(), session), kAsync).status, 202);
    EXPECT_TRUE(WaitUntil([&] { return Exists(daemon_.Workspace(session) + "/began"); }));
    for (const pid_t runner : daemon_.Runners()) {
      if (std::find(before.begin(), before.end(), runner) == before.end()) {
        for (const pid_t init : ChildrenOf(runner)) {
          return std::strtoull(StatusOf(init)["Uid"].c_str(), nullptr, 10);
        }
      }
    }
    ADD_FAILURE() << "there is no boundary";
    return 0;
  };
  constexpr uint64_t kFirst = 0x70400000, kEach = 0x8000;
  std::set<uint64_t> uids, ranges;
  for (const std::string tenant : {"one", "two", "three"}) {
    const std::string key = daemon_.NewKey(tenant, "agent", "a")["key"];
    std::set<uint64_t> of_tenant;
    for (int i = 0; i < 2; ++i) {
      const uint64_t uid = uid_of(key, daemon_.NewSession(key));
      EXPECT_GE(uid, kFirst) << tenant;
      EXPECT_TRUE(uids.insert(uid).second) << "two boundaries have the uid " << uid;
      of_tenant.insert((uid - kFirst) / kEach);
    }
    EXPECT_EQ(of_tenant.size(), 1U) << tenant;
    ranges.merge(of_tenant);
  }
  EXPECT_EQ(ranges.size(), 3U) << "two tenants share a range";
}

void ExpectAllGone(Daemon& daemon, pid_t victim, const std::vector<pid_t>& processes) {
  ASSERT_EQ(::kill(victim, SIGKILL), 0);
  EXPECT_TRUE(daemon.Gone(Seconds(5)));  // at once; the rest is for a busy machine
  for (const pid_t pid : processes) {
    EXPECT_TRUE(WaitUntil([&] { return !IsAlive(pid); }, Seconds(5))) << pid << " goes on";
  }
}

class RoleDeath : public RolePosture, public ::testing::WithParamInterface<RoleOf> {};

TEST_P(RoleDeath, IsTheEndOfAllAndOfTheirCalls) {
  const std::string session = daemon_.NewSession(daemon_.key());
  EXPECT_EQ(daemon_.Call(daemon_.key(), Bash(WaitForGo(), session), kAsync).status, 202);
  ASSERT_TRUE(WaitUntil([&] { return Exists(daemon_.Workspace(session) + "/began"); }));
  std::vector<pid_t> processes = {daemon_.monitor(), gateway_, egress_, proxy_, warden_};
  // The runner, and what runs below it.
  for (size_t i = 4; i < processes.size(); ++i) {
    for (const pid_t child : ChildrenOf(processes[i])) {
      processes.push_back(child);
    }
  }
  // The control. The command's own short sleeps come and go.
  std::erase_if(processes, [](pid_t pid) { return !IsAlive(pid); });
  ASSERT_GT(processes.size(), 6U) << "the call is not below the warden";
  ExpectAllGone(daemon_, daemon_.Find(GetParam()), processes);
}

std::string RoleName(const ::testing::TestParamInfo<RoleOf>& role) {
  constexpr const char* kNames[] = {"Monitor", "Gateway", "Egress", "Warden"};
  return kNames[static_cast<size_t>(role.param)];
}

INSTANTIATE_TEST_SUITE_P(All, RoleDeath,
                         ::testing::Values(RoleOf::kMonitor, RoleOf::kGateway, RoleOf::kEgress,
                                           RoleOf::kWarden),
                         RoleName);

}  // namespace
}  // namespace coffer::test
