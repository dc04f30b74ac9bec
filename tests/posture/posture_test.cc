// SPDX-License-Identifier: Apache-2.0
//
// A live boundary, looked at from outside, against a table. Nothing here believes what the inside says.
#include <gtest/gtest.h>
#include <linux/kcmp.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include "tests/support/host.h"

namespace coffer::test {
namespace {

namespace fs = std::filesystem;

class Posture : public LevelTest {
 protected:
  static std::string Proc(pid_t pid, const std::string& name) {
    return "/proc/" + std::to_string(pid) + "/" + name;
  }
};

// The four ids of a Uid: or Gid: line.
std::set<unsigned> Ids(const std::string& line) {
  std::set<unsigned> ids;
  std::istringstream stream(line);
  for (unsigned id = 0; stream >> id;) {
    ids.insert(id);
  }
  return ids;
}

struct MountEntry {
  std::string root, at, type;
  std::set<std::string> options, super;
};

std::set<std::string> Split(const std::string& text) {
  std::set<std::string> words;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, ',');) {
    words.insert(word);
  }
  return words;
}

std::vector<MountEntry> MountsOf(pid_t pid) {
  std::vector<MountEntry> mounts;
  for (const std::string& line :
       Lines(ReadFile("/proc/" + std::to_string(pid) + "/mountinfo").value_or(""))) {
    std::istringstream stream(line);
    std::string id, parent, device, root, at, options, word, type, source, super;
    stream >> id >> parent >> device >> root >> at >> options;
    while (stream >> word && word != "-") {
    }
    stream >> type >> source >> super;
    mounts.push_back({root, at, type, Split(options), Split(super)});
  }
  return mounts;
}

TEST_P(Posture, NS_05_CapabilitiesAndPrivileges) {
  LiveBoundary boundary(Flags());
  ASSERT_TRUE(boundary.ok()) << boundary.Why();
  for (const pid_t pid : {boundary.payload(), container() ? boundary.init() : boundary.payload()}) {
    auto status = LookAt(pid).status;
    for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}) {
      // Emptying the bounding set takes a capability, which an ordinary user has only in a user namespace.
      if (std::string(set) == "CapBnd" && !container() && !IsRoot()) {
        continue;
      }
      EXPECT_EQ(status[set], "0000000000000000") << set << " of pid " << pid;
    }
    EXPECT_EQ(status["NoNewPrivs"], "1") << pid;
    EXPECT_EQ(status["Seccomp"], "2") << pid;
    EXPECT_GE(atoi(status["Seccomp_filters"].c_str()), 1) << pid;
  }
}

TEST_P(Posture, SC_25_EveryProcessAndThreadHasTheSameFilters) {
  // A shell with a child: both, and each of their threads, carry as many filters as the first.
  const std::string token = NewToken();
  Background run({CofferPath(), "run", "--level", level(), "--", "python3", "-c",
                  "import threading, subprocess, time, sys\n"
                  "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
                  "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)', '" +
                      token +
                      "'])\n"
                      "print('ready', flush=True)\n"
                      "p.wait()\n",
                  token});
  ASSERT_TRUE(run.WaitForOutput("ready")) << run.err();
  ASSERT_TRUE(WaitUntil([&] { return FindProcesses(token).size() >= 2; }));
  std::set<std::string> counts;
  for (const pid_t pid : FindProcesses(token)) {
    for (const auto& thread : fs::directory_iterator(Proc(pid, "task"))) {
      auto status = LookAt(atoi(thread.path().filename().c_str())).status;
      counts.insert(status["Seccomp_filters"] + "/" + status["NoNewPrivs"] + "/" +
                    status["CapEff"]);
    }
  }
  EXPECT_EQ(counts.size(), 1U) << *counts.begin() << " and others";
}

TEST_P(Posture, NS_06_HostIdentity) {
  LiveBoundary first(Flags());
  LiveBoundary second(Flags());
  ASSERT_TRUE(first.ok() && second.ok()) << first.Why() << second.Why();
  for (LiveBoundary* boundary : {&first, &second}) {
    for (const pid_t pid :
         {boundary->payload(), container() ? boundary->init() : boundary->payload()}) {
      auto status = LookAt(pid).status;
      const auto uids = Ids(status["Uid"]);
      const auto gids = Ids(status["Gid"]);
      EXPECT_EQ(uids.size(), 1U) << status["Uid"];
      EXPECT_EQ(gids.size(), 1U) << status["Gid"];
      EXPECT_FALSE(uids.contains(0)) << "root on the host: " << status["Uid"];
      EXPECT_FALSE(gids.contains(0)) << status["Gid"];
      if (IsRoot()) {
        EXPECT_EQ(status["Groups"], "") << "supplementary groups stayed";
      } else {
        EXPECT_EQ(*uids.begin(), geteuid());
      }
    }
  }
  if (IsRoot()) {
    EXPECT_NE(LookAt(first.payload()).status["Uid"], LookAt(second.payload()).status["Uid"])
        << "two boundaries share a uid";
    EXPECT_NE(LookAt(first.payload()).status["Gid"], LookAt(second.payload()).status["Gid"]);
  }
}

TEST_P(Posture, NamespacesAreItsOwn) {
  LiveBoundary first(Flags());
  LiveBoundary second(Flags());
  ASSERT_TRUE(first.ok() && second.ok()) << first.Why() << second.Why();
  auto host = LookAt(getpid()).namespaces;
  auto one = LookAt(first.payload()).namespaces;
  auto two = LookAt(second.payload()).namespaces;
  ASSERT_FALSE(one.empty()) << "a payload of one's own uid can be looked at";
  for (const char* kind : {"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"}) {
    if (container()) {
      EXPECT_FALSE(one[kind].empty()) << kind;
      EXPECT_NE(one[kind], host[kind]) << kind << " is the host's";
      EXPECT_NE(one[kind], two[kind]) << kind << " is shared by two boundaries";
    } else {
      EXPECT_EQ(one[kind], host[kind]) << "the process level has no namespaces";
    }
  }
}

TEST_P(Posture, FS_08_DescriptorsOfThePayload) {
  LiveBoundary boundary(Flags());
  ASSERT_TRUE(boundary.ok()) << boundary.Why();
  std::set<std::string> fds;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(Proc(boundary.payload(), "fd"), error)) {
    fds.insert(entry.path().filename());
    char target[256] = {};
    if (readlink(entry.path().c_str(), target, sizeof target - 1) > 0) {
      EXPECT_TRUE(std::string(target).starts_with("pipe:")) << entry.path() << " is " << target;
    }
  }
  EXPECT_FALSE(error) << error.message();
  EXPECT_EQ(fds, (std::set<std::string>{"0", "1", "2"}));
}

TEST_P(Posture, WhereItStands) {
  LiveBoundary boundary(Flags());
  ASSERT_TRUE(boundary.ok()) << boundary.Why();
  char cwd[4096] = {};
  ASSERT_GT(readlink(Proc(boundary.payload(), "cwd").c_str(), cwd, sizeof cwd - 1), 0);
  if (container()) {
    EXPECT_STREQ(cwd, "/workspace");
    struct stat inside = {}, host = {};
    ASSERT_EQ(stat(Proc(boundary.payload(), "root/").c_str(), &inside), 0);
    ASSERT_EQ(stat("/", &host), 0);
    EXPECT_FALSE(inside.st_dev == host.st_dev && inside.st_ino == host.st_ino)
        << "its root is the host's";
    for (const char* place : {"home", "root", "boot", "srv", "mnt", "opt", "var", "run"}) {
      // The command's own file is there; one from a private place such as /tmp is moved below /run.
      if (ProbePath().starts_with(std::string("/") + place + "/") ||
          (place == std::string_view("run") && ProbePath().starts_with("/tmp/"))) {
        continue;
      }
      std::error_code error;
      const fs::path path = fs::path(Proc(boundary.payload(), "root")) / place;
      EXPECT_TRUE(!fs::exists(path, error) || fs::is_empty(path, error))
          << path << " holds something";
    }
  }
}

TEST_P(Posture, InitShowsNothing) {
  if (!container()) {
    GTEST_SKIP() << "the process level has no init of its own";
  }
  LiveBoundary boundary(Flags());
  ASSERT_TRUE(boundary.ok()) << boundary.Why();
  auto status = LookAt(boundary.init()).status;
  EXPECT_EQ(status["NSpid"].substr(status["NSpid"].rfind('\t') + 1), "1")
      << "the payload's parent is not init: " << status["NSpid"];
  // An init that shares the supervisor's memory shows the supervisor's words to the host; that nobody inside sees them is
  // the matter of the escape tests (procfs).
  const bool shared = syscall(SYS_kcmp, boundary.init(), boundary.supervisor(), KCMP_VM, 0, 0) == 0;
  const std::string arguments = ReadFile(Proc(boundary.init(), "cmdline")).value_or("");
  if (!shared) {
    EXPECT_FALSE(Contains(arguments, boundary.token())) << "init carries our arguments";
    EXPECT_FALSE(Contains(arguments, "receipt"));
  }
  if (IsRoot() && !shared) {
    const std::string environment = ReadFile(Proc(boundary.init(), "environ")).value_or("");
    EXPECT_EQ(environment.find_first_not_of('\0'), std::string::npos)
        << "init has an environment: " << environment;
  }
  // Not dumpable: its /proc entries belong to root, whatever its uid.
  struct stat info = {};
  ASSERT_EQ(stat(Proc(boundary.init(), "environ").c_str(), &info), 0);
  if (IsRoot()) {
    EXPECT_EQ(info.st_uid, 0U);
  }
  const auto uids = Ids(status["Uid"]);
  EXPECT_NE(info.st_uid, *uids.begin()) << "init is dumpable";
}

TEST_P(Posture, ItHasASessionOfItsOwn) {
  LiveBoundary boundary(Flags());
  ASSERT_TRUE(boundary.ok()) << boundary.Why();
  EXPECT_NE(getsid(boundary.payload()), getsid(0));
  EXPECT_NE(getpgid(boundary.payload()), getpgid(0));
  // tty_nr, the seventh field of stat, is 0 without a terminal.
  const std::string stat_line = ReadFile(Proc(boundary.payload(), "stat")).value_or("");
  std::istringstream fields(stat_line.substr(stat_line.rfind(')') + 2));
  std::string state, parent, group, session, terminal;
  fields >> state >> parent >> group >> session >> terminal;
  EXPECT_EQ(terminal, "0");
}

TEST_P(Posture, Rlimits) {
  LiveBoundary boundary(Flags({"--open-files", "77", "--disk", "10MiB"}));
  ASSERT_TRUE(boundary.ok()) << boundary.Why();
  const std::string limits = ReadFile(Proc(boundary.payload(), "limits")).value_or("");
  ASSERT_FALSE(limits.empty());
  const auto hard = [&](const std::string& name) -> std::string {
    for (const std::string& line : Lines(limits)) {
      if (line.starts_with(name)) {
        std::istringstream stream(line.substr(26));
        std::string soft, value;
        stream >> soft >> value;
        return value;
      }
    }
    return "absent";
  };
  struct rlimit host{};
  ASSERT_EQ(::getrlimit(RLIMIT_CORE, &host), 0);
  EXPECT_EQ(hard("Max core file size"), host.rlim_max == 0 ? "0" : "1");
  EXPECT_EQ(hard("Max open files"), "77");
  // A tmpfs has a size of its own; the limit is for files of the host (RlimitsBesideAWritableDirectory).
  EXPECT_EQ(hard("Max file size") == "unlimited", container());
  EXPECT_EQ(hard("Max locked memory"), "65536");
  EXPECT_EQ(hard("Max pending signals"), "256");
  EXPECT_EQ(hard("Max msgqueue size"), "0");
  EXPECT_EQ(hard("Max nice priority"), "0");
  EXPECT_EQ(hard("Max realtime priority"), "0");
}

TEST(ContainerPosture, RlimitsBesideAWritableDirectory) {
  const TempDir dir;
  LiveBoundary boundary(
      {"--level", "container", "--disk", "10MiB", "--rw", dir.MakeDir("rw") + ":/rw"});
  ASSERT_TRUE(boundary.ok()) << boundary.Why();
  const std::string limits =
      ReadFile("/proc/" + std::to_string(boundary.payload()) + "/limits").value_or("");
  EXPECT_TRUE(Contains(limits, "Max file size             16777216 ")) << limits;
}

TEST_P(Posture, Cgroups) {
  LiveBoundary boundary(Flags({"--memory", "100MiB", "--processes", "17"}));
  ASSERT_TRUE(boundary.ok()) << boundary.Why();
  Strings own;
  for (const std::string& dir : CgroupDirs(boundary.payload())) {
    if (Contains(dir, "coffer-")) {
      own.push_back(dir);
    }
  }
  if (!IsRoot() && own.empty()) {
    // No delegated cgroup for this user: the receipt must say so, checked when the call has ended.
    boundary.process().Signal(15);
    boundary.process().Wait(Seconds(20));
    const Json receipt = boundary.Receipt();
    ASSERT_TRUE(receipt.is_object());
    EXPECT_TRUE(Contains(receipt["isolation"]["missing"].dump(), "cgroup-memory"))
        << receipt["isolation"].dump();
    return;
  }
  ASSERT_FALSE(own.empty()) << "the payload is in no cgroup of its own";
  std::map<std::string, std::string> files;
  for (const std::string& dir : own) {
    for (const char* name : {"memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "pids.max",
                             "memory.max", "memory.swap.max"}) {
      if (const auto text = ReadFile(dir + "/" + name)) {
        files[name] = Lines(*text).front();
      }
    }
    struct stat info = {};
    stat(dir.c_str(), &info);
    EXPECT_FALSE(Ids(LookAt(boundary.payload()).status["Uid"]).contains(info.st_uid) && IsRoot())
        << dir << " belongs to the boundary's own uid";
  }
  const bool v2 = files.contains("memory.max");
  const std::string memory = files[v2 ? "memory.max" : "memory.limit_in_bytes"];
  EXPECT_GE(atol(memory.c_str()), 100L << 20) << memory;
  EXPECT_LE(atol(memory.c_str()), 132L << 20) << memory;
  EXPECT_GE(atol(files["pids.max"].c_str()), 17) << files["pids.max"];
  EXPECT_LE(atol(files["pids.max"].c_str()), 19) << "17, init, and no more";
  if (files.contains("memory.memsw.limit_in_bytes")) {
    EXPECT_LE(atol(files["memory.memsw.limit_in_bytes"].c_str()), 132L << 20)
        << "RS-16: swap is not counted";
  }
  if (v2) {
    EXPECT_EQ(files["memory.swap.max"], "0");
  }
  // The whole tree is in it, init too.
  if (container()) {
    for (const std::string& dir : own) {
      EXPECT_TRUE(
          Contains(ReadFile("/proc/" + std::to_string(boundary.init()) + "/cgroup").value_or(""),
                   fs::path(dir).filename().string()))
          << "init is not in " << dir;
    }
  }
}

TEST_P(Posture, MountFlags) {
  if (!container()) {
    // The process level mounts nothing: its mount namespace is ours.
    LiveBoundary boundary(Flags());
    ASSERT_TRUE(boundary.ok()) << boundary.Why();
    EXPECT_EQ(LookAt(boundary.payload()).namespaces["mnt"], LookAt(getpid()).namespaces["mnt"]);
    return;
  }
  TempDir dir;
  const std::string ro = dir.MakeDir("ro");
  const std::string rw = dir.MakeDir("rw");
  LiveBoundary boundary(Flags({"--no-exec", "--ro", ro + ":/ro", "--rw", rw + ":/rw"}));
  ASSERT_TRUE(boundary.ok()) << boundary.Why();
  const auto mounts = MountsOf(boundary.payload());
  ASSERT_GT(mounts.size(), 3U);
  std::set<std::string> seen;
  for (const MountEntry& mount : mounts) {
    seen.insert(mount.at);
    EXPECT_TRUE(mount.options.contains("nosuid")) << mount.at << " may hold setuid programs";
    // A device of its own, or all of /dev as one tree: then nothing can be added to it, and see below what is in it.
    const bool device =
        (mount.at.starts_with("/dev/") && mount.type != "tmpfs") ||
        (mount.at == "/dev" && mount.options.contains("ro") && mount.options.contains("noexec"));
    EXPECT_TRUE(mount.options.contains("nodev") || device) << mount.at << " may hold devices";
    EXPECT_NE(mount.type, "sysfs") << mount.at;
    if (mount.type.starts_with("cgroup")) {
      EXPECT_TRUE(mount.at.starts_with("/sys/fs/cgroup")) << mount.at;
      EXPECT_TRUE(mount.options.contains("ro")) << mount.at << " is writable";
    }
    const bool writable = mount.options.contains("rw") && mount.super.contains("rw");
    if (writable) {
      EXPECT_TRUE(mount.options.contains("noexec") || device)
          << mount.at << " is writable and executable";
    }
    if (mount.at == "/ro" || mount.at == "/" || mount.at.starts_with("/usr") ||
        mount.at.starts_with("/lib") || mount.at.starts_with("/etc") ||
        mount.at.starts_with("/bin")) {
      EXPECT_TRUE(mount.options.contains("ro")) << mount.at << " is writable";
    }
    if (mount.at == "/ro" || mount.at == "/rw" || mount.at == "/proc" || mount.at == "/tmp" ||
        mount.at == "/workspace") {
      EXPECT_TRUE(mount.options.contains("noexec")) << mount.at;
    }
    if (mount.type == "tmpfs" && writable) {
      bool sized = false;
      for (const std::string& option : mount.super) {
        sized = sized || option.starts_with("size=");
      }
      EXPECT_TRUE(sized) << mount.at << " is a tmpfs without a size";
    }
    if (mount.at.starts_with("/proc")) {
      EXPECT_TRUE(mount.options.contains("ro")) << mount.at << " is writable";
    }
    if (mount.type == "proc") {
      EXPECT_TRUE(mount.super.contains("subset=pid")) << "kernel-wide files are in /proc";
    }
  }
  for (const char* place : {"/", "/proc", "/workspace", "/tmp", "/ro", "/rw"}) {
    EXPECT_TRUE(seen.contains(place)) << place << " is not a mount";
  }
}

// Without --runtime and --no-exec: /usr is one mount that gives no privilege, and what is written can be executed.
TEST_P(Posture, UsrIsOneMount) {
  if (!container()) {
    GTEST_SKIP() << "the process level mounts nothing";
  }
  LiveBoundary boundary(Flags());
  ASSERT_TRUE(boundary.ok()) << boundary.Why();
  size_t in_usr = 0;
  for (const MountEntry& mount : MountsOf(boundary.payload())) {
    if (mount.at == "/usr") {
      ++in_usr;
      for (const char* option : {"ro", "nosuid", "nodev"}) {
        EXPECT_TRUE(mount.options.contains(option)) << "/usr is not " << option;
      }
    }
    if (mount.at.starts_with("/usr/")) {
      EXPECT_TRUE(mount.options.contains("ro")) << mount.at;  // a part that is covered
    }
    if (mount.at == "/workspace" || mount.at == "/tmp") {
      EXPECT_FALSE(mount.options.contains("noexec")) << mount.at;
      EXPECT_TRUE(mount.options.contains("nosuid")) << mount.at;
    }
  }
  EXPECT_EQ(in_usr, 1U);
}

// Whichever way /dev was made: these five devices, as every kernel numbers them, its own terminals, and links.
TEST_P(Posture, DevHoldsFiveDevices) {
  if (!container()) {
    GTEST_SKIP() << "the process level has the host's /dev, and Landlock in front of it";
  }
  LiveBoundary boundary(Flags());
  ASSERT_TRUE(boundary.ok()) << boundary.Why();
  const std::string dev = "/proc/" + std::to_string(boundary.payload()) + "/root/dev";
  std::error_code error;
  std::map<std::string, std::pair<unsigned, unsigned>> devices;
  for (const auto& entry : std::filesystem::directory_iterator(dev, error)) {
    struct stat info;
    ASSERT_EQ(::lstat(entry.path().c_str(), &info), 0);
    if (S_ISLNK(info.st_mode) || entry.path().filename() == "pts") {
      continue;
    }
    ASSERT_TRUE(S_ISCHR(info.st_mode)) << entry.path();
    devices[entry.path().filename()] = {major(info.st_rdev), minor(info.st_rdev)};
  }
  ASSERT_FALSE(error) << error.message();
  const std::map<std::string, std::pair<unsigned, unsigned>> expected = {
      {"null", {1, 3}}, {"zero", {1, 5}}, {"full", {1, 7}}, {"urandom", {1, 9}}, {"tty", {5, 0}}};
  EXPECT_EQ(devices, expected);
  int terminals = 0;
  for (const auto& entry : std::filesystem::directory_iterator(dev + "/pts", error)) {
    terminals += entry.path().filename() == "ptmx" ? 0 : 1;
  }
  EXPECT_EQ(terminals, 0) << "a terminal that is not its own";
}

TEST_P(Posture, ThePersonalityIsPlain) {
  LiveBoundary boundary(Flags());
  ASSERT_TRUE(boundary.ok()) << boundary.Why();
  const auto personality = ReadFile(Proc(boundary.payload(), "personality"));
  EXPECT_EQ(personality, "00000000\n");
}

// Init may be sent to one processor while it is set up; nothing of that may be inherited.
TEST_P(Posture, ItHasAllTheProcessorsOfItsCaller) {
  LiveBoundary boundary(Flags());
  ASSERT_TRUE(boundary.ok()) << boundary.Why();
  const std::string own = LookAt(getpid()).status["Cpus_allowed_list"];
  ASSERT_FALSE(own.empty());
  for (const pid_t pid : {boundary.payload(), boundary.init(), boundary.supervisor()}) {
    EXPECT_EQ(LookAt(pid).status["Cpus_allowed_list"], own) << pid;
  }
}

// The process level has the host's network, and no socket for it.
TEST(ContainerPosture, TheLoopbackOfItsNetworkIsUp) {
  LiveBoundary boundary({"--level", "container"});
  ASSERT_TRUE(boundary.ok()) << boundary.Why();
  // An address is known to the table only while its device is up.
  const std::string table =
      ReadFile("/proc/" + std::to_string(boundary.payload()) + "/net/fib_trie").value_or("");
  EXPECT_TRUE(Contains(table, "127.0.0.1")) << table;
}

TEST_P(Posture, TheOutOfMemoryKillerTakesItFirst) {
  LiveBoundary boundary(Flags());
  ASSERT_TRUE(boundary.ok()) << boundary.Why();
  const std::string own = ReadFile("/proc/self/oom_score_adj").value_or("0");
  const std::string its = ReadFile(Proc(boundary.payload(), "oom_score_adj")).value_or("-1000");
  EXPECT_GE(atoi(its.c_str()), atoi(own.c_str())) << "the host's processes would die before it";
}

TEST_P(Posture, TheSupervisorIsSmall) {
  LiveBoundary boundary(Flags());
  ASSERT_TRUE(boundary.ok()) << boundary.Why();
  // Nothing of the run may leave the supervisor open to the payload's uid: it is another process of the caller.
  auto status = LookAt(boundary.supervisor()).status;
  EXPECT_EQ(Ids(status["Uid"]), std::set<unsigned>{geteuid()});
  EXPECT_LE(atol(status["Threads"].c_str()), 2);
}

TEST_P(Posture, TheReceiptSaysWhatWasSeen) {
  LiveBoundary boundary(Flags());
  ASSERT_TRUE(boundary.ok()) << boundary.Why();
  auto status = LookAt(boundary.payload()).status;
  auto spaces = LookAt(boundary.payload()).namespaces;
  auto host = LookAt(getpid()).namespaces;
  boundary.process().Signal(15);
  boundary.process().Wait(Seconds(20));
  const Json receipt = boundary.Receipt();
  ASSERT_TRUE(receipt.is_object()) << "killed by a signal: there is a receipt all the same";
  EXPECT_EQ(receipt["isolation"]["level"], level());
  std::set<std::string> layers;
  for (const Json& layer : receipt["isolation"]["layers"]) {
    layers.insert(layer.is_string() ? layer.get<std::string>() : layer.value("name", ""));
  }
  const std::string all = receipt["isolation"].dump();
  EXPECT_EQ(layers.contains("seccomp"), status["Seccomp"] == "2") << all;
  EXPECT_EQ(layers.contains("no-new-privs"), status["NoNewPrivs"] == "1") << all;
  EXPECT_EQ(layers.contains("capabilities"), status["CapBnd"] == "0000000000000000") << all;
  EXPECT_TRUE(layers.contains("landlock")) << all;
  EXPECT_TRUE(layers.contains("rlimits")) << all;
  for (const auto& [layer, kind] : {std::pair{"userns", "user"},
                                    {"mountns", "mnt"},
                                    {"pidns", "pid"},
                                    {"netns", "net"},
                                    {"ipcns", "ipc"},
                                    {"utsns", "uts"},
                                    {"cgroupns", "cgroup"}}) {
    if (!spaces.empty()) {
      EXPECT_EQ(layers.contains(layer), spaces[kind] != host[kind]) << layer << " in " << all;
    } else {
      EXPECT_EQ(layers.contains(layer), container()) << layer << " in " << all;
    }
  }
  EXPECT_EQ(layers.contains("private-root"), container()) << all;
}

INSTANTIATE_TEST_SUITE_P(Level, Posture, ::testing::Values("container", "process"), LevelTestName);

}  // namespace
}  // namespace coffer::test
