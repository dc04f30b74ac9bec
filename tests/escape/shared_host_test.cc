// SPDX-License-Identifier: Apache-2.0
//
// SH: what a process can do to the files and processes of its own user without opening them, and to pools that the whole
// host shares. At the process level there is no namespace in the way, and an ordinary user's payload has his own uid.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <sstream>

#include "tests/support/host.h"
#include "tests/support/verdicts.h"

namespace coffer::test {
namespace {

class SharedHostEscape : public LevelTest {
 protected:
  TempDir dir_;

  // Everything about a file but its content, in one line.
  static std::string MetadataOf(const std::string& path) {
    struct stat info = {};
    EXPECT_EQ(lstat(path.c_str(), &info), 0) << path;
    char names[4096] = {};
    const ssize_t size = llistxattr(path.c_str(), names, sizeof names);
    std::ostringstream text;
    text << std::oct << info.st_mode << std::dec << " " << info.st_uid << ":" << info.st_gid
         << " size " << info.st_size << " mtime " << info.st_mtim.tv_sec << "."
         << info.st_mtim.tv_nsec << " attributes "
         << std::string(names, names + std::max<ssize_t>(size, 0));
    return text.str();
  }

  // How the kernel schedules a process, and one of its limits.
  static std::string ScheduleOf(pid_t pid) {
    std::ostringstream text;
    cpu_set_t processors;
    CPU_ZERO(&processors);
    sched_getaffinity(pid, sizeof processors, &processors);
    rlimit files = {};
    prlimit(pid, RLIMIT_NOFILE, nullptr, &files);
    text << "nice " << getpriority(PRIO_PROCESS, static_cast<id_t>(pid)) << " policy "
         << sched_getscheduler(pid) << " processors " << CPU_COUNT(&processors) << " io "
         << syscall(SYS_ioprio_get, 1, pid) << " files " << files.rlim_cur;
    return text.str();
  }
};

TEST_P(SharedHostEscape, SH_01_MetadataOfFilesOutside) {
  const std::string file = dir_.Write("file", "x", 0600);
  Expectation expectation;
  expectation.errnos = {container() ? "ENOENT" : "EPERM", "EACCES"};  // EACCES: Landlock
  expectation.syscalls = {{"fchownat-link", "fchownat"}, {"utimensat-now", "utimensat"}};
  ExpectContained("SH-01", Flags(), {"metadata", file}, expectation);
  // The control left its marks: judge by what the host sees.
  EXPECT_EQ(std::filesystem::status(file).permissions(), std::filesystem::perms(0666))
      << "NO-CONTROL";
  dir_.Write("file", "x", 0600);
  const std::string before = MetadataOf(file);
  (void)RunProbe(Flags(), {"metadata", file});
  EXPECT_EQ(MetadataOf(file), before) << "OPEN";
}

TEST_P(SharedHostEscape, SH_01_MetadataOfFilesThatMayOnlyBeRead) {
  const std::string shared = dir_.MakeDir("shared");
  const std::string file = dir_.Write("shared/file", "x", 0644);
  const Strings flags = Flags({"--ro", container() ? shared + ":/data" : shared});
  if (MountsAreRefused(flags)) {
    return;
  }
  const std::string at = container() ? "/data/file" : file;
  for (const char* verb : {"metadata", "metadata-fd"}) {
    dir_.Write("shared/file", "x", 0644);
    const auto outside = ParseAttempts(RunOutside({verb, file}).out);
    dir_.Write("shared/file", "x", 0644);
    const std::string before = MetadataOf(file);
    const RunResult result = RunProbe(flags, {verb, at});
    const auto inside = ParseAttempts(result.out);
    EXPECT_GE(inside.size(), 8U) << result.Describe();
    for (const auto& [label, attempt] : inside) {
      EXPECT_EQ(attempt.state, Attempt::State::kRefused) << label << "\n" << result.Describe();
      const bool opened =
          outside.contains(label) && outside.at(label).state == Attempt::State::kOpen;
      // An access mode of its own may be refused before a descriptor is there.
      EXPECT_TRUE(opened || label == "neither-open") << "NO-CONTROL: " << label;
    }
    EXPECT_EQ(MetadataOf(file), before) << "OPEN: " << verb << "\n" << result.Describe();
  }
}

TEST_P(SharedHostEscape, SH_01_AttributesOfFilesOutsideAreNotRead) {
  const std::string file = dir_.Write("file", "x", 0644);
  const std::string flag = NewToken();
  if (setxattr(file.c_str(), "user.secret", flag.data(), flag.size(), 0) != 0) {
    GTEST_SKIP() << "the file system of /tmp has no extended attributes";
  }
  const Strings verb = {"attribute", file, "user.secret"};
  const auto outside = ParseAttempts(RunOutside(verb).out);
  const RunResult result = RunProbe(Flags(), verb);
  const auto inside = ParseAttempts(result.out);
  EXPECT_EQ(inside.size(), 6U) << result.Describe();
  for (const auto& [label, attempt] : inside) {
    EXPECT_EQ(outside.at(label).state, Attempt::State::kOpen) << "NO-CONTROL: " << label;
    EXPECT_EQ(attempt.state, Attempt::State::kRefused) << label << "\n" << result.Describe();
  }
  EXPECT_FALSE(Contains(result.out, flag)) << "OPEN\n" << result.Describe();
}

constexpr const char* kOwnFiles = R"(
import os, shutil, tarfile, io, stat
d = os.environ['HOME'] + '/own'
os.makedirs(d)
f = d + '/file'
open(f, 'w').write('x')
os.chmod(f, 0o640)
os.utime(f, (1000, 2000))
os.chdir(d)
os.chmod('file', 0o604)
shutil.copy2('file', 'copy')
fd = os.open('copy', os.O_RDONLY)
os.fchmod(fd, 0o611)
os.utime(fd, ns=(5, 7))
os.chmod('file', 0o600, dir_fd=os.open(d, os.O_RDONLY)) if os.chmod in os.supports_dir_fd else None
os.symlink('file', 'link')
os.utime('link', (3, 4), follow_symlinks=False)
os.chown('file', os.getuid(), -1)
try: os.setxattr('file', 'user.note', b'value')
except OSError as e: print('xattr', e.errno)
data = io.BytesIO()
with tarfile.open(fileobj=data, mode='w') as t:
  for name in ('file', 'copy', 'link'): t.add(name)
data.seek(0)
os.mkdir('out')
with tarfile.open(fileobj=data) as t: t.extractall('out')
s = os.stat('copy')
print('copy', oct(s.st_mode & 0o7777), s.st_mtime_ns)
print('file', int(os.stat('file').st_mtime), oct(os.stat('file').st_mode & 0o777))
print('link', int(os.lstat('link').st_mtime))
print('out', oct(os.stat('out/copy').st_mode & 0o777))
for bad in (0o4755, 0o2755):
  try: os.chmod('file', bad); print('SPECIAL')
  except PermissionError: print('refused')
try: os.chmod('none', 0o600)
except FileNotFoundError: print('absent')
try: os.chown('file', 0 if os.getuid() else 1, -1); print('GIVEN AWAY')
except OSError: print('kept')
)";

// What a tool does in its own directories must go on working: the same script, the same answers at both levels and
// outside.
TEST_P(SharedHostEscape, SH_01_MetadataOfItsOwnFiles) {
  NothingIsAttacked("what tools do in their own directories");
  const std::string expected =
      "copy 0o611 7\nfile 2000 0o600\nlink 4\nout 0o611\nrefused\nrefused\nabsent\nkept\n";
  const RunResult result = RunCoffer(Flags(), {"python3", "-c", kOwnFiles});
  // Before Linux 6.6 a tmpfs has no attributes of the user's own; the container's workspace is one.
  const std::string without = "xattr 95\n";
  EXPECT_EQ(container() && result.out.starts_with(without) ? result.out.substr(without.size())
                                                           : result.out,
            expected)
      << result.Describe();
  EXPECT_EQ(DeniedCount(result.receipt, "utimensat"), 0) << result.Describe();
}

// One thread exchanges a file of its own with a link to the host's; the other changes modes by that name.
constexpr const char* kRace = R"(
import os, sys, threading, time
d, target = sys.argv[1] or os.environ['HOME'], sys.argv[2]
os.chdir(d)
open('file', 'w').close()
os.symlink(target, 'link')
end = time.time() + 3
def flip():
  while time.time() < end:
    os.rename('file', 'x'); os.rename('link', 'file'); os.rename('x', 'link')
t = threading.Thread(target=flip); t.start()
made = 0
while time.time() < end:
  for name in ('file', d + '/file', './link'):
    try: os.chmod(name, 0o666); made += 1
    except OSError: pass
t.join()
print('made', made > 0)
)";

TEST_P(SharedHostEscape, SH_01_ANameThatIsSwappedDuringTheCall) {
  const std::string victim = dir_.Write("victim", "x", 0600);
  const std::string own = dir_.MakeDir("own");
  RunProgram({"python3", "-c", kRace, own, victim});
  EXPECT_EQ(std::filesystem::status(victim).permissions(), std::filesystem::perms(0666))
      << "NO-CONTROL: outside, the link is followed";
  chmod(victim.c_str(), 0600);
  const RunResult result = RunCoffer(Flags({"--cpu", "30s"}), {"python3", "-c", kRace, "", victim});
  EXPECT_EQ(result.out, "made True\n") << "the race was not run\n" << result.Describe();
  EXPECT_EQ(std::filesystem::status(victim).permissions(), std::filesystem::perms(0600)) << "OPEN";
}

TEST_P(SharedHostEscape, SH_01_WaysOutOfAGrantedTree) {
  const std::string victim = dir_.Write("victim", "x", 0600);
  const std::string shared = dir_.MakeDir("shared");
  const Strings flags = Flags({"--rw", container() ? shared + ":/data" : shared});
  if (MountsAreRefused(flags)) {
    return;
  }
  const std::string at = container() ? "/data" : shared;
  ASSERT_EQ(symlink(victim.c_str(), (shared + "/absolute").c_str()), 0);
  ASSERT_EQ(symlink("../victim", (shared + "/relative").c_str()), 0);
  ASSERT_EQ(symlink("..", (shared + "/up").c_str()), 0);
  for (const char* way :
       {"absolute", "relative", "up/victim", "../victim", "./.././victim", "..//victim"}) {
    const std::string name = "/" + std::string(way);
    EXPECT_TRUE(Contains(RunOutside({"metadata", shared + name}).out, "fchmodat: OPEN"))
        << "NO-CONTROL: " << way;
    dir_.Write("victim", "x", 0600);
    const std::string before = MetadataOf(victim);
    const RunResult result = RunProbe(flags, {"metadata", at + name});
    EXPECT_TRUE(Contains(result.out, "fchmodat: REFUSED")) << way << "\n" << result.Describe();
    EXPECT_EQ(MetadataOf(victim), before) << "OPEN: " << way << "\n" << result.Describe();
  }
  // And the granted tree itself is the payload's.
  dir_.Write("shared/inside", "x", 0600);
  EXPECT_TRUE(Contains(RunProbe(flags, {"metadata", at + "/inside"}).out, "fchmodat: OPEN"));
  EXPECT_EQ(std::filesystem::status(shared + "/inside").permissions(),
            std::filesystem::perms(0666));
}

TEST_P(SharedHostEscape, SH_02_TheTurnAndTheLimitsOfAnotherProcess) {
  for (const char* profile : {"strict", "default", "compat"}) {
    Background control({ProbePath(), "wait", "control"});
    Background witness({ProbePath(), "wait", "witness"});
    ASSERT_TRUE(control.WaitForOutput("ready") && witness.WaitForOutput("ready"));
    const std::string usual = ScheduleOf(witness.pid());
    const std::string pid = std::to_string(witness.pid());
    const Strings flags = Flags({"--seccomp", profile});
    Expectation expectation;
    expectation.errnos = {"EPERM", "ESRCH"};  // ESRCH: no such process in its namespace
    expectation.control_verb = {"reschedule", std::to_string(control.pid())};
    expectation.syscalls = {{"prlimit-read", "prlimit64"}, {"prlimit-write", "prlimit64"}};
    ExpectContained("SH-02", flags, {"reschedule", pid}, expectation);
    EXPECT_NE(ScheduleOf(control.pid()), usual) << "NO-CONTROL";
    const RunResult all = RunProbe(flags, {"reschedule-all", pid});
    EXPECT_EQ(ParseAttempts(all.out).size(), 4U) << all.Describe();
    if (!container()) {
      // Everything of a user at once: outside it would be everything of ours, so the receipt stands for the control.
      EXPECT_FALSE(Contains(all.out, "OPEN")) << all.Describe();
      EXPECT_EQ(DeniedCount(all.receipt, "setpriority"), 2) << all.Describe();
      EXPECT_EQ(DeniedCount(all.receipt, "ioprio_set"), 2) << all.Describe();
    }
    EXPECT_EQ(ScheduleOf(witness.pid()), usual) << "OPEN with " << profile;
  }
  const RunResult own = RunProbe(Flags(), {"own-schedule"});
  EXPECT_EQ(ParseAttempts(own.out).size(), 5U) << own.Describe();
  EXPECT_FALSE(Contains(own.out, "REFUSED")) << "of itself it may\n" << own.Describe();
}

TEST_P(SharedHostEscape, SH_03_EveryOtherWayToNameAProcess) {
  Background witness({ProbePath(), "wait", "witness"});
  ASSERT_TRUE(witness.WaitForOutput("ready"));
  const std::string pid = std::to_string(witness.pid());
  Expectation expectation;
  expectation.errnos = {"EPERM", "ESRCH"};
  expectation.labels = {"process_vm_readv", "process_vm_writev", "kcmp",
                        "move_pages",       "migrate_pages",     "get_robust_list"};
  if (SignalsStayInside()) {
    expectation.labels.insert({"kill", "tgkill", "rt_sigqueueinfo"});
  }
  if (container()) {
    expectation.labels.insert("pidfd_open");
  } else {
    expectation.labels.insert({"pidfd_getfd", "process_madvise", "process_mrelease"});
    if (SignalsStayInside()) {
      expectation.labels.insert("pidfd_send_signal");
    }
  }
  ExpectContained("SH-03", Flags({"--seccomp", "compat"}), {"meddle", pid}, expectation);
  Expectation owner;
  owner.errnos = {"EPERM", "ESRCH"};
  owner.labels = {"f_setown"};
  ExpectContained("SH-03", Flags(), {"own-signal", pid}, owner);
  EXPECT_FALSE(witness.ended());
}

TEST_P(SharedHostEscape, SH_04_WatchingADirectoryOutside) {
  Expectation expectation;
  expectation.errnos = {container() ? "ENOENT" : "EPERM", "EPERM"};
  expectation.labels = {"inotify_add_watch", "fanotify_init"};
  for (const char* profile : {"default", "compat"}) {
    ExpectContained("SH-04", Flags({"--seccomp", profile}), {"watch", dir_.path()}, expectation);
  }
}

TEST_P(SharedHostEscape, SH_05_AReaderDoesNotHoldUpWriters) {
  const std::string shared = dir_.MakeDir("shared");
  const std::string file = dir_.Write("shared/file", "x", 0644);
  const Strings mount = {"--ro", container() ? shared + ":/data" : shared};
  if (MountsAreRefused(Flags(mount))) {
    return;
  }
  for (const char* profile : {"strict", "default", "compat"}) {
    Strings flags = Flags(mount);
    flags.insert(flags.end(), {"--seccomp", profile});
    Expectation expectation;
    expectation.control_verb = {"hold", file};
    expectation.labels = {"lease", "lease-high", "dnotify", "syncfs"};
    expectation.syscalls = {{"lease", "fcntl"}, {"lease-high", "fcntl"}, {"dnotify", "fcntl"}};
    expectation.options.cwd = dir_.path();
    ExpectContained("SH-05", flags, {"hold", container() ? "/data/file" : file}, expectation);
  }
}

TEST_P(SharedHostEscape, SH_06_PoolsOfTheHost) {
  for (const char* profile : {"strict", "default", "compat"}) {
    Expectation expectation;
    expectation.labels = {"mmap-huge",   "mmap-huge-2m", "memfd-huge", "memfd-huge-2m",
                          "shmget-huge", "io_setup",     "pipe-size"};
    expectation.syscalls = {{"mmap-huge", "mmap"},          {"mmap-huge-2m", "mmap"},
                            {"memfd-huge", "memfd_create"}, {"memfd-huge-2m", "memfd_create"},
                            {"shmget-huge", "shmget"},      {"pipe-size", "fcntl"}};
    ExpectContained("SH-06", Flags({"--seccomp", profile}), {"pools"}, expectation);
    Expectation merged;
    merged.labels = {"merged-page"};
    merged.errnos = {"EINVAL"};
    ExpectContained("SH-06", Flags({"--seccomp", profile}), {"pools"}, merged);
  }
}

TEST_P(SharedHostEscape, SH_07_IpcObjectsDoNotStay) {
  const std::string key = std::to_string(0x30000000 | (getpid() & 0xffffff));
  EXPECT_FALSE(Contains(RunOutside({"ipc-leave", key}).out, "REFUSED"));
  EXPECT_FALSE(Contains(RunOutside({"ipc-remove", key}).out, "REFUSED")) << "NO-CONTROL";
  const RunResult result = RunProbe(Flags({"--seccomp", "compat"}), {"ipc-leave", key});
  EXPECT_EQ(ParseAttempts(result.out).size(), 4U) << result.Describe();
  if (!container()) {
    EXPECT_FALSE(Contains(result.out, "OPEN")) << result.Describe();
  }
  EXPECT_FALSE(Contains(RunOutside({"ipc-remove", key}).out, "OPEN")) << "OPEN: left on the host\n"
                                                                      << result.Describe();
}

// Netlink shows interfaces, addresses and neighbours of the host; `compat` has it for boundaries with a network namespace.
TEST_P(SharedHostEscape, SH_09_TheNetworkOfTheHostIsNotShown) {
  const auto interfaces = [](const std::string& out) {
    std::set<std::string> names;
    for (const std::string& line : Lines(out)) {
      if (line.starts_with("interface ")) {
        names.insert(line.substr(10));
      }
    }
    return names;
  };
  EXPECT_GT(interfaces(RunOutside({"netlink"}).out).size(), 1U) << "NO-CONTROL: only loopback";
  const RunResult result = RunProbe(Flags({"--seccomp", "compat"}), {"netlink"});
  EXPECT_TRUE(Contains(result.out, "done")) << result.Describe();
  EXPECT_EQ(interfaces(result.out),
            container() ? std::set<std::string>{"lo"} : std::set<std::string>{})
      << result.Describe();
}

// Another user of the host opens `beside` and no other of the paths in `verb`.
void ExpectOthersReadOnly(const std::string& beside, const Strings& verb) {
  RunOptions nobody;
  nobody.in_child = [] {
    if (setresgid(65534, 65534, 65534) != 0 || setresuid(65534, 65534, 65534) != 0) {
      _exit(90);
    }
  };
  for (const auto& [path, attempt] : ParseAttempts(RunOutside(verb, nobody).out)) {
    EXPECT_EQ(attempt.state, path == beside ? Attempt::State::kOpen : Attempt::State::kRefused)
        << path;
  }
  EXPECT_TRUE(Contains(RunOutside(verb, nobody).out, "OPEN")) << "NO-CONTROL";
}

// A file that only its owner may read, brought in with --in: nobody else on the host reads the copy.
TEST_P(SharedHostEscape, SH_08_CopiesOfInputsAreNobodyElses) {
  const std::string flag = NewToken();
  const std::string secret = dir_.Write("secret", flag, 0600);
  const std::string beside = dir_.Write("beside", flag, 0644);
  LiveBoundary boundary(Flags({"--in", secret}));
  ASSERT_TRUE(boundary.ok()) << boundary.Why();
  // Every name below a scratch directory of this call, as root or its owner sees them.
  Strings verb = {"open-read", beside};
  const char* const wished = getenv("TMPDIR");
  const std::string parent = IsRoot() || wished == nullptr ? "/tmp" : wished;
  const std::string prefix = "coffer-scratch-" + std::to_string(boundary.supervisor()) + "-";
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(parent)) {
    if (entry.path().filename().string().starts_with(prefix)) {
      for (const auto& below : std::filesystem::recursive_directory_iterator(entry, ignored)) {
        if (!below.is_directory(ignored)) {
          verb.push_back(below.path());
        }
      }
    }
  }
  if (!container()) {
    EXPECT_GE(verb.size(), 4U) << "the copy, its link and the canary";
    EXPECT_TRUE(Contains(RunOutside(verb).out, flag)) << "NO-CONTROL: not even its owner finds it";
  }
  // An ordinary user cannot become another one: the modes have to say it.
  for (size_t i = 2; !IsRoot() && i < verb.size(); ++i) {
    const std::string scratch = verb[i].substr(0, verb[i].find('/', parent.size() + 1));
    EXPECT_EQ(std::filesystem::status(scratch).permissions(), std::filesystem::perms(0700));
  }
  if (IsRoot()) {
    ExpectOthersReadOnly(beside, verb);
  }
  // In order: a call that is killed leaves its cgroup and its scratch directory to the next one.
  boundary.process().Signal(SIGTERM);
  EXPECT_FALSE(boundary.process().Wait().timed_out);
}

INSTANTIATE_TEST_SUITE_P(Level, SharedHostEscape, ::testing::Values("container", "process"),
                         LevelTestName);

}  // namespace
}  // namespace coffer::test
