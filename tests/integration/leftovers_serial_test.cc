// SPDX-License-Identifier: Apache-2.0
//
// Nothing of a boundary outlives it: mounts, cgroups, files, processes, after ordinary ends and after SIGKILL.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <random>

#include "tests/support/host.h"

namespace coffer::test {
namespace {

class Leftovers : public LevelTest {};

void ExpectNoNewTraces(const std::vector<std::string>& before) {
  for (const std::string& trace : StayingTraces(before)) {
    ADD_FAILURE() << "left behind: " << trace;
  }
}

// Directories that stay for good (a parent of all cgroups, a state directory) exist after the first run.
std::vector<std::string> TracesAfterOneRun(const Strings& flags) {
  EXPECT_EQ(RunProbe(flags, {"exit", "0"}).exit, 0);
  return CofferTraces();
}

TEST_P(Leftovers, AfterOrdinaryEnds) {
  TempDir dir;
  const std::string shared = dir.MakeDir("shared", 0777);
  const auto before = TracesAfterOneRun(Flags());
  RunProbe(Flags(), {"exit", "1"});
  RunProbe(Flags(), {"die", "9"});
  RunProbe(Flags({"--wall", "200ms"}), {"stubborn", "x"});
  RunProbe(Flags({"--memory", "32MiB"}), {"eat-memory", "300"});
  RunProbe(Flags({"--rw", shared}), {"write", shared + "/f", "x"});
  RunProbe(Flags({"--ro", "/etc"}), {"exit", "0"});
  RunProbe(Flags({"--memory", "-1"}), {"exit", "0"});
  RunCoffer(Flags(), {"/nonexistent"});
  RunProbe(Flags(), {"daemonize", "x"});
  ExpectNoNewTraces(before);
}

TEST_P(Leftovers, PE_08_ManyCycles) {
  const ProgramCopy coffer(CofferPath());
  const auto before = TracesAfterOneRun(Flags());
  const auto count_fds = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  };
  const auto fds = count_fds();
  for (int i = 0; i < 300; ++i) {
    ASSERT_EQ(
        RunProgram({coffer.path(), "run", "--level", level(), "--", ProbePath(), "exit", "0"}).exit,
        0)
        << i;
  }
  EXPECT_EQ(count_fds(), fds);
  EXPECT_FALSE(coffer.IsRunning()) << coffer.Processes().size() << " processes of coffer stayed";
  ExpectNoNewTraces(before);
}

TEST_P(Leftovers, PE_08_TheMountTable) {
  // In a mount namespace of our own whose mounts propagate: what a boundary forgets to make private would show. Beside
  // what every boundary mounts: the cover of a fifo, on a clone of the host's own directory, and all that protects the
  // names of a project.
  TempDir dir;
  const std::string shared = dir.MakeDir("shared");
  ASSERT_EQ(mkfifo((shared + "/fifo").c_str(), 0600), 0);
  const std::string project = dir.MakeDir("project");
  for (const char* part : {"/.git", "/.git/objects", "/.git/refs", "/.vscode"}) {
    ASSERT_EQ(mkdir((project + part).c_str(), 0755), 0);
  }
  dir.Write("project/.git/HEAD", "ref: refs/heads/main\n", 0644);
  ASSERT_EQ(symlink(".vscode", (project + "/.zed").c_str()), 0);
  ASSERT_EQ(mkfifo((project + "/fifo").c_str(), 0600), 0);
  const bool mounts = level() == std::string("container");
  int answer[2];
  ASSERT_EQ(pipe2(answer, O_CLOEXEC), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto table = [] { return ReadFile("/proc/self/mountinfo").value_or("unreadable"); };
    char verdict = 'e';
    if (!IsRoot() || (unshare(CLONE_NEWNS) == 0 &&
                      mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                      mount(nullptr, "/", nullptr, MS_REC | MS_SHARED, nullptr) == 0)) {
      const std::string before = table();
      Strings words = {CofferPath(), "run", "--level", level()};
      if (mounts) {
        words.insert(words.end(), {"--ro", shared + ":/data", "--project", project});
      }
      words.insert(words.end(), {"--", ProbePath(), "wait", "x"});
      Background live(words);
      const bool started = live.WaitForOutput("ready");
      const bool same = table() == before;
      live.Signal(SIGTERM);
      live.Wait(Seconds(20));
      verdict = !started ? 's' : !same ? 'd' : table() != before ? 'a' : 'k';
    }
    if (write(answer[1], &verdict, 1) != 1) {
      _exit(1);
    }
    _exit(0);
  }
  close(answer[1]);
  char verdict = '?';
  EXPECT_EQ(read(answer[0], &verdict, 1), 1);
  waitpid(child, nullptr, 0);
  close(answer[0]);
  EXPECT_EQ(verdict, 'k') << "e: no namespace for the test, s: it did not start, d: mounts appear "
                             "on the host while it runs, "
                             "a: mounts stay";
}

TEST_P(Leftovers, PE_09_TwoHundredRandomKills) {
  const ProgramCopy coffer(CofferPath());
  TempDir dir;
  const std::string shared = dir.MakeDir("shared", 0777);
  const auto before = TracesAfterOneRun(Flags());
  const std::string token = NewToken();
  // How long one whole run takes here decides the instants at which it is killed: half of them within the setup.
  const auto begin = std::chrono::steady_clock::now();
  RunProgram({coffer.path(), "run", "--level", level(), "--", ProbePath(), "exit", "0"});
  const long whole = std::chrono::duration_cast<std::chrono::microseconds>(
                         std::chrono::steady_clock::now() - begin)
                         .count();
  std::mt19937 random(20261115);
  std::uniform_int_distribution<long> instant(0, whole * 2);
  int killed = 0;
  for (int i = 0; i < 200; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      const int null = open("/dev/null", O_RDWR);
      for (int fd = 0; fd < 3; ++fd) {
        dup2(null, fd);
      }
      const char* payload = i % 2 == 0 ? "stubborn" : "stop-self";
      if (!container() && IsRoot()) {  // the process level takes no mounts as root
        execl(coffer.path().c_str(), "coffer", "run", "--level", GetParam(), "--",
              ProbePath().c_str(), payload, token.c_str(), nullptr);
      } else {
        execl(coffer.path().c_str(), "coffer", "run", "--level", GetParam(),
              container() ? "--rw" : "--ro", (container() ? shared + ":/data" : shared).c_str(),
              "--", ProbePath().c_str(), payload, token.c_str(), nullptr);
      }
      _exit(97);
    }
    usleep(static_cast<useconds_t>(instant(random)));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    killed += WIFSIGNALED(status) ? 1 : 0;
  }
  EXPECT_GT(killed, 150) << "they must be killed, not end by themselves";
  // Payloads, inits and helpers: all of them run one of these two programs.
  EXPECT_TRUE(WaitUntil([&] { return FindProcesses(token).empty(); }, Seconds(10)))
      << FindProcesses(token).size() << " payloads outlived their supervisors";
  EXPECT_TRUE(WaitUntil([&] { return !coffer.IsRunning(); }, Seconds(10)))
      << coffer.Processes().size() << " inits or helpers outlived their supervisors";
  for (const pid_t pid : coffer.Processes()) {
    const ProcessView view = LookAt(pid);
    std::string all;
    for (const char* name : {"State", "Uid", "NSpid", "CapEff", "Seccomp"}) {
      all += std::string(name) + " " + view.status.at(name) + "; ";
    }
    std::cerr << "left: " << pid << " " << all << "\n";
    kill(pid, SIGKILL);
  }
  const RunResult sweep = RunProgram({CofferPath(), "doctor", "--sweep"});
  EXPECT_EQ(sweep.exit, 0) << sweep.Describe();
  ExpectNoNewTraces(before);
  EXPECT_EQ(RunProbe(Flags(), {"exit", "0"}).exit, 0) << "a run after the kills";
}

// The scratch directories of a supervisor: copies of inputs and of a script from stdin.
std::vector<std::string> ScratchOf(pid_t supervisor) {
  const char* const wished = getenv("TMPDIR");
  const std::string parent = IsRoot() || wished == nullptr ? "/tmp" : wished;
  const std::string name = "coffer-scratch-" + std::to_string(supervisor) + "-";
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(parent)) {
    if (entry.path().filename().string().starts_with(name)) {
      found.push_back(entry.path());
    }
  }
  return found;
}

// Which of the files another user can read. Only root can be one; otherwise the mode of the directory says it.
Strings ReadByAnother(const std::string& directory, const Strings& files) {
  Strings read;
  if (!IsRoot()) {
    return (std::filesystem::status(directory).permissions() & std::filesystem::perms(0077)) ==
                   std::filesystem::perms::none
               ? Strings()
               : files;
  }
  for (const std::string& file : files) {
    const pid_t child = fork();
    if (child == 0) {
      const bool other = setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0;
      _exit(other && open(file.c_str(), O_RDONLY) >= 0 ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (status == 0) {
      read.push_back(file);
    }
  }
  return read;
}

TEST_P(Leftovers, CopiesAreClosedToOthersAndSweptAfterAKill) {
  TempDir dir;
  const std::string secret = dir.Write("secret.txt", "the secret\n", 0600);
  const std::string script = dir.Write("script", "cat secret.txt\necho begun\nsleep 1000\n", 0600);
  const std::string out = dir / "out";
  const pid_t supervisor = fork();
  if (supervisor == 0) {
    dup2(open(script.c_str(), O_RDONLY), 0);
    dup2(open(out.c_str(), O_WRONLY | O_CREAT, 0600), 1);
    execl(CofferPath().c_str(), "coffer", "run", "--level", GetParam(), "--runtime", "sh", "--wall",
          "10m", "--in", secret.c_str(), "-", nullptr);
    _exit(97);
  }
  EXPECT_TRUE(WaitUntil([&] { return Contains(ReadFile(out).value_or(""), "begun"); }, Seconds(60)))
      << ReadFile(out).value_or("");
  EXPECT_TRUE(Contains(ReadFile(out).value_or(""), "the secret"));
  const std::vector<std::string> scratch = ScratchOf(supervisor);
  EXPECT_FALSE(scratch.empty()) << "NO-CONTROL: there are no copies";
  for (const std::string& directory : scratch) {
    Strings files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
      if (entry.is_regular_file() && !entry.is_symlink()) {
        files.push_back(entry.path());
      }
    }
    EXPECT_FALSE(files.empty()) << "NO-CONTROL: nothing to read in " << directory;
    EXPECT_EQ(ReadByAnother(directory, files), Strings());
  }
  const std::string open_file = dir.Write("open.txt", "x", 0644);
  std::filesystem::permissions(dir.path(), std::filesystem::perms(0755));
  EXPECT_EQ(ReadByAnother(dir.path(), {open_file}), Strings{open_file}) << "NO-CONTROL";
  kill(supervisor, SIGKILL);
  int status = 0;
  ASSERT_EQ(waitpid(supervisor, &status, 0), supervisor);
  EXPECT_EQ(ScratchOf(supervisor), scratch) << "NO-CONTROL: a kill leaves nothing behind";
  const RunResult sweep = RunProgram({CofferPath(), "doctor", "--sweep"});
  EXPECT_EQ(sweep.exit, 0) << sweep.Describe();
  EXPECT_EQ(ScratchOf(supervisor), Strings());
}

INSTANTIATE_TEST_SUITE_P(Level, Leftovers, ::testing::Values("container", "process"),
                         LevelTestName);

}  // namespace
}  // namespace coffer::test
