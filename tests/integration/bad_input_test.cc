// SPDX-License-Identifier: Apache-2.0
//
// Bad input: one line that says what is wrong and what to do, exit 120 (125 where the host is at fault), nothing ran,
// nothing left behind.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/close_range.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>

#include "tests/support/host.h"

namespace coffer::test {
namespace {

class BadInput : public HostWatchTest {
 protected:
  // The marker would appear on stdout if anything ran.
  static void ExpectRefused(const Strings& flags, const std::string& named, int exit = 120) {
    std::string all;
    for (const std::string& flag : flags) {
      all += flag + " ";
    }
    const RunResult result = RunProbe(flags, {"args", "it-ran"});
    EXPECT_EQ(result.exit, exit) << all << "\n" << result.Describe();
    EXPECT_TRUE(result.err.starts_with("coffer: ")) << all << "\n" << result.Describe();
    EXPECT_TRUE(Contains(result.err, named))
        << all << ": the message does not name " << named << "\n"
        << result.err;
    EXPECT_LE(Lines(result.err).size(), 3U) << "one line and a hint\n" << result.err;
    EXPECT_FALSE(Contains(result.out, "it-ran")) << all << ": it ran all the same";
  }
};

TEST_F(BadInput, Sizes) {
  for (const char* flag : {"--memory", "--disk", "--output", "--tmp", "--io"}) {
    for (const char* value :
         {"-1", "1e99", "10XB", "", "0", "NaN", "18446744073709551616", "9223372036854775808GiB",
          "1.5GiB", "unlimited", "0x10", " 1", "1 MiB", "+1"}) {
      ExpectRefused({flag, value}, flag);
    }
  }
}

TEST_F(BadInput, Durations) {
  for (const char* flag : {"--wall", "--cpu"}) {
    for (const char* value :
         {"banana", "-1s", "0", "0s", "1e9", "10000000h", "1y", "", "s", "inf"}) {
      ExpectRefused({flag, value}, flag);
    }
  }
}

TEST_F(BadInput, Counts) {
  for (const char* flag : {"--processes", "--open-files"}) {
    for (const char* value : {"-1", "0", "banana", "1e3", "1000000000000", "", "3.5"}) {
      ExpectRefused({flag, value}, flag);
    }
  }
}

TEST_F(BadInput, OtherValues) {
  ExpectRefused({"--no-such-flag"}, "--no-such-flag");
  ExpectRefused({"--level", "paranoid"}, "paranoid");
  ExpectRefused({"--floor", "moat"}, "moat");
  ExpectRefused({"--uid", "-5"}, "--uid");
  ExpectRefused({"--env", "NOEQUALS"}, "NOEQUALS");
  ExpectRefused({"--env", "=x"}, "--env");
  ExpectRefused({"--cwd", "relative"}, "--cwd");
  ExpectRefused({"--cwd", "/workspace/../etc"}, "..");
}

TEST_F(BadInput, AFlagWithoutItsValue) {
  const RunResult result = RunProgram({CofferPath(), "run", "--memory"});
  EXPECT_EQ(result.exit, 120) << result.Describe();
  EXPECT_TRUE(Contains(result.err, "--memory")) << result.err;
  const RunResult nothing = RunProgram({CofferPath(), "run"});
  EXPECT_EQ(nothing.exit, 120) << nothing.Describe();
  const RunResult dashes = RunProgram({CofferPath(), "run", "--"});
  EXPECT_EQ(dashes.exit, 120) << dashes.Describe();
}

TEST_F(BadInput, OverBroadPaths) {
  for (const char* path : {"/", "/etc", "/home", "/root", "/var", "/mnt", "/proc", "/sys", "/dev",
                           "/run", "/usr", "/tmp"}) {
    if (Exists(path)) {
      ExpectRefused({"--ro", path}, path);
      ExpectRefused({"--rw", std::string(path) + ":/data"}, path);
    }
  }
  // Other spellings of the same thing.
  for (const char* path :
       {"//", "/.", "/etc/", "/etc/.", "//etc", "/usr/../etc", "/proc/self/root", "/proc/1/root"}) {
    const RunResult result = RunProbe({"--ro", path}, {"args", "it-ran"});
    EXPECT_EQ(result.exit, 120) << path << "\n" << result.Describe();
  }
}

TEST_F(BadInput, PathsThatAreNotWhatTheySeem) {
  TempDir dir;
  const std::string real = dir.MakeDir("real");
  const std::string link = dir / "link";
  ASSERT_EQ(symlink(real.c_str(), link.c_str()), 0);
  ASSERT_EQ(symlink("/etc", (dir / "to-etc").c_str()), 0);
  ExpectRefused({"--ro", dir / "to-etc"}, "/etc");
  ASSERT_EQ(symlink(dir.MakeDir(".hidden").c_str(), (dir / "to-hidden").c_str()), 0);
  ExpectRefused({"--ro", dir / "to-hidden"}, dir / ".hidden");
  ASSERT_EQ(symlink(link.c_str(), (real + "/out").c_str()), 0);
  ExpectRefused({"--rw", real + "/out"}, real);
  ASSERT_EQ(symlink("circle", (dir / "circle").c_str()), 0);
  ExpectRefused({"--ro", dir / "circle"}, "circle");
  ExpectRefused({"--ro", dir / "missing"}, "missing");
  ASSERT_EQ(mkfifo((dir / "fifo").c_str(), 0666), 0);
  ExpectRefused({"--ro", dir / "fifo"}, "fifo");
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  strncpy(address.sun_path, (dir / "sock").c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ExpectRefused({"--ro", dir / "sock"}, "sock");
  close(fd);
  ExpectRefused({"--ro", "/dev/null"}, "/dev/null");
  const std::string file = dir.Write("file", "x");
  ExpectRefused({"--out", file}, "file");
}

TEST_F(BadInput, MountTargets) {
  TempDir dir;
  const std::string one = dir.MakeDir("one");
  const std::string two = dir.MakeDir("two");
  for (const char* at : {"/proc", "/proc/self", "/dev", "/dev/null", "/", "/etc", "/usr",
                         "relative", "/data/../x", "/sys", "/lib"}) {
    ExpectRefused({"--ro", one + ":" + at}, at);
  }
  ExpectRefused({"--ro", one + ":/data", "--ro", two + ":/data"}, "/data");
  ExpectRefused({"--ro", one + ":/data/a", "--rw", two + ":/data"}, "/data");
  ExpectRefused({"--ro", one + ":"}, "--ro");
  ExpectRefused({"--ro", one + ":/" + std::string(300, 'x')}, "too long");
  std::string deep;
  for (int i = 0; i < 2100; ++i) {
    deep += "/d";
  }
  ExpectRefused({"--ro", one + ":" + deep}, "too long");
}

TEST_F(BadInput, StateDirectoriesThatCannotHoldFiles) {
  for (const char* state : {"/dev/null", "/proc", "/sys", "/dev/null/below"}) {
    ExpectRefused({"--state", state}, state);
  }
}

TEST_F(BadInput, AReceiptWhereTheCallMayWrite) {
  TempDir dir;
  const std::string open = dir.MakeDir("open", 0777);
  const std::string inner = dir.MakeDir("open/inner", 0777);
  dir.MakeDir("safe", 0777);
  std::filesystem::create_directory_symlink(inner, dir / "link");
  const auto run = [&](const std::string& receipt) {
    RunOptions options;
    options.receipt = receipt;
    return RunProbe({"--level", "container", "--rw", open + ":/data"}, {"args", "it-ran"}, options);
  };
  EXPECT_EQ(run(dir / "safe/r.json").exit, 0) << "the control";
  for (const char* receipt : {"open/r.json", "open/inner/r.json", "link/r.json"}) {
    const RunResult result = run(dir / receipt);
    EXPECT_EQ(result.exit, 120) << receipt << result.Describe();
    EXPECT_TRUE(Contains(result.err, "where the call may write")) << result.err;
    EXPECT_FALSE(Contains(result.out, "it-ran")) << receipt;
  }
}

TEST_F(BadInput, AMountDoesNotHideTheRuntime) {
  TempDir dir;
  const std::string one = dir.MakeDir("one");
  for (const char* at : {"/usr/bin", "/usr/lib", "/bin"}) {
    const RunResult result = RunCoffer({"--ro", one + ":" + at}, {"sh", "-c", "echo it-ran"});
    EXPECT_EQ(result.exit, 120) << at << " lies above files of the runtime\n" << result.Describe();
    EXPECT_TRUE(Contains(result.err, at)) << result.err;
  }
}

TEST_F(BadInput, UidZeroInsideHasNoPower) {
  // A name without meaning: root inside has neither capabilities nor a host uid of 0 (see posture).
  const RunResult result = RunCoffer({"--uid", "0"}, {"id", "-u"});
  EXPECT_EQ(result.out, "0\n") << result.Describe();
  const RunResult caps =
      RunCoffer({"--uid", "0"}, {"sh", "-c", "grep -E '^Cap|NoNewPrivs' /proc/self/status"});
  for (const std::string& line : Lines(caps.out)) {
    EXPECT_TRUE(line.ends_with("0000000000000000") || line.ends_with("\t1")) << line;
  }
  EXPECT_EQ(Lines(caps.out).size(), 6U) << caps.Describe();
}

TEST_F(BadInput, NamesWithNewlinesAndInvalidUtf8) {
  TempDir dir;
  const std::string newline = dir.MakeDir("new\nline");
  ExpectRefused({"--ro", newline + ":/data"}, "control character");
  const RunResult result = RunProbe({"--ro", newline + ":/data"}, {"exit", "0"});
  EXPECT_FALSE(Contains(result.err, "new\nline")) << "a raw newline in the message: " << result.err;
  const std::string invalid = dir.MakeDir("bad\xff\xfe");
  dir.Write("bad\xff\xfe/file", "");
  const RunResult utf8 = RunCoffer({"--ro", invalid + ":/data"}, {"ls", "/data"});
  EXPECT_EQ(utf8.out, "file\n") << "a name is bytes\n" << utf8.Describe();
  const RunResult escape = RunProbe({"--no-such\033[31mflag"}, {"exit", "0"});
  EXPECT_EQ(escape.exit, 120);
  EXPECT_FALSE(Contains(escape.err, "\033")) << "an escape sequence in the message";
}

TEST_F(BadInput, ContradictoryFlags) {
  TempDir dir;
  const std::string one = dir.MakeDir("one");
  ExpectRefused({"--ro", one, "--rw", one}, one);
  const RunResult receipt = RunProgram({CofferPath(), "run", "--receipt", "/nonexistent/dir/r.json",
                                        "--", ProbePath(), "args", "it-ran"});
  EXPECT_EQ(receipt.exit, 120) << receipt.Describe();
  EXPECT_EQ(receipt.out, "") << "no record, no action";
}

TEST_F(BadInput, TenThousandArguments) {
  Strings verb = {"args"};
  for (int i = 0; i < 10000; ++i) {
    verb.push_back("argument-" + std::to_string(i));
  }
  const RunResult many = RunProbe({}, verb);
  EXPECT_TRUE(Contains(many.out, "count 10000")) << many.Describe();
  Strings flags;
  for (int i = 0; i < 2000; ++i) {
    flags.push_back("--env");
    flags.push_back("V" + std::to_string(i) + "=" + std::string(100, 'v'));
  }
  EXPECT_EQ(RunProbe(flags, {"exit", "0"}).exit, 0);
  const RunResult large = RunProbe({}, {"args", std::string(120000, 'a')});
  EXPECT_TRUE(Contains(large.out, "count 1")) << large.exit << large.err;
}

RunOptions WithLimit(int resource, rlim_t most) {
  RunOptions options;
  options.in_child = [resource, most] {
    const rlimit limit = {most, most};
    if (setrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) {
      _exit(94);
    }
  };
  return options;
}

// It must not half work.
TEST_F(BadInput, FewDescriptors) {
  const Strings words = {CofferPath(), "run", "--", ProbePath(), "args", "it-ran"};
  const auto with_limit = [&](rlim_t most) {
    RunOptions options = WithLimit(RLIMIT_NOFILE, most);
    options.in_child = [limit = options.in_child] {
      close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);  // what the test itself was given does not count
      limit();
    };
    return RunProgram(words, options);
  };
  const RunResult few = with_limit(10);
  EXPECT_EQ(few.exit, 125) << few.Describe();
  EXPECT_TRUE(few.err.starts_with("coffer: ")) << few.Describe();
  EXPECT_TRUE(Contains(few.err, "Too many open files")) << few.Describe();
  EXPECT_EQ(few.out, "") << few.Describe();
  const RunResult enough = with_limit(128);
  EXPECT_EQ(enough.exit, 0) << "the control\n" << enough.Describe();
  EXPECT_TRUE(Contains(enough.out, "it-ran")) << enough.Describe();
}

TEST_F(BadInput, NoMemoryForUs) {
#ifdef COFFER_SANITIZED
  GTEST_SKIP() << "a sanitizer needs terabytes of address space before main";
#endif
  // Our own address space is small, and the payload's limits are its own.
  const RunResult little = RunProbe({}, {"args", "it-ran"}, WithLimit(RLIMIT_AS, 24 << 20));
  EXPECT_EQ(little.exit, 0) << little.Describe();
  EXPECT_TRUE(Contains(little.out, "it-ran")) << little.Describe();
}

// Runs coffer in a mount namespace in which `spoil` has hidden something.
RunOptions Spoilt(const std::function<void()>& spoil) {
  RunOptions options;
  options.in_child = [spoil] {
    const uid_t uid = geteuid();
    const gid_t gid = getegid();
    if (unshare(CLONE_NEWNS | (uid == 0 ? 0 : CLONE_NEWUSER)) != 0) {
      _exit(90);
    }
    if (uid != 0) {
      const auto put = [](const char* path, const std::string& text) {
        const int fd = open(path, O_WRONLY | O_CLOEXEC);
        if (fd < 0 || write(fd, text.data(), text.size()) < 0) {
          _exit(91);
        }
        close(fd);
      };
      put("/proc/self/setgroups", "deny");
      put("/proc/self/uid_map", std::to_string(uid) + " " + std::to_string(uid) + " 1");
      put("/proc/self/gid_map", std::to_string(gid) + " " + std::to_string(gid) + " 1");
    }
    if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
      _exit(92);
    }
    spoil();
  };
  return options;
}

RunResult RunSpoilt(const std::function<void()>& spoil) {
  return RunProbe({}, {"args", "it-ran"}, Spoilt(spoil));
}

// A sanitizer complains of a missing /proc before we can.
bool SaidWhy(const RunResult& result) {
#ifdef COFFER_SANITIZED
  return Contains("\n" + result.err, "\ncoffer: ");
#else
  return result.err.starts_with("coffer: ");
#endif
}

TEST_F(BadInput, NoProc) {
  const RunResult result = RunSpoilt([] {
    if (mount("none", "/proc", "tmpfs", MS_RDONLY, nullptr) != 0) {
      _exit(93);
    }
  });
  EXPECT_EQ(result.exit, 125) << result.Describe();
  EXPECT_TRUE(SaidWhy(result)) << result.Describe();
  EXPECT_TRUE(Contains(result.err, "/proc")) << result.Describe();
  EXPECT_FALSE(Contains(result.out, "it-ran")) << result.Describe();
}

// A container keeps nothing on the host's disk. The process level has a scratch directory there, and says that it cannot.
TEST_F(BadInput, AFullTmp) {
  static const char* const kPlace = IsRoot() ? "/tmp" : "/var/tmp";
  static constexpr int kProgram = 100;  // it may lie in the directory that is covered
  const auto open_program = [] {
    dup2(open(CofferPath().c_str(), O_RDONLY | O_CLOEXEC), kProgram);
  };
  const RunOptions full = Spoilt([open_program] {
    open_program();
    if (mount("none", kPlace, "tmpfs", 0, "size=4k,nr_inodes=1") != 0 ||
        setenv("TMPDIR", kPlace, 1) != 0) {
      _exit(93);
    }
  });
  RunOptions plain;
  plain.in_child = open_program;
  const auto run = [](const char* level, const RunOptions& options) {
    return RunProgram({"/proc/self/fd/" + std::to_string(kProgram), "run", "--level", level, "--",
                       "sh", "-c", "echo it-ran"},
                      options);
  };
  const RunResult container = run("container", full);
  EXPECT_EQ(container.exit, 0) << container.Describe();
  EXPECT_EQ(container.out, "it-ran\n") << container.Describe();
  const RunResult process = run("process", full);
  EXPECT_EQ(process.exit, 125) << process.Describe();
  EXPECT_TRUE(process.err.starts_with("coffer: isolation.scratch: ")) << process.Describe();
  EXPECT_EQ(process.out, "") << process.Describe();
  EXPECT_EQ(run("process", plain).out, "it-ran\n") << "the control";
}

TEST_F(BadInput, AnUnreadableCgroupTree) {
  const RunResult result = RunSpoilt([] {
    if (mount("none", "/sys/fs/cgroup", "tmpfs", MS_RDONLY, "mode=000") != 0) {
      _exit(93);
    }
  });
  EXPECT_EQ(result.exit, 0) << result.Describe();
  EXPECT_TRUE(Contains(result.out, "it-ran")) << result.Describe();
  EXPECT_TRUE(Contains(result.receipt["isolation"]["missing"].dump(), "cgroup-memory"))
      << "a layer that is not there must be called missing\n"
      << result.Describe();
}

TEST_F(BadInput, UserNamespacesForbidden) {
  // As a hardened host would: the cause is named, and without namespaces only a floor that says so lets a call go on.
  RunOptions options;
  options.in_child = [] {
    const uid_t uid = geteuid();
    const gid_t gid = getegid();
    if (unshare(CLONE_NEWUSER) != 0) {
      _exit(90);
    }
    const auto put = [](const char* path, const std::string& text) {
      const int fd = open(path, O_WRONLY | O_CLOEXEC);
      if (fd < 0 || write(fd, text.data(), text.size()) < 0) {
        _exit(91);
      }
      close(fd);
    };
    put("/proc/self/setgroups", "deny");
    put("/proc/self/uid_map", std::to_string(uid) + " " + std::to_string(uid) + " 1");
    put("/proc/self/gid_map", std::to_string(gid) + " " + std::to_string(gid) + " 1");
    put("/proc/sys/user/max_user_namespaces", "0");  // of this namespace only
  };
  const RunResult container = RunProbe({"--level", "container"}, {"args", "it-ran"}, options);
  EXPECT_EQ(container.exit, 125) << container.Describe();
  EXPECT_TRUE(Contains(container.err, "max_user_namespaces")) << "the exact cause\n"
                                                              << container.Describe();
  EXPECT_FALSE(Contains(container.out, "it-ran"));
  const RunResult floor = RunProbe({"--floor", "userns"}, {"args", "it-ran"}, options);
  EXPECT_EQ(floor.exit, 120) << floor.Describe();
  EXPECT_EQ(floor.ErrorClass(), "isolation.floor") << floor.Describe();
  for (const Strings& flags :
       {Strings{}, {"--level", "auto"}, {"--level", "auto", "--floor", "netns"}}) {
    const RunResult automatic = RunProbe(flags, {"args", "it-ran"}, options);
    EXPECT_EQ(automatic.exit, 120) << automatic.Describe();
    EXPECT_EQ(automatic.ErrorClass(), "isolation.floor") << automatic.Describe();
    EXPECT_TRUE(Contains(automatic.err, "max_user_namespaces")) << automatic.Describe();
    EXPECT_FALSE(Contains(automatic.out, "it-ran")) << automatic.Describe();
    EXPECT_EQ(Contains(automatic.err, "--level process"), flags.size() < 4) << automatic.Describe();
  }
  // Root of this namespace has one uid, and none to give to a boundary: there the fall is taken, and fails closed.
  const int expected = IsRoot() ? 125 : 0;
  const RunResult permitted =
      RunProbe({"--floor", "seccomp,landlock"}, {"args", "it-ran"}, options);
  EXPECT_EQ(permitted.exit, expected) << permitted.Describe();
  EXPECT_TRUE(Contains(permitted.err, "running at level process")) << "never silently\n"
                                                                   << permitted.Describe();
  if (!IsRoot()) {
    EXPECT_EQ(permitted.receipt["isolation"]["level"], "process") << permitted.Describe();
  }
  const RunResult named = RunProbe({"--level", "process"}, {"args", "it-ran"}, options);
  EXPECT_EQ(named.exit, expected) << named.Describe();
}

// As root the process level runs with a uid of its own, which cannot enter what is only root's.
TEST_F(BadInput, AProgramThatOnlyRootCanReachIsExplained) {
  if (!IsRoot()) {
    GTEST_SKIP() << "about root";
  }
  TempDir dir;
  dir.MakeDir("closed", 0700);
  const std::string program = dir.Write("closed/program", *ReadFile("/bin/true"), 0755);
  const RunResult result = RunProgram({CofferPath(), "run", "--level", "process", "--", program});
  EXPECT_EQ(result.exit, 126) << result.Describe();
  EXPECT_TRUE(Contains(result.err, "cannot run " + program)) << result.Describe();
  EXPECT_TRUE(Contains(result.err, "others cannot enter")) << result.Describe();
  ASSERT_EQ(::chmod((dir / "closed").c_str(), 0755), 0);
  EXPECT_EQ(RunProgram({CofferPath(), "run", "--level", "process", "--", program}).exit, 0)
      << "the control";
}

}  // namespace
}  // namespace coffer::test
