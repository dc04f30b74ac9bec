// SPDX-License-Identifier: Apache-2.0
//
// A person at a terminal, for tests of what runs in one: types, resizes, waits for words on the screen.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <optional>

#include "tests/support/run.h"

namespace coffer::test {

// A master whose slave is the controlling terminal of the program.
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
  // Closes the window.
  void HangUp() {
    close(master_);
    master_ = -1;
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

}  // namespace coffer::test
