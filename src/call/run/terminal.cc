// SPDX-License-Identifier: Apache-2.0
#include "call/run/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

namespace coffer::call {

Terminal::Terminal(int fd) : fd_(fd) {
  // In the background it is another program's at the moment. SIGTTOU, which would say so, is blocked here.
  if (::tcgetpgrp(fd) == ::getpgrp() && ::tcgetattr(fd, &saved_) == 0) {
    termios raw = saved_;
    ::cfmakeraw(&raw);
    raw_ = ::tcsetattr(fd, TCSANOW, &raw) == 0;
  }
}

Terminal::~Terminal() {
  if (raw_) {
    ::tcsetattr(fd_, TCSADRAIN, &saved_);
  }
}

void Terminal::CopySizeTo(int master) const {
  winsize size{};
  if (::ioctl(fd_, TIOCGWINSZ, &size) == 0) {
    ::ioctl(master, TIOCSWINSZ, &size);
  }
}

}  // namespace coffer::call
