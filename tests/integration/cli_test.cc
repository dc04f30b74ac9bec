// SPDX-License-Identifier: Apache-2.0
//
// The command line: every flag once, scripts, verbs beside `run`.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "tests/support/host.h"
#include "tests/support/verdicts.h"

namespace coffer::test {
namespace {

namespace fs = std::filesystem;

TEST(Cli, TheCommandsOwnExitStatus) {
  for (const char* code : {"0", "1", "7", "119", "255"}) {
    EXPECT_EQ(RunProbe({}, {"exit", code}).exit, atoi(code));
  }
}

TEST(Cli, ASignalIs128PlusItsNumber) {
  for (const int number : {SIGTERM, SIGKILL, SIGSEGV, SIGABRT, SIGHUP}) {
    const RunResult result = RunProbe({}, {"die", std::to_string(number)});
    EXPECT_EQ(result.exit, 128 + number) << result.Describe();
    ASSERT_TRUE(result.receipt.is_object());
    EXPECT_EQ(result.receipt["exit"]["signal"], number) << result.Describe();
  }
}

TEST(Cli, WhateverSignalsTheCallerIgnores) {
  // The trap of a shell is inherited; a call without a receipt takes the shortest way.
  const RunResult result = RunProgram(
      {"/bin/sh", "-c", "trap '' CHLD HUP PIPE TERM; exec \"$0\" run -- /bin/sh -c 'kill -HUP $$'",
       CofferPath()});
  EXPECT_EQ(result.exit, 128 + SIGHUP) << result.Describe();
}

TEST(Cli, NotThereIs127NotExecutableIs126) {
  TempDir dir;
  EXPECT_EQ(RunCoffer({}, {"/nonexistent/program"}).exit, 127);
  EXPECT_EQ(RunCoffer({}, {"no-such-command-anywhere"}).exit, 127);
  EXPECT_EQ(RunCoffer({}, {dir.Write("plain.txt", "hello", 0644)}).exit, 126);
  EXPECT_EQ(RunCoffer({}, {dir.path()}).exit, 126) << "a directory";
  const RunResult result = RunCoffer({}, {"/nonexistent/program"});
  EXPECT_TRUE(result.err.starts_with("coffer: ")) << result.err;
  EXPECT_TRUE(Contains(result.err, "/nonexistent/program")) << result.err;
}

TEST(Cli, Levels) {
  for (const char* level : {"process", "container"}) {
    const RunResult result = RunProbe({"--level", level}, {"exit", "3"});
    EXPECT_EQ(result.exit, 3) << result.Describe();
    ASSERT_TRUE(result.receipt.is_object());
    EXPECT_EQ(result.receipt["isolation"]["level"], level);
  }
  const RunResult automatic = RunProbe({}, {"exit", "0"});
  EXPECT_EQ(automatic.receipt["isolation"]["level"], "container")
      << "the strongest this host offers";
}

TEST(Cli, AFloorThatIsNotReachedRefuses) {
  const RunResult met =
      RunProbe({"--floor", "seccomp", "--floor", "landlock", "--floor", "userns"}, {"exit", "0"});
  EXPECT_EQ(met.exit, 0) << met.Describe();
  const RunResult unmet = RunProbe({"--level", "process", "--floor", "userns"}, {"exit", "0"});
  EXPECT_EQ(unmet.exit, 120) << unmet.Describe();
  EXPECT_TRUE(Contains(unmet.err, "userns")) << unmet.err;
  if (!IsRoot() && Contains(met.receipt["isolation"]["missing"].dump(), "cgroup-memory")) {
    const RunResult cgroup = RunProbe({"--floor", "cgroup-memory"}, {"exit", "0"});
    EXPECT_EQ(cgroup.exit, 120) << cgroup.Describe();
    EXPECT_TRUE(Contains(cgroup.err, "cgroup-memory")) << cgroup.err;
  }
}

TEST(Cli, WorkingDirectoryAndDefaults) {
  const RunResult result =
      RunCoffer({}, {"sh", "-c", "pwd; touch here && echo writable; ls -a /home /root 2>&1"});
  EXPECT_TRUE(result.out.starts_with("/workspace\nwritable\n")) << result.Describe();
  const RunResult elsewhere = RunCoffer({"--cwd", "/tmp"}, {"pwd"});
  EXPECT_EQ(elsewhere.out, "/tmp\n") << elsewhere.Describe();
}

TEST(Cli, Uid) {
  const RunResult usual = RunCoffer({}, {"id", "-u"});
  EXPECT_EQ(usual.out, "1000\n") << usual.Describe();
  const RunResult other = RunCoffer({"--uid", "4242"}, {"id", "-u"});
  EXPECT_EQ(other.out, "4242\n") << other.Describe();
}

TEST(Cli, Environment) {
  const RunResult result =
      RunCoffer({"--env", "A=b", "--env", "EMPTY=", "--env", "WITH=a=b c"}, {"env"});
  EXPECT_TRUE(Contains(result.out, "A=b\n") && Contains(result.out, "EMPTY=\n") &&
              Contains(result.out, "WITH=a=b c\n"))
      << result.Describe();
  EXPECT_TRUE(Contains(result.out, "PATH=/")) << "programs need one\n" << result.Describe();
  EXPECT_TRUE(Contains(result.out, "HOME=/")) << result.Describe();
}

TEST(Cli, ReadOnlyAndWritableMounts) {
  TempDir dir;
  const std::string in = dir.MakeDir("in");
  const std::string out = dir.MakeDir("out");
  dir.Write("in/file", "from the host");
  const RunResult result = RunCoffer(
      {"--ro", in + ":/data/in", "--rw", out + ":/data/out"},
      {"sh", "-c", "cat /data/in/file; echo made > /data/out/file; echo x > /data/in/file"});
  EXPECT_TRUE(Contains(result.out, "from the host")) << result.Describe();
  EXPECT_EQ(result.exit, 2) << "a shell that could not write\n" << result.Describe();
  EXPECT_TRUE(Contains(result.err, "Read-only file system")) << result.Describe();
  EXPECT_EQ(ReadFile(out + "/file"), "made\n");
  EXPECT_EQ(ReadFile(in + "/file"), "from the host");
  // Without AT it is at its own path.
  const RunResult same = RunCoffer({"--ro", in}, {"cat", in + "/file"});
  EXPECT_EQ(same.out, "from the host") << same.Describe();
  const RunResult file = RunCoffer({"--ro", in + "/file:/one"}, {"cat", "/one"});
  EXPECT_EQ(file.out, "from the host") << file.Describe();
}

TEST(Cli, InputsAndOutput) {
  TempDir dir;
  const std::string one = dir.Write("one.txt", "1");
  const std::string two = dir.Write("two.txt", "2");
  const std::string out = dir / "results";
  const RunResult result =
      RunCoffer({"--in", one, two, "--out", out},
                {"sh", "-c", "cat /in/one.txt /in/two.txt > /out/sum; cat one.txt"});
  EXPECT_EQ(result.exit, 0) << result.Describe();
  EXPECT_EQ(ReadFile(out + "/sum"), "12") << result.Describe();
  EXPECT_EQ(result.out, "1") << result.Describe();
  struct stat info = {};
  ASSERT_EQ(stat((out + "/sum").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, geteuid());
  // A copy: the host's file cannot be changed through it.
  RunCoffer({"--in", one},
            {"sh", "-c",
             "echo evil > /in/one.txt; chmod 777 /in/one.txt; echo evil > /in/one.txt; true"});
  EXPECT_EQ(ReadFile(one), "1");
}

TEST(Cli, SizesOfTmpAndWorkspace) {
  const RunResult result = RunCoffer({"--tmp", "2MiB", "--disk", "4MiB"},
                                     {"sh", "-c",
                                      "head -c 3000000 /dev/zero > /tmp/f; echo tmp $?; head -c "
                                      "3000000 /dev/zero > f; echo disk $?"});
  EXPECT_TRUE(Contains(result.out, "tmp 1")) << result.Describe();
  EXPECT_TRUE(Contains(result.out, "disk 0")) << result.Describe();
}

// As root the boundary's uid stands for one owner: what belongs to others cannot be changed by anyone inside.
TEST(Cli, FilesOfOtherOwnersAreTold) {
  const TempDir dir;
  dir.Write("shared/a", "x");
  const Strings flags = {"--level", "container", "--rw", (dir / "shared") + ":/data"};
  const RunResult own = RunCoffer(flags, {"sh", "-c", "echo y > /data/a"});
  EXPECT_EQ(own.exit, 0) << own.Describe();
  EXPECT_FALSE(Contains(own.err, "belong to another user")) << "the control\n" << own.err;
  if (!IsRoot()) {
    return;  // there is no mapping, and no file of others to make
  }
  ASSERT_EQ(chown((dir / "shared/a").c_str(), 0, 4871), 0);
  const RunResult others = RunCoffer(flags, {"sh", "-c", "echo y > /data/a"});
  EXPECT_NE(others.exit, 0) << others.Describe();
  EXPECT_TRUE(Contains(others.err, "note: 1 files in " + (dir / "shared") +
                                       " belong to another user or group than "))
      << others.err;
  EXPECT_TRUE(Contains(others.err, "chown -R, or run as their owner")) << others.err;
}

TEST(Cli, AFullTmpIsTheReasonOfAFailure) {
  for (const std::string place : {"/tmp", "/dev/shm"}) {
    const std::string fill = "head -c 3000000 /dev/zero > " + place + "/f";
    const RunResult full = RunCoffer({"--level", "container", "--tmp", "2MiB"}, {"sh", "-c", fill});
    EXPECT_EQ(full.exit, 122) << full.Describe();
    EXPECT_EQ(full.ErrorClass(), "limit.disk");
    EXPECT_TRUE(Contains(full.err, "/tmp (also /dev/shm) is full")) << full.err;
    EXPECT_TRUE(Contains(full.err, "--tmp SIZE")) << full.err;
    EXPECT_EQ(full.receipt["limits"]["disk"]["used"], 2 << 20) << full.Describe();
    EXPECT_EQ(full.receipt["limits"]["disk"]["breached"], true);
    const RunResult made_do =
        RunCoffer({"--level", "container", "--tmp", "2MiB"}, {"sh", "-c", fill + "; true"});
    EXPECT_EQ(made_do.exit, 0) << made_do.Describe();
    const RunResult other =
        RunCoffer({"--level", "container", "--tmp", "4MiB"}, {"sh", "-c", fill + "; exit 3"});
    EXPECT_EQ(other.exit, 3) << "the control\n" << other.Describe();
  }
}

TEST(Cli, WhatAProgramRemovedFromTheWorkspaceIsInTheReceipt) {
  const auto used = [](const std::string& script) {
    const RunResult result = RunCoffer({"--level", "container"}, {"sh", "-c", script});
    EXPECT_EQ(result.exit, 0) << result.Describe();
    return result.receipt["limits"]["disk"]["used"].get<uint64_t>();
  };
  EXPECT_EQ(used("sleep 1"), 0U) << "the control";
  EXPECT_GE(used("head -c 60000000 /dev/zero > f; sleep 1; rm f"), 60000000U);
}

// A program that was refused a thread may wait for it for ever: its wall time is not the reason.
TEST(Cli, TheWallNamesWhatWasRefusedMeanwhile) {
  const std::string threads =
      "import threading, time\n"
      "for i in range(9):\n"
      "  try: threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
      "  except RuntimeError: pass\n"
      "time.sleep(60)";
  const RunResult result =
      RunCoffer({"--processes", "5", "--wall", "2s"}, {"python3", "-c", threads});
  EXPECT_EQ(result.ErrorClass(), "limit.wall") << result.Describe();
  EXPECT_TRUE(
      Contains(result.err, "processes or threads were refused meanwhile: raise --processes"))
      << result.err;
  const RunResult enough =
      RunCoffer({"--processes", "20", "--wall", "2s"}, {"python3", "-c", threads});
  EXPECT_EQ(enough.ErrorClass(), "limit.wall") << enough.Describe();
  EXPECT_TRUE(Contains(enough.err, "raise the cap with --wall")) << "the control\n" << enough.err;
}

TEST(Cli, Runtimes) {
  const RunResult only =
      RunCoffer({"--runtime", "sh"}, {"sh", "-c", "echo runs; python3 -c 'print(1)'; node -e 1"});
  EXPECT_TRUE(Contains(only.out, "runs")) << only.Describe();
  EXPECT_EQ(only.exit, 127) << "node is not part of sh\n" << only.Describe();
  const RunResult both =
      RunCoffer({"--runtime", "sh", "python3"}, {"sh", "-c", "python3 -c 'print(6 * 7)'"});
  EXPECT_EQ(both.out, "42\n") << both.Describe();
  const RunResult unknown = RunCoffer({"--runtime", "cobol"}, {"sh", "-c", "true"});
  EXPECT_EQ(unknown.exit, 120) << unknown.Describe();
  EXPECT_TRUE(Contains(unknown.err, "cobol")) << unknown.err;
}

TEST(Cli, CompilersAndPackageManagersAreNotThere) {
  const RunResult result = RunCoffer(
      {"--runtime", "base"},
      {"sh", "-c", "for p in gcc cc apt dpkg pip su sudo mount; do command -v $p; done; echo end"});
  EXPECT_EQ(result.out, "end\n") << result.Describe();
}

TEST(Cli, EtcIsSynthetic) {
  const RunResult result = RunCoffer(
      {}, {"sh", "-c",
           "cat /etc/passwd; echo ---; cat /etc/group /etc/hosts /etc/nsswitch.conf; ls -a /etc"});
  EXPECT_EQ(result.exit, 0) << result.Describe();
  EXPECT_TRUE(Contains(result.out, ":1000:")) << result.Describe();
  EXPECT_TRUE(Contains(result.out, "localhost")) << result.Describe();
  EXPECT_FALSE(Contains(result.out, "shadow") || Contains(result.out, "ssh") ||
               Contains(result.out, "daemon:"))
      << result.Describe();
  const RunResult name =
      RunCoffer({}, {"python3", "-c", "import pwd, os; print(pwd.getpwuid(os.getuid()).pw_dir)"});
  EXPECT_TRUE(name.out.starts_with("/")) << name.Describe();
}

TEST(Cli, QuietAndTrace) {
  EXPECT_EQ(RunProbe({"--quiet"}, {"exit", "0"}).err, "");
  const RunResult limit = RunProbe({"--quiet", "--wall", "500ms"}, {"wait", "x"});
  EXPECT_TRUE(Contains(limit.err, "coffer: limit.wall: ")) << "errors stay\n" << limit.Describe();
  const RunResult trace = RunProbe({"--trace"}, {"io_uring"});
  EXPECT_TRUE(Contains(trace.err, "io_uring_setup")) << trace.Describe();
  EXPECT_EQ(trace.exit, 0);
}

TEST(Cli, ReceiptToStderr) {
  const RunResult result =
      RunProgram({CofferPath(), "run", "--receipt", "-", "--", ProbePath(), "exit", "0"});
  const size_t brace = result.err.find('{');
  ASSERT_NE(brace, std::string::npos) << result.Describe();
  const Json receipt = Json::parse(result.err.substr(brace), nullptr, false);
  EXPECT_TRUE(receipt.is_object()) << result.err;
}

TEST(Cli, FlagsWithEqualsAndTheEndOfFlags) {
  EXPECT_EQ(RunProbe({"--memory=64MiB", "--wall=5s"}, {"exit", "4"}).exit, 4);
  const RunResult result = RunProbe({}, {"args", "--wall", "-x", "--", "--receipt"});
  EXPECT_TRUE(Contains(result.out, "count 4")) << "flags after the command are the command's\n"
                                               << result.Describe();
}

TEST(Cli, VersionHelpAndUnknownVerbs) {
  const RunResult version = RunProgram({CofferPath(), "--version"});
  EXPECT_EQ(version.exit, 0);
  EXPECT_TRUE(Contains(version.out, "0.")) << version.out;
  for (const Strings& argv :
       {Strings{"--help"}, {"help"}, {"run", "--help"}, {"doctor", "--help"}}) {
    Strings full = {CofferPath()};
    full.insert(full.end(), argv.begin(), argv.end());
    const RunResult help = RunProgram(full);
    EXPECT_EQ(help.exit, 0) << argv[0] << "\n" << help.Describe();
    EXPECT_TRUE(Contains(help.out, "coffer")) << help.Describe();
  }
  const RunResult unknown = RunProgram({CofferPath(), "frobnicate"});
  EXPECT_EQ(unknown.exit, 120) << unknown.Describe();
  EXPECT_TRUE(unknown.err.starts_with("coffer: ")) << unknown.err;
  const RunResult nothing = RunProgram({CofferPath()});
  EXPECT_EQ(nothing.exit, 120);
  EXPECT_TRUE(nothing.out.starts_with("coffer: ")) << nothing.Describe();
  EXPECT_TRUE(Contains(nothing.out, "coffer run")) << nothing.Describe();
}

TEST(Cli, Doctor) {
  const RunResult json = RunProgram({CofferPath(), "doctor", "--json"});
  const Json doctor = Json::parse(json.out, nullptr, false);
  ASSERT_TRUE(doctor.is_object()) << json.Describe();
  EXPECT_EQ(json.exit, 0) << "these tests need a host that offers containers\n" << json.out;
  EXPECT_TRUE(Contains(json.out, "landlock") && Contains(json.out, "seccomp") &&
              Contains(json.out, "cgroup"))
      << json.out;
  const RunResult text = RunProgram({CofferPath(), "doctor"});
  EXPECT_EQ(text.exit, json.exit);
  EXPECT_TRUE(Contains(text.out, "container")) << text.out;
  EXPECT_FALSE(Contains(text.out, "\033[")) << "colour without a terminal";
  // What doctor says this host can do is what a run then gets.
  const RunResult run = RunProbe({}, {"exit", "0"});
  EXPECT_EQ(run.exit, 0) << run.Describe();
  const RunResult sweep = RunProgram({CofferPath(), "doctor", "--sweep"});
  EXPECT_EQ(sweep.exit, 0) << sweep.Describe();
}

TEST(Cli, RuntimesVerb) {
  const RunResult text = RunProgram({CofferPath(), "runtimes"});
  EXPECT_EQ(text.exit, 0) << text.Describe();
  for (const char* name : {"python3", "sh", "perl"}) {
    EXPECT_TRUE(Contains(text.out, name)) << text.out;
  }
  const RunResult json = RunProgram({CofferPath(), "runtimes", "--json"});
  EXPECT_FALSE(Json::parse(json.out, nullptr, false).is_discarded()) << json.Describe();
}

TEST(Cli, TheHostsUsrIsShownWholeIfItIsAskedFor) {
  // awk is a link through /etc/alternatives.
  for (const char* const level : {"container", "process"}) {
    const RunResult result =
        RunCoffer({"--level", level, "--runtime", "host-usr"},
                  {"sh", "-c", "awk 'BEGIN { print 40 + 2 }' && ls /usr/share/doc | head -n 1"});
    EXPECT_EQ(result.exit, 0) << result.Describe();
    EXPECT_TRUE(Contains(result.out, "42\n")) << result.Describe();
    EXPECT_TRUE(Contains(result.receipt["blast_radius"].get<std::string>(), "can read /usr"))
        << result.Describe();
  }
}

}  // namespace
}  // namespace coffer::test
