// SPDX-License-Identifier: Apache-2.0
//
// --tty: a terminal of its own, driven here through a pseudo-terminal as a person's would be.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/host.h"
#include "tests/support/person.h"
#include "tests/support/verdicts.h"

namespace coffer::test {
namespace {

Strings Tty(const Strings& command, const Strings& flags = {}) {
  Strings argv = {CofferPath(), "run", "--tty"};
  argv.insert(argv.end(), flags.begin(), flags.end());
  argv.push_back("--");
  argv.insert(argv.end(), command.begin(), command.end());
  return argv;
}

TEST(Terminal, ItIsATerminalOfTheRightSize) {
  Person person(Tty({ProbePath(), "tty-info"}));
  EXPECT_EQ(person.Wait(), 0) << person.screen();
  EXPECT_TRUE(Contains(person.screen(), "isatty 1 1 1")) << person.screen();
  EXPECT_TRUE(Contains(person.screen(), "size 30 100")) << person.screen();
  EXPECT_TRUE(Contains(person.screen(), "session own")) << person.screen();
  EXPECT_TRUE(Contains(person.screen(), "foreground yes")) << person.screen();
  EXPECT_TRUE(person.SettingsRestored());
}

// What a terminal can do comes with --tty, beside listed runtimes too.
TEST(Terminal, ItsDescriptionIsThere) {
  if (!Exists("/usr/lib/terminfo/x/xterm") || !Exists("/usr/bin/jq")) {
    GTEST_SKIP() << "the host has no jq, or describes no xterm";
  }
  const Strings ask = {"jq", "-n", "--rawfile", "x", "/usr/lib/terminfo/x/xterm", "1"};
  Person person(Tty(ask, {"--runtime", "jq"}));
  EXPECT_EQ(person.Wait(), 0) << person.screen();
  const RunResult control = RunCoffer({"--runtime", "jq"}, ask);
  EXPECT_NE(control.exit, 0) << "NO-CONTROL: without a terminal too " << control.Describe();
}

TEST(Terminal, Resize) {
  Person person(Tty({ProbePath(), "tty-wait-resize", "44", "111"}));
  ASSERT_TRUE(person.Sees("waiting")) << person.screen();
  person.Resize(44, 111);
  EXPECT_TRUE(person.Sees("resized 44 111")) << person.screen();
  EXPECT_EQ(person.Wait(), 0) << person.screen();
}

TEST(Terminal, TypingReachesTheCommand) {
  Person person(Tty({"sh", "-c", "read line; echo got-$line"}));
  person.Type("hello\n");
  EXPECT_TRUE(person.Sees("got-hello")) << person.screen();
  EXPECT_EQ(person.Wait(), 0);
}

TEST(Terminal, CtrlCInterruptsTheCommandInside) {
  Person person(
      Tty({"sh", "-c", "trap 'echo caught; exit 5' INT; echo ready; while :; do sleep 0.1; done"}));
  ASSERT_TRUE(person.Sees("ready")) << person.screen();
  person.Type("\x03");
  EXPECT_TRUE(person.Sees("caught")) << person.screen();
  EXPECT_EQ(person.Wait(), 5) << person.screen();
  EXPECT_TRUE(person.SettingsRestored());
}

TEST(Terminal, CtrlDEndsInput) {
  Person person(Tty({"cat"}));
  person.Type("line\n");
  ASSERT_TRUE(person.Sees("line\r\nline")) << person.screen();
  person.Type("\x04");
  EXPECT_EQ(person.Wait(), 0) << person.screen();
}

TEST(Terminal, JobControl) {
  Person person(Tty({"bash", "--norc", "-i"}));
  person.Type("echo re''ady\n");
  ASSERT_TRUE(person.Sees("ready\r\n")) << person.screen();
  person.Type("sh -c \"echo be''gun; sleep 100\"\n");
  ASSERT_TRUE(person.Sees("begun\r\n")) << person.screen();
  person.Type("\x1a");  // Ctrl-Z
  EXPECT_TRUE(person.Sees("Stopped")) << person.screen();
  person.Type("jobs; kill %1; echo do''ne; exit 3\n");
  EXPECT_TRUE(person.Sees("done\r\n")) << person.screen();
  person.Type("exit 3\n");
  EXPECT_EQ(person.Wait(), 3) << person.screen();
  EXPECT_FALSE(Contains(person.screen(), "no job control")) << person.screen();
}

TEST(Terminal, SC_10_NothingCanBePushedIntoTheCallersTerminal) {
  Person person(Tty({ProbePath(), "tty-fd", "0"}));
  EXPECT_EQ(person.Wait(), 0) << person.screen();
  for (const char* label : {"tiocsti", "tiocsti-high", "tioclinux"}) {
    EXPECT_TRUE(Contains(person.screen(), std::string(label) + ": REFUSED")) << label << "\n"
                                                                             << person.screen();
  }
  EXPECT_TRUE(Contains(person.screen(), "isatty 1")) << person.screen();
}

TEST(Terminal, AKilledCallRestoresTheTerminal) {
  Person person(Tty({ProbePath(), "wait", "x"}, {"--wall", "1s"}));
  EXPECT_EQ(person.Wait(), 122) << person.screen();
  EXPECT_TRUE(person.SettingsRestored());
}

TEST(Terminal, InTheBackgroundItIsLeftAsItIs) {
  TempDir dir;
  const std::string shared = dir.MakeDir("shared");
  const std::string code = "echo be''gun; until test -e /shared/go; do sleep 0.1; done";
  const Strings run = Tty({"sh", "-c", code}, {"--rw", shared + ":/shared"});
  {
    Person control(run);
    ASSERT_TRUE(control.Sees("begun")) << control.screen();
    EXPECT_FALSE(control.SettingsRestored()) << "the control: in the foreground it is raw";
    dir.Write("shared/go", "");
    EXPECT_EQ(control.Wait(), 0) << control.screen();
  }
  unlink((shared + "/go").c_str());
  // -m gives what is in the background a process group of its own.
  Strings argv = {"/bin/bash", "-mc", "\"$@\" & wait $!", "bash"};
  argv.insert(argv.end(), run.begin(), run.end());
  Person person(argv);
  ASSERT_TRUE(person.Sees("begun")) << person.screen();
  EXPECT_TRUE(person.SettingsRestored());
  dir.Write("shared/go", "");
  EXPECT_EQ(person.Wait(), 0) << person.screen();
}

TEST(Terminal, ACallEndsWithItsTerminal) {
  const std::string token = NewToken();
  const std::string code = "trap '' HUP; echo ready; while :; do sleep 1; done; : " + token;
  Person person(Tty({"sh", "-c", code}, {"--wall", "10m"}));
  ASSERT_TRUE(person.Sees("ready")) << person.screen();
  EXPECT_FALSE(FindProcesses(token).empty()) << "the control";
  person.HangUp();
  EXPECT_EQ(person.Wait(Seconds(60)), 128 + SIGHUP);
  EXPECT_TRUE(FindProcesses(token).empty());
}

TEST(Terminal, WhoeverHasNoneIsGivenOne) {
  // stdin is a pipe here. Never half of it.
  const RunResult result = RunCoffer({"--tty"}, {ProbePath(), "tty-info"});
  EXPECT_EQ(result.exit, 0) << result.Describe();
  EXPECT_TRUE(Contains(result.out, "isatty 1 1 1")) << result.Describe();
  EXPECT_TRUE(Contains(RunOutside({"tty-info"}).out, "isatty 0 0 0")) << "the control";
}

}  // namespace
}  // namespace coffer::test
