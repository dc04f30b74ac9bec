// SPDX-License-Identifier: Apache-2.0
//
// Terminals: input pushed into somebody else's, sizes, sessions.
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>

#include "probe.h"

namespace probe {
namespace {

constexpr unsigned long kTiocLinux = 0x541C;

// The terminal ioctls that reach past the terminal, on `fd`, which is our controlling terminal.
void TryAll(int fd) {
  char letter = 'x';
  ReachVerdict("tiocsti", ioctl(fd, TIOCSTI, &letter));
  // The kernel looks at 32 bits only: a filter that compares 64 can be walked around.
  ReachVerdict("tiocsti-high", Call(SYS_ioctl, fd, TIOCSTI | 0x100000000UL, &letter));
  char paste[16] = {2};
  ReachVerdict("tioclinux", ioctl(fd, kTiocLinux, paste));
  int discipline = 0;
  ReachVerdict("tiocsetd", ioctl(fd, TIOCSETD, &discipline));
  ReachVerdict("tioccons", ioctl(fd, TIOCCONS, 0));
}

// `tty-own`: a pseudo-terminal made here.
int TtyOwn(int, char**) {
  const int ptmx = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (ptmx < 0) {
    Refused("ptmx", errno);
    return 0;
  }
  int unlock = 0;
  ioctl(ptmx, TIOCSPTLCK, &unlock);
  const pid_t child = fork();
  if (child == 0) {
    setsid();
    const int slave = ioctl(ptmx, 0x5441 /* TIOCGPTPEER, 4.13 */, O_RDWR | O_NOCTTY);
    if (slave < 0) {
      Refused("peer", errno);
      _exit(0);
    }
    ioctl(slave, TIOCSCTTY, 0);
    TryAll(slave);
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  return 0;
}

// `tty-fd N`: an inherited terminal.
int TtyFd(int argc, char** argv) {
  const int fd = argc > 1 ? atoi(argv[1]) : 0;
  Say("isatty %d", isatty(fd));
  TryAll(fd);
  return 0;
}

// `tty-info`: size, session, process group, as a shell would see them.
int TtyInfo(int, char**) {
  struct winsize size = {};
  Say("isatty %d %d %d", isatty(0), isatty(1), isatty(2));
  if (ioctl(0, TIOCGWINSZ, &size) == 0) {
    Say("size %d %d", size.ws_row, size.ws_col);
  }
  Say("session %s", getsid(0) == getpid() || tcgetsid(0) == getsid(0) ? "own" : "foreign");
  Say("foreground %s", tcgetpgrp(0) == getpgrp() ? "yes" : "no");
  return 0;
}

volatile sig_atomic_t resized = 0;

// `tty-wait-resize ROWS COLS`: ends when the terminal has that size; the SIGWINCH must arrive.
int TtyWaitResize(int argc, char** argv) {
  if (argc < 3) {
    return 2;
  }
  struct sigaction action = {};
  action.sa_handler = [](int) { resized = 1; };
  sigaction(SIGWINCH, &action, nullptr);
  Say("waiting");
  for (int i = 0; i < 1000; ++i) {
    struct winsize size = {};
    ioctl(0, TIOCGWINSZ, &size);
    if (resized != 0 && size.ws_row == atoi(argv[1]) && size.ws_col == atoi(argv[2])) {
      Say("resized %d %d", size.ws_row, size.ws_col);
      return 0;
    }
    usleep(10000);
  }
  Say("not resized");
  return 1;
}

constexpr Verb kVerbs[] = {
    {"tty-own", TtyOwn, ""},
    {"tty-fd", TtyFd, "N"},
    {"tty-info", TtyInfo, ""},
    {"tty-wait-resize", TtyWaitResize, "ROWS COLS"},
};

}  // namespace

std::span<const Verb> TerminalVerbs() { return kVerbs; }

}  // namespace probe
