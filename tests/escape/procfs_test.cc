// SPDX-License-Identifier: Apache-2.0
//
// PS: what /proc and /sys show and what they let one change.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <regex>

#include "tests/support/host.h"
#include "tests/support/verdicts.h"

namespace coffer::test {
namespace {

class ProcfsEscape : public LevelTest {};

bool NothingOpen(const RunResult& result) {
  return !Contains(result.out, "OPEN") && Contains(result.out, "REFUSED");
}

TEST_P(ProcfsEscape, PS_01_SystemSettingsCannotBeWritten) {
  const Strings verb = {"same-write", "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname",
                        "/proc/sys/vm/swappiness"};
  if (IsRoot()) {
    EXPECT_TRUE(Contains(RunOutside(verb).out, "core_pattern: OPEN")) << "NO-CONTROL";
  }
  const RunResult result = RunProbe(Flags(), verb);
  EXPECT_TRUE(NothingOpen(result)) << result.Describe();
}

TEST_P(ProcfsEscape, PS_02_NothingOfTheKernelOpensForWriting) {
  if (IsRoot()) {
    EXPECT_TRUE(Contains(RunOutside({"sweep-writable", "/proc/sys/kernel"}).out, "writable /proc"))
        << "NO-CONTROL";
  }
  const RunResult result = RunProbe(Flags(), {"sweep-writable", "/proc", "/sys"});
  ASSERT_EQ(result.exit, 0) << result.Describe();
  // Of its own processes a program may change some harmless things; of init (pid 1) and the kernel nothing.
  const std::regex own("writable /proc/(self|thread-self|[2-9][0-9]*|1[0-9]+)/[a-z_]+(/[a-z_]+)*");
  for (const std::string& line : Lines(result.out)) {
    if (line.starts_with("writable ")) {
      EXPECT_TRUE(std::regex_match(line, own)) << line;
    }
  }
}

TEST_P(ProcfsEscape, PS_03_KernelWideFilesAreHidden) {
  const Strings files = {
      "/proc/kcore",         "/proc/kmsg",         "/proc/keys",
      "/proc/key-users",     "/proc/timer_list",   "/proc/slabinfo",
      "/proc/kpagecount",    "/proc/vmallocinfo",  "/proc/config.gz",
      "/proc/sysrq-trigger", "/proc/version",      "/proc/modules",
      "/proc/cmdline",       "/proc/interrupts",   "/proc/diskstats",
      "/proc/iomem",         "/proc/buddyinfo",    "/proc/partitions",
      "/proc/sched_debug",   "/proc/zoneinfo",     "/proc/locks",
      "/proc/swaps",         "/proc/pagetypeinfo", "/proc/sys/kernel/random/boot_id"};
  Strings verb = {"open-read"};
  verb.insert(verb.end(), files.begin(), files.end());
  EXPECT_TRUE(Contains(RunOutside({"open-read", "/proc/stat"}).out, "OPEN")) << "NO-CONTROL";
  const RunResult result = RunProbe(Flags(), verb);
  EXPECT_TRUE(NothingOpen(result)) << result.Describe();
}

// What is shown of the machine are the boundary's figures, and they cannot be changed.
TEST(MachineEscape, PS_03_TheMachineIsTheBoundarysOwn) {
  const Strings flags = {"--level", "container", "--memory", "64MiB", "--runtime", "python3"};
  const std::string code =
      "import os\n"
      "read = lambda f: open(f).read()\n"
      "print('memory', read('/proc/meminfo').split()[1], os.sysconf('SC_PHYS_PAGES') * "
      "os.sysconf('SC_PAGE_SIZE') // 1024)\n"
      "print('load', read('/proc/loadavg').split()[0], os.getloadavg()[0])\n"
      "print('idle', read('/proc/stat').split()[4])\n"
      "print('up', float(read('/proc/uptime').split()[0]) < 60)\n"
      "print('cpus', read('/proc/cpuinfo').count('processor\\t:') == os.cpu_count() == "
      "len(os.sched_getaffinity(0)))\n"
      "for f in os.listdir('/proc') + ['meminfo', 'stat', 'cpuinfo', 'loadavg', 'uptime']:\n"
      "  if not f.isdigit() and f not in ('self', 'thread-self'):\n"
      "    for change in (lambda p: open(p, 'w'), lambda p: os.chmod(p, 0o666), os.unlink):\n"
      "      try: change('/proc/' + f); print('OPEN', f)\n"
      "      except OSError: pass\n";
  const RunResult outside = RunProgram({"python3", "-c", code});
  EXPECT_FALSE(Contains(outside.out, "memory 65536 65536")) << "NO-CONTROL: a machine of 64 MiB";
  const RunResult result = RunCoffer(flags, {"python3", "-c", code});
  EXPECT_TRUE(Contains(result.out, "memory 65536 65536\nload 0.00 0.0\n")) << result.Describe();
  EXPECT_TRUE(Contains(result.out, "up True\ncpus True\n")) << result.Describe();
  EXPECT_FALSE(Contains(result.out, "OPEN")) << result.Describe();
}

TEST_P(ProcfsEscape, PS_04_TheCallersEnvironmentIsNowhere) {
  const std::string secret = NewToken();
  RunOptions options;
  options.environment = Strings{"PATH=/usr/bin:/bin", "SECRET_OF_THE_CALLER=" + secret};
  const Strings files = {"environ", "cmdline", "comm", "auxv", "stat", "status", "maps"};
  Strings verb = {"proc-grep", secret};
  verb.insert(verb.end(), files.begin(), files.end());
  {
    // Control: a process outside that carries the secret is found.
    Background carrier({ProbePath(), "wait", "carrier"}, options);
    ASSERT_TRUE(carrier.WaitForOutput("ready"));
    EXPECT_TRUE(Contains(RunOutside(verb).out, "environ: OPEN")) << "NO-CONTROL";
  }
  const RunResult result = RunProbe(Flags(), verb, options);
  EXPECT_FALSE(Contains(result.out, "OPEN")) << result.Describe();
  EXPECT_EQ(result.exit, 0) << result.Describe();
}

TEST_P(ProcfsEscape, PS_04_NothingOfTheCallerIsLeftInMemory) {
  const std::string secret = NewToken();
  std::string rotated = secret;
  for (char& letter : rotated) {
    ++letter;
  }
  RunOptions options;
  options.environment = Strings{"PATH=/usr/bin:/bin", "SECRET_OF_THE_CALLER=" + secret};
  EXPECT_TRUE(Contains(RunOutside({"mem-grep", rotated}, options).out, "memory: OPEN"))
      << "NO-CONTROL";
  const RunResult result = RunProbe(Flags(), {"mem-grep", rotated}, options);
  ExpectRan(result);
  EXPECT_FALSE(Contains(result.out, "OPEN")) << result.Describe();
}

TEST_P(ProcfsEscape, PS_04_OurOwnArgumentsAreNowhere) {
  const std::string secret = NewToken();
  TempDir dir;
  // The path of the receipt is an argument of ours that is none of the payload's business.
  const std::string receipt = dir / (secret + ".json");
  RunOptions options;
  options.receipt = receipt;
  const Strings verb = {"proc-grep", secret, "cmdline", "environ", "comm", "status"};
  {
    Background carrier({ProbePath(), "wait", secret});
    ASSERT_TRUE(carrier.WaitForOutput("ready"));
    EXPECT_TRUE(Contains(RunOutside(verb).out, "cmdline: OPEN")) << "NO-CONTROL";
  }
  const RunResult result = RunProbe(Flags(), verb, options);
  EXPECT_FALSE(Contains(result.out, "OPEN")) << result.Describe();
  EXPECT_EQ(result.exit, 0) << result.Describe();
}

TEST_P(ProcfsEscape, PS_06_KernelAddressesAndLog) {
  EXPECT_TRUE(Contains(RunOutside({"open-read", "/proc/kallsyms"}).out, "OPEN")) << "NO-CONTROL";
  const RunResult result =
      RunProbe(Flags(), {"open-read", "/proc/kallsyms", "/dev/kmsg", "/proc/kmsg"});
  EXPECT_TRUE(NothingOpen(result)) << result.Describe();
}

TEST_P(ProcfsEscape, PS_07_NoSysfs) {
  EXPECT_TRUE(Contains(RunOutside({"list", "/sys/class/net"}).out, "entry ")) << "NO-CONTROL";
  const RunResult result = RunProbe(Flags(), {"list", "/sys/firmware", "/sys/kernel", "/sys/class",
                                              "/sys/class/net", "/sys/block", "/sys/bus"});
  ExpectRan(result);
  EXPECT_FALSE(Contains(result.out, "entry ")) << result.Describe();
  // What is there are a few files about CPUs, and the boundary's own cgroup.
  const RunResult shown =
      RunProbe(Flags(), {"list", "/sys", "/sys/devices", "/sys/devices/system", "/sys/fs"});
  const std::set<std::string> known = {"entry devices", "entry fs", "entry system", "entry cpu",
                                       "entry cgroup"};
  ExpectRan(shown);
  EXPECT_EQ(Contains(shown.out, "entry cpu\n"), container()) << shown.Describe();
  for (const std::string& line : Lines(shown.out)) {
    EXPECT_TRUE(!line.starts_with("entry ") || (container() && known.contains(line)))
        << shown.Describe();
  }
}

// The boundary's own cgroup is the root of what is mounted: no other is below it, and none can be changed.
TEST(MachineEscape, PS_07_TheCgroupIsItsOwn) {
  const std::string code =
      "import os\n"
      "for top, dirs, files in os.walk('/sys/fs/cgroup'):\n"
      "  for name in files:\n"
      "    path = os.path.join(top, name)\n"
      "    if name in ('tasks', 'cgroup.procs'):\n"
      "      print('members', len([p for p in open(path).read().split() if p != '0']))\n"
      "    try: open(path, 'w'); print('OPEN', path)\n"
      "    except OSError: pass\n"
      "  for name in dirs:\n"
      "    if name != 'memory': print('below', name)\n"
      "print('done')\n";
  if (IsRoot()) {
    EXPECT_TRUE(Contains(RunProgram({"python3", "-c", code}).out, "below ")) << "NO-CONTROL";
  }
  const RunResult result =
      RunCoffer({"--level", "container", "--runtime", "python3"}, {"python3", "-c", code});
  EXPECT_TRUE(Contains(result.out, "done")) << result.Describe();
  EXPECT_FALSE(Contains(result.out, "OPEN") || Contains(result.out, "below")) << result.Describe();
  for (const std::string& line : Lines(result.out)) {
    EXPECT_TRUE(!line.starts_with("members ") || line.size() == 9) << "more than a few\n"
                                                                   << result.Describe();
  }
}

TEST_P(ProcfsEscape, PS_12_IdMapsCannotBeWritten) {
  // The control cannot be the probe: exec in a namespace without a map loses the right to write one.
  const pid_t control = fork();
  if (control == 0) {
    const std::string line = "0 " + std::to_string(geteuid()) + " 1";
    const bool entered = unshare(CLONE_NEWUSER) == 0;
    const int fd = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
    _exit(entered && write(fd, line.data(), line.size()) > 0 ? 0 : 1);
  }
  int status = 0;
  waitpid(control, &status, 0);
  EXPECT_EQ(status, 0) << "NO-CONTROL";
  for (const char* name : {"uid_map", "gid_map", "projid_map", "setgroups"}) {
    const RunResult result =
        RunProbe(Flags(), {"write", std::string("/proc/self/") + name,
                           std::string(name) == "setgroups" ? "allow" : "0 0 1"});
    EXPECT_TRUE(NothingOpen(result)) << name << "\n" << result.Describe();
  }
}

TEST_P(ProcfsEscape, PS_14_OnlyItsOwnProcesses) {
  EXPECT_TRUE(Contains(RunOutside({"list", "/proc"}).out, "entry 1\n")) << "NO-CONTROL";
  if (!container()) {
    const RunResult result = RunProbe(Flags(), {"list", "/proc"});
    ExpectRan(result);
    EXPECT_FALSE(Contains(result.out, "entry 1\n")) << "the host's processes are listed\n"
                                                    << result.Describe();
    return;
  }
  const RunResult result = RunProbe(Flags(), {"pids"});
  const Strings lines = Lines(result.out);
  const bool few = std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
    return line == "total 1" || line == "total 2";
  });
  EXPECT_TRUE(few) << result.Describe();
}

TEST_P(ProcfsEscape, InitCannotBeTouchedThroughProc) {
  if (!container()) {
    return;  // there is no init of ours to touch: pid 1 is the host's, and PS-02 covers it
  }
  {
    // Control: outside, another process of the same user is touched by the same names.
    Background witness({ProbePath(), "wait", "witness"});
    ASSERT_TRUE(witness.WaitForOutput("ready"));
    const std::string proc = "/proc/" + std::to_string(witness.pid());
    EXPECT_TRUE(Contains(RunOutside({"open-write", proc + "/oom_score_adj"}).out, "OPEN"))
        << "NO-CONTROL";
    EXPECT_TRUE(Contains(RunOutside({"open-read", proc + "/environ"}).out, "OPEN")) << "NO-CONTROL";
  }
  const RunResult result =
      RunProbe(Flags(), {"open-write", "/proc/1/mem", "/proc/1/oom_score_adj", "/proc/1/comm",
                         "/proc/1/clear_refs", "/proc/1/coredump_filter", "/proc/1/timerslack_ns",
                         "/proc/1/attr/current"});
  EXPECT_TRUE(NothingOpen(result)) << result.Describe();
  const RunResult read =
      RunProbe(Flags(), {"open-read", "/proc/1/environ", "/proc/1/maps", "/proc/1/mem",
                         "/proc/1/auxv", "/proc/1/stack", "/proc/1/syscall", "/proc/1/io"});
  EXPECT_TRUE(NothingOpen(read)) << read.Describe();
}

TEST_P(ProcfsEscape, PS_16_NoHostIdentity) {
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  const std::string machine = ReadFile("/etc/machine-id").value_or("none-on-this-host");
  EXPECT_TRUE(Contains(RunOutside({"open-read", "/proc/sys/kernel/random/boot_id"}).out, "OPEN"))
      << "NO-CONTROL";
  const RunResult result = RunProbe(
      Flags(), {"open-read", "/etc/machine-id", "/etc/hostname", "/var/lib/dbus/machine-id",
                "/proc/device-tree/serial-number", "/proc/sys/kernel/random/boot_id"});
  ExpectRan(result);
  EXPECT_FALSE(Contains(result.out, Lines(machine).empty() ? "none" : Lines(machine).front()))
      << result.Describe();
  if (container()) {
    const RunResult name =
        RunCoffer(Flags(), {"python3", "-c", "import os; print('name', os.uname().nodename)"});
    EXPECT_FALSE(Contains(name.out, std::string("name ") + host + "\n")) << name.Describe();
    EXPECT_TRUE(Contains(name.out, "name ")) << name.Describe();
  }
}

INSTANTIATE_TEST_SUITE_P(Level, ProcfsEscape, ::testing::Values("container", "process"),
                         LevelTestName);

}  // namespace
}  // namespace coffer::test
