// SPDX-License-Identifier: Apache-2.0
//
// --tty: a terminal of its own, driven here through a pseudo-terminal as a person's would be.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "tests/support/host.h"
#include "tests/support/verdicts.h"

namespace coffer::test {
namespace {

// A person at a terminal: a master whose slave is the controlling terminal of the program.
class Person {
 public:
  explicit Person(const Strings& argv, unsigned short rows = 30, unsigned short columns = 100) {
    master_ = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    EXPECT_GE(master_, 0);
    EXPECT_EQ(grantpt(master_) | unlockpt(master_), 0);
    const std::string name = ptsname(master_);
    Resize(rows, columns);
    std::vector<char*> words;
    for (const std::string& word : argv) {
      words.push_back(const_cast<char*>(word.c_str()));
    }
    words.push_back(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      setsid();
      const int slave = open(name.c_str(), O_RDWR);
      ioctl(slave, TIOCSCTTY, 0);
      for (int fd = 0; fd < 3; ++fd) {
        dup2(slave, fd);
      }
      execv(words[0], words.data());
      _exit(97);
    }
    // Kept open: the settings of the terminal can be looked at before and after.
    slave_ = open(name.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC);
    tcgetattr(slave_, &before_);
  }
  ~Person() {
    if (!status_) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    close(slave_);
    close(master_);
  }
  Person(const Person&) = delete;
  Person& operator=(const Person&) = delete;

  void Resize(unsigned short rows, unsigned short columns) const {
    const winsize size = {rows, columns, 0, 0};
    ioctl(master_, TIOCSWINSZ, &size);
  }
  void Type(const std::string& text) const {
    EXPECT_EQ(write(master_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  bool Sees(const std::string& text, Seconds limit = Seconds(15)) {
    return WaitUntil(
        [&] {
          Read();
          return Contains(screen_, text);
        },
        limit);
  }
  // The exit status, or 128 + signal.
  int Wait(Seconds limit = Seconds(20)) {
    WaitUntil(
        [&] {
          Read();
          int status = 0;
          if (waitpid(pid_, &status, WNOHANG) == pid_) {
            status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
          }
          return status_.has_value();
        },
        limit);
    return status_.value_or(-1);
  }
  const std::string& screen() const { return screen_; }
  bool SettingsRestored() const {
    termios now = {};
    tcgetattr(slave_, &now);
    return now.c_lflag == before_.c_lflag && now.c_iflag == before_.c_iflag &&
           now.c_oflag == before_.c_oflag;
  }

 private:
  void Read() {
    pollfd wait = {master_, POLLIN, 0};
    char bytes[4096];
    while (poll(&wait, 1, 10) > 0 && (wait.revents & POLLIN) != 0) {
      const ssize_t n = read(master_, bytes, sizeof bytes);
      if (n <= 0) {
        return;
      }
      screen_.append(bytes, static_cast<size_t>(n));
    }
  }
  int master_ = -1, slave_ = -1;
  pid_t pid_ = -1;
  std::optional<int> status_;
  std::string screen_;
  termios before_ = {};
};

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
  person.Type("sleep 100\n");
  usleep(300000);
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

TEST(Terminal, WhoeverHasNoneIsGivenOne) {
  // stdin is a pipe here. Never half of it.
  const RunResult result = RunCoffer({"--tty"}, {ProbePath(), "tty-info"});
  EXPECT_EQ(result.exit, 0) << result.Describe();
  EXPECT_TRUE(Contains(result.out, "isatty 1 1 1")) << result.Describe();
  EXPECT_TRUE(Contains(RunOutside({"tty-info"}).out, "isatty 0 0 0")) << "the control";
}

}  // namespace
}  // namespace coffer::test
