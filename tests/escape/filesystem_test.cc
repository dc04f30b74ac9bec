// SPDX-License-Identifier: Apache-2.0
//
// FS: host files, ways around names, devices, programs that are not meant to run.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "tests/support/host.h"
#include "tests/support/verdicts.h"

namespace coffer::test {
namespace {

class FilesystemEscape : public LevelTest {
 protected:
  const std::string flag_ = NewToken();
  TempDir dir_;
  const std::string canary_ = dir_.Write("canary", flag_, 0666);
  // Not there (container: another root) or not allowed (process: Landlock).
  const std::set<std::string> hidden_ = container()
                                            ? std::set<std::string>{"ENOENT"}
                                            : std::set<std::string>{"EACCES", "EPERM", "ENOENT"};

  void ExpectFlagUnread(const RunResult& result) {
    ExpectRan(result);
    EXPECT_FALSE(Contains(result.out + result.err, flag_)) << "OPEN: the flag came out\n"
                                                           << result.Describe();
    EXPECT_EQ(ReadFile(canary_), flag_) << "the canary was written to";
  }
};

TEST_P(FilesystemEscape, FS_01_HostFileByItsPath) {
  EXPECT_TRUE(Contains(RunOutside({"open-read", canary_}).out, flag_)) << "NO-CONTROL";
  ExpectContained("FS-01", Flags(), {"open-read", canary_}, {.errnos = hidden_});
  ExpectFlagUnread(RunProbe(Flags(), {"open-read", canary_}));
  ExpectContained("FS-01", Flags(), {"open-write", canary_}, {.errnos = hidden_});
}

TEST_P(FilesystemEscape, FS_01_TheCallersDirectoryIsNotVisible) {
  const RunOptions here = {.cwd = dir_.path()};
  EXPECT_TRUE(Contains(RunOutside({"open-read", "canary"}, here).out, flag_)) << "NO-CONTROL";
  const RunResult result =
      RunProbe(Flags(), {"open-read", "canary", "./canary", "../canary", "../../canary"}, here);
  ExpectFlagUnread(result);
  EXPECT_EQ(result.exit, 0) << result.Describe();
}

TEST_P(FilesystemEscape, FS_02_AroundTheNameThroughProc) {
  const Strings verb = {"open-read",
                        "/proc/self/root" + canary_,
                        "/proc/self/cwd/../../../../../.." + canary_,
                        "/proc/thread-self/root" + canary_,
                        "/dev/fd/../root" + canary_,
                        "//" + canary_,
                        "/proc/self/task/1/root" + canary_};
  EXPECT_TRUE(Contains(RunOutside(verb).out, flag_)) << "NO-CONTROL";
  ExpectFlagUnread(RunProbe(Flags(), verb));
}

TEST_P(FilesystemEscape, FS_03_ThroughEveryProcess) {
  const Strings verb = {"proc-canary", canary_, flag_};
  EXPECT_TRUE(Contains(RunOutside(verb).out, "OPEN")) << "NO-CONTROL";
  const RunResult result = RunProbe(Flags(), verb);
  EXPECT_FALSE(Contains(result.out, "OPEN")) << result.Describe();
  EXPECT_EQ(result.exit, 0) << result.Describe();
}

TEST_P(FilesystemEscape, FS_08_NoInheritedDescriptor) {
  RunOptions leaky;
  leaky.in_child = [path = dir_.path(), canary = canary_] {
    for (int fd = 3; fd <= 50; ++fd) {
      // Some are directories (CVE-2024-21626), some the writable canary.
      const int opened = fd % 2 == 1 ? open(path.c_str(), O_RDONLY) : open(canary.c_str(), O_RDWR);
      if (opened != fd) {
        dup2(opened, fd);
        close(opened);
      }
    }
  };
  const std::string control = RunOutside({"fds"}, leaky).out;
  EXPECT_TRUE(Contains(control, "fd 7 ") && Contains(control, "fd 50 "))
      << "NO-CONTROL: " << control;
  EXPECT_TRUE(Contains(RunOutside({"fchdir-escape", canary_}, leaky).out, "OPEN")) << "NO-CONTROL";

  const RunResult result = RunProbe(Flags(), {"fds"}, leaky);
  std::set<int> open_fds;
  for (const std::string& line : Lines(result.out)) {
    int fd = -1;
    if (sscanf(line.c_str(), "fd %d ", &fd) == 1) {
      open_fds.insert(fd);
    }
  }
  EXPECT_EQ(open_fds, (std::set<int>{0, 1, 2})) << result.Describe();
  const RunResult escape = RunProbe(Flags(), {"fchdir-escape", canary_}, leaky);
  EXPECT_FALSE(Contains(escape.out, "OPEN")) << escape.Describe();
  EXPECT_TRUE(Contains(escape.out, "done")) << escape.Describe();
}

TEST_P(FilesystemEscape, FS_10_TheLauncherIsNotOverwritten) {
  // A copy that whoever started it may write: only the boundary stands between the payload and its bytes.
  const std::string copy = dir_ / "coffer";
  std::filesystem::copy_file(CofferPath(), copy);
  chmod(copy.c_str(), 0777);
  const std::string bytes = *ReadFile(copy);
  EXPECT_TRUE(Contains(RunOutside({"open-write", copy}).out, "OPEN")) << "NO-CONTROL";
  for (int i = 0; i < 20; ++i) {
    const RunResult result =
        RunProgram({copy, "run", "--level", level(), "--", ProbePath(), "exe-write"});
    ASSERT_EQ(result.exit, 0) << result.Describe();
    EXPECT_FALSE(Contains(result.out, "OPEN")) << result.Describe();
  }
  EXPECT_EQ(ReadFile(copy), bytes);
}

TEST_P(FilesystemEscape, FS_10_AScriptWhoseInterpreterIsTheLauncher) {
  const std::string script = dir_.Write("again.sh", "#!/proc/self/exe\necho " + flag_ + "\n", 0755);
  EXPECT_TRUE(Contains(RunOutside({"exec", script}).err, "probe: no verb"))
      << "NO-CONTROL: outside, the program that starts the script becomes its interpreter";
  const RunResult result = RunCoffer(Flags({script}), {});
  EXPECT_EQ(result.exit, 120) << result.Describe();
  EXPECT_EQ(result.ErrorClass(), "policy.runtime.link") << result.Describe();
  EXPECT_FALSE(Contains(result.out, "coffer")) << "the launcher ran as interpreter\n"
                                               << result.Describe();
}

TEST_P(FilesystemEscape, FS_12_FileHandles) {
  // Opening needs CAP_DAC_READ_SEARCH in the first user namespace: only root has that control.
  Expectation expectation;
  expectation.errnos = {"EPERM", "ENOSYS"};
  ExpectContained("FS-12", Flags(), {"handles", "/"}, expectation);
}

TEST_P(FilesystemEscape, FS_13_NewDeviceNodes) {
  const std::string own = dir_ / "zero";
  const auto control = ParseAttempts(RunOutside({"mknod", "c", "1", "5", own}).out);
  EXPECT_EQ(control.at("mknod").state == Attempt::State::kOpen, IsRoot())
      << "NO-CONTROL: it should open for root, and for root only";
  for (const auto& [type, major, minor] :
       {std::tuple{"c", "1", "5"}, {"b", "254", "0"}, {"c", "1", "1"}, {"c", "10", "229"}}) {
    const RunResult result = RunProbe(Flags(), {"mknod", type, major, minor, "node"});
    const auto attempts = ParseAttempts(result.out);
    ASSERT_TRUE(attempts.contains("mknod")) << result.Describe();
    EXPECT_EQ(attempts.at("mknod").state, Attempt::State::kRefused) << result.Describe();
  }
}

TEST_P(FilesystemEscape, FS_14_OnlyHarmlessDevices) {
  const std::set<std::string> harmless = {"null",  "zero",   "full",  "random", "urandom",
                                          "tty",   "ptmx",   "pts",   "shm",    "fd",
                                          "stdin", "stdout", "stderr"};
  Strings verb = {"open-read"};
  for (const auto& entry : std::filesystem::directory_iterator("/dev")) {
    struct stat info = {};
    if (!harmless.contains(entry.path().filename()) && stat(entry.path().c_str(), &info) == 0 &&
        (S_ISCHR(info.st_mode) || S_ISBLK(info.st_mode))) {
      verb.push_back(entry.path());
    }
  }
  ASSERT_GT(verb.size(), 1U) << "NO-CONTROL: the host itself has no other devices";
  const auto attempts = ParseAttempts(RunProbe(Flags(), verb).out);
  EXPECT_EQ(attempts.size(), verb.size() - 1) << "not every device was tried";
  for (const auto& [path, attempt] : attempts) {
    EXPECT_EQ(attempt.state, Attempt::State::kRefused) << path << " opens inside";
  }
  if (container()) {
    const RunResult listed = RunProbe(Flags(), {"list", "/dev"});
    EXPECT_TRUE(Contains(listed.out, "entry null\n")) << listed.Describe();
    for (const std::string& line : Lines(listed.out)) {
      EXPECT_TRUE(line.starts_with("entry ") && harmless.contains(line.substr(6)))
          << "in /dev: " << line;
    }
  }
}

TEST_P(FilesystemEscape, FS_15_SystemDirectoriesAreReadOnly) {
  const Strings places = {"/usr/x", "/etc/x",  "/lib/x", "/bin/x",    "/usr/bin/x",
                          "/x",     "/proc/x", "/dev/x", "/usr/lib/x"};
  Strings verb = {"create"};
  verb.insert(verb.end(), places.begin(), places.end());
  if (IsRoot()) {
    EXPECT_EQ(access("/usr", W_OK), 0) << "NO-CONTROL: root cannot write there either";
  }
  const RunResult result = RunProbe(Flags(), verb);
  const auto attempts = ParseAttempts(result.out);
  EXPECT_EQ(attempts.size(), places.size()) << result.Describe();
  for (const auto& [path, attempt] : attempts) {
    EXPECT_EQ(attempt.state, Attempt::State::kRefused) << path << "\n" << result.Describe();
    EXPECT_FALSE(Exists(path)) << path << " appeared on the host";
  }
}

TEST_P(FilesystemEscape, FS_15_AReadOnlyMountIsReadOnly) {
  const std::string shared = dir_.MakeDir("shared", 0777);
  dir_.Write("shared/file", "before", 0666);
  EXPECT_TRUE(Contains(RunOutside({"create", shared + "/control"}).out, "OPEN")) << "NO-CONTROL";
  const std::string at = container() ? "/data" : shared;
  const Strings flags = Flags({"--ro", container() ? shared + ":/data" : shared});
  if (MountsAreRefused(flags)) {
    return;
  }
  for (const Strings& verb : {Strings{"create", at + "/x"},
                              {"open-write", at + "/file"},
                              {"write", at + "/file", "after"},
                              {"symlink", "x", at + "/l"},
                              {"link", at + "/file", at + "/h"}}) {
    const RunResult result = RunProbe(flags, verb);
    ASSERT_FALSE(ParseAttempts(result.out).empty()) << result.Describe();
    EXPECT_FALSE(Contains(result.out, "OPEN")) << result.Describe();
  }
  const RunResult attributes = RunProbe(flags, {"setattr", at + "/file"});
  ASSERT_FALSE(ParseAttempts(attributes.out).empty()) << attributes.Describe();
  EXPECT_FALSE(Contains(attributes.out, "OPEN")) << attributes.Describe();
  EXPECT_EQ(ReadFile(shared + "/file"), "before");
  EXPECT_TRUE(Contains(RunProbe(flags, {"open-read", at + "/file"}).out, "before"))
      << "reading must work";
}

TEST_P(FilesystemEscape, FS_16_SetuidPrograms) {
  const std::string program = dir_ / "setuid-probe";
  std::filesystem::copy_file(ProbePath(), program);
  chmod(program.c_str(), 06755);
  if (IsRoot()) {
    RunOptions nobody;
    nobody.in_child = [] {
      if (setresgid(65534, 65534, 65534) != 0 || setresuid(65534, 65534, 65534) != 0) {
        _exit(90);
      }
    };
    const RunResult control = RunProgram({program, "ids"}, nobody);
    EXPECT_TRUE(Contains(control.out, "euid=0")) << "NO-CONTROL: " << control.Describe();
  }
  const RunResult result = RunCoffer(Flags(), {program, "ids"});
  EXPECT_FALSE(Contains(result.out, "euid=0 ")) << result.Describe();
  if (Contains(result.out, "ids ")) {
    unsigned uid = 0, euid = 1, suid = 2;
    ASSERT_EQ(sscanf(strstr(result.out.c_str(), "ids "), "ids uid=%u euid=%u suid=%u", &uid, &euid,
                     &suid),
              3);
    EXPECT_TRUE(uid == euid && uid == suid) << result.Describe();
  }
  for (const char* name :
       {"/usr/bin/su", "/usr/bin/mount", "/usr/bin/newuidmap", "/usr/bin/passwd"}) {
    if (Exists(name)) {
      // Listed files hold none; in the host's /usr they are there, without their privilege (escape/host_usr).
      const RunResult seen =
          RunCoffer(Flags({"--runtime", "python3"}),
                    {"python3", "-c", "print('ran'); print(open('" + std::string(name) + "'))"});
      EXPECT_TRUE(Contains(seen.out, "ran")) << seen.Describe();
      EXPECT_FALSE(Contains(seen.out, name)) << name << " is visible";
    }
  }
}

TEST_P(FilesystemEscape, FS_27_Fuse) {
  if (IsRoot() && Exists("/dev/fuse")) {
    EXPECT_TRUE(Contains(RunOutside({"open-write", "/dev/fuse"}).out, "OPEN")) << "NO-CONTROL";
  }
  const RunResult result = RunProbe(Flags(), {"open-write", "/dev/fuse", "/usr/bin/fusermount3"});
  EXPECT_FALSE(Contains(result.out, "OPEN")) << result.Describe();
  EXPECT_TRUE(Contains(result.out, "REFUSED")) << result.Describe();
}

TEST_P(FilesystemEscape, FS_33_MountTablesOfAPlainRun) {
  // Control: outside, the table tells where everything is.
  const std::string host = ReadFile("/proc/self/mountinfo").value_or("");
  ASSERT_TRUE(Contains(host, "/proc ")) << "NO-CONTROL";
  const RunResult result =
      RunProbe(Flags(), {"self-grep", dir_.path(), "/proc/self/mountinfo", "/proc/self/mounts",
                         "/proc/self/mountstats", "/proc/1/mountinfo", "/proc/mounts"});
  ExpectRan(result);
  EXPECT_FALSE(Contains(result.out, "OPEN")) << result.Describe();
  for (const char* word : {"upperdir", "/var/lib", "/home", "/root"}) {
    const RunResult table = RunProbe(Flags(), {"self-grep", word, "/proc/self/mountinfo"});
    ExpectRan(table);
    EXPECT_FALSE(Contains(table.out, "OPEN")) << word << "\n" << table.Describe();
  }
}

// A bind mount names its source in mountinfo, and no kernel interface hides it (docs/HONEST_LIMITS.md). So the path of a
// mount that the caller asked for shows there, in that one place; nothing else of the host does.
TEST_P(FilesystemEscape, FS_33_AMountShowsNoPathButItsOwn) {
  const std::string shared = dir_.MakeDir("shared");
  const std::string beside = dir_.MakeDir("beside-it");
  const auto tables = [&](const std::string& word) {
    return Strings{"self-grep",
                   word,
                   "/proc/self/mountinfo",
                   "/proc/self/mounts",
                   "/proc/self/mountstats",
                   "/proc/1/mountinfo",
                   "/proc/mounts"};
  };
  const Strings flags = container() ? Flags({"--ro", shared + ":/data"}) : Flags();
  const RunResult other = RunProbe(flags, tables("beside-it"));
  EXPECT_FALSE(Contains(other.out, "OPEN")) << other.Describe();
  EXPECT_EQ(other.exit, 0) << other.Describe();
  const RunResult own = RunProbe(flags, tables(std::filesystem::path(dir_.path()).filename()));
  // Control: the same question finds a path that is there, at the container level, where there is a mount.
  EXPECT_EQ(Contains(own.out, "/proc/self/mountinfo: OPEN"), container()) << "NO-CONTROL\n"
                                                                          << own.Describe();
  EXPECT_FALSE(Contains(own.out, "/proc/self/mounts: OPEN")) << own.Describe();
  EXPECT_FALSE(Contains(own.out, "/proc/self/mountstats: OPEN")) << own.Describe();
}

TEST_P(FilesystemEscape, FS_35_WithoutExecWhatIsWrittenInsideDoesNotRun) {
  // Control: the same copy runs outside.
  const std::string out_copy = dir_ / "copy";
  EXPECT_TRUE(Contains(RunOutside({"copy", ProbePath(), out_copy, "755"}).out, "chmod: OPEN"));
  EXPECT_TRUE(Contains(RunOutside({"exec", out_copy, "ids"}).out, "ids ")) << "NO-CONTROL";
  // Inside, python makes the copy: it needs no program beside itself.
  for (const char* place : {"HOME", "TMPDIR"}) {  // /workspace and /tmp, whatever they are called
    const std::string script =
        "import os, sys, subprocess\n"
        "os.makedirs('sub', exist_ok=True)\n"
        "data = open(os.path.realpath(sys.executable), 'rb').read()\n"
        "copy = os.environ['" +
        std::string(place) +
        "'] + '/p'\n"
        "open(copy, 'wb').write(data)\n"
        "os.chmod(copy, 0o755)\n"
        "try:\n"
        "  subprocess.run([copy, '-c', 'print(\"it\" + \"-ran\")'])\n"
        "except OSError as e: print('refused', e.errno)\n";
    // An emulated machine needs most of the ordinary ten seconds for the two starts of python alone.
    const Strings patient = {"--cpu", "60s", "--wall", "120s"};
    Strings narrowed = patient;
    narrowed.emplace_back("--no-exec");
    const RunResult result = RunCoffer(Flags(narrowed), {"python3", "-c", script});
    EXPECT_FALSE(Contains(result.out, "it-ran")) << place << "\n" << result.Describe();
    EXPECT_TRUE(Contains(result.out, "refused 13")) << place << "\n" << result.Describe();
    const RunResult allowed = RunCoffer(Flags(patient), {"python3", "-c", script});
    EXPECT_TRUE(Contains(allowed.out, "it-ran")) << "NO-CONTROL\n" << allowed.Describe();
  }
}

TEST_P(FilesystemEscape, FS_35_CodeFromMemoryStaysConfined) {
  EXPECT_TRUE(Contains(RunOutside({"memfd-exec", "ids"}).out, "ids ")) << "NO-CONTROL";
  // Whether it may run is a matter of taste; that it gains nothing is not.
  const RunResult result = RunProbe(Flags(), {"memfd-exec", "unshare", "user"});
  EXPECT_FALSE(Contains(result.out, "OPEN")) << result.Describe();
  EXPECT_TRUE(Contains(result.out, "REFUSED")) << result.Describe();
}

INSTANTIATE_TEST_SUITE_P(Level, FilesystemEscape, ::testing::Values("container", "process"),
                         LevelTestName);

}  // namespace
}  // namespace coffer::test
