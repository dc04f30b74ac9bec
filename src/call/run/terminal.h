// SPDX-License-Identifier: Apache-2.0
//
// Our own terminal while a boundary has one of its own (--tty): raw, and restored whatever happens.
#pragma once

#include <termios.h>

#include "base/result.h"

namespace coffer::call {

class Terminal {
 public:
  // Puts `fd` into raw mode if it is a terminal with us in the foreground; otherwise does nothing.
  explicit Terminal(int fd);
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // Copies the window size of our terminal to the boundary's.
  void CopySizeTo(int master) const;

 private:
  int fd_;
  bool raw_ = false;
  termios saved_{};
};

}  // namespace coffer::call
