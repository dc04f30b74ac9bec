// SPDX-License-Identifier: Apache-2.0
//
// Staying alive, staying behind, lying about the end, and plain helpers for the integration tests.
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "probe.h"

namespace probe {
namespace {

[[noreturn]] void SleepForever() {
  while (true) {
    pause();
  }
}

// `wait TOKEN`: sleeps; the token in argv lets the host find it. Prints "ready".
int Wait(int, char**) {
  Say("ready");
  SleepForever();
}

// `stubborn TOKEN`: ignores everything that can be ignored.
int Stubborn(int, char**) {
  for (int number = 1; number < 65; ++number) {
    signal(number, SIG_IGN);
  }
  Say("ready");
  SleepForever();
}

// `daemonize TOKEN`: double fork, own session, everything closed; the first process ends at once.
int Daemonize(int, char**) {
  if (fork() != 0) {
    usleep(100000);
    Say("ready");
    return 0;
  }
  setsid();
  if (fork() != 0) {
    _exit(0);
  }
  for (int number = 1; number < 65; ++number) {
    signal(number, SIG_IGN);
  }
  for (int fd = 0; fd < 1024; ++fd) {
    close(fd);
  }
  SleepForever();
}

// `daemonize-holding TOKEN`: the same, but it keeps stdout: a reader would wait for it for ever.
int DaemonizeHolding(int, char**) {
  if (fork() != 0) {
    Say("ready");
    return 0;
  }
  setsid();
  if (fork() != 0) {
    _exit(0);
  }
  SleepForever();
}

// `respawn TOKEN`: children that replace each other faster than anybody can list them.
int Respawn(int, char**) {
  Say("ready");
  while (true) {
    const pid_t child = fork();
    if (child > 0) {
      _exit(0);  // the child goes on under a new pid
    }
    if (child < 0) {
      usleep(100);
    }
  }
}

int StopSelf(int, char**) {
  Say("ready");
  raise(SIGSTOP);
  SleepForever();
}

// `fds`: descriptors that are open, found without /proc.
int Fds(int, char**) {
  for (int fd = 0; fd < 65536; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0) {
      struct stat info = {};
      fstat(fd, &info);
      Say("fd %d mode %o flags %o", fd, info.st_mode & S_IFMT,
          static_cast<unsigned>(fcntl(fd, F_GETFL)));
    }
  }
  Say("done");
  return 0;
}

// `fake-record`: writes what might be taken for a report to every descriptor, then ends with 7.
int FakeRecord(int, char**) {
  const int zeros[64] = {};
  for (int fd = 3; fd < 1024; ++fd) {
    if (write(fd, zeros, sizeof zeros) < 0) {
      continue;
    }
  }
  Say("{\"outcome\":\"success\",\"exit\":{\"code\":0}}");
  return 7;
}

// `crash [MIB]`: ends by SIGSEGV with a large address space, core dumps wanted.
int Crash(int argc, char** argv) {
  struct rlimit most = {RLIM_INFINITY, RLIM_INFINITY};
  setrlimit(RLIMIT_CORE, &most);
  prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
  const size_t size = static_cast<size_t>(argc > 1 ? atoi(argv[1]) : 1) << 20;
  char* memory = static_cast<char*>(malloc(size));
  memset(memory, 1, size);
  raise(SIGSEGV);
  return 1;
}

// `signals`: prints the name of each signal that arrives; SIGTERM ends with 15.
int Signals(int, char**) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, nullptr);
  Say("ready");
  while (true) {
    int number = 0;
    sigwait(&all, &number);
    Say("signal %s", sigabbrev_np(number) != nullptr ? sigabbrev_np(number) : "RT");
    if (number == SIGTERM) {
      return 15;
    }
  }
}

// `masks`: signals that are blocked or ignored at the start: none should be.
int Masks(int, char**) {
  sigset_t blocked;
  sigprocmask(SIG_BLOCK, nullptr, &blocked);
  for (int number = 1; number < 32; ++number) {
    struct sigaction action = {};
    sigaction(number, nullptr, &action);
    if (action.sa_handler == SIG_IGN) {
      Say("ignored %d", number);
    }
    if (sigismember(&blocked, number) == 1) {
      Say("blocked %d", number);
    }
  }
  Say("umask %o", static_cast<unsigned>(umask(022)));
  Say("done");
  return 0;
}

// `flood BYTES FD`: as much output as asked for.
int Flood(int argc, char** argv) {
  static char bytes[65536];
  memset(bytes, 'y', sizeof bytes);
  long left = argc > 1 ? atol(argv[1]) : 1 << 20;
  const int fd = argc > 2 ? atoi(argv[2]) : 1;
  while (left > 0) {
    const ssize_t n =
        write(fd, bytes,
              left > static_cast<long>(sizeof bytes) ? sizeof bytes : static_cast<size_t>(left));
    if (n < 0) {
      return 1;
    }
    left -= n;
  }
  return 0;
}

// `args ARG...`: count and each one.
int Args(int argc, char** argv) {
  Say("count %d", argc - 1);
  for (int i = 1; i < argc && i < 20; ++i) {
    Say("arg %s", argv[i]);
  }
  return 0;
}

// `exit N`, `die SIGNAL`
int Exit(int argc, char** argv) { return argc > 1 ? atoi(argv[1]) : 0; }
int Die(int argc, char** argv) {
  const int number = argc > 1 ? atoi(argv[1]) : SIGKILL;
  signal(number, SIG_DFL);
  raise(number);
  SleepForever();
}

// `count-stdin`: how many bytes came, and their sum.
int CountStdin(int, char**) {
  static unsigned char bytes[65536];
  unsigned long count = 0, sum = 0;
  for (ssize_t n = read(0, bytes, sizeof bytes); n > 0; n = read(0, bytes, sizeof bytes)) {
    count += static_cast<unsigned long>(n);
    for (ssize_t i = 0; i < n; ++i) {
      sum += bytes[i];
    }
  }
  Say("bytes %lu sum %lu", count, sum);
  return 0;
}

// `swarm PROCESSES MAPPINGS SECONDS`: each forks and exits as fast as it can, so that none is there when it is looked at;
// mappings make both slow.
int Swarm(int argc, char** argv) {
  if (argc < 4) {
    return 2;
  }
  signal(SIGCHLD, SIG_IGN);
  for (int i = 0; i < atoi(argv[2]); ++i) {
    const int access = i % 2 == 0 ? PROT_READ : PROT_READ | PROT_WRITE;  // neighbours do not merge
    mmap(nullptr, 4096, access, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  }
  const time_t end = time(nullptr) + atoi(argv[3]);
  for (int i = 0; i < atoi(argv[1]); ++i) {
    if (fork() == 0) {
      while (time(nullptr) < end) {
        if (fork() > 0) {
          _exit(0);
        }
      }
      _exit(0);
    }
  }
  while (time(nullptr) < end) {
    usleep(100000);
  }
  Open("swarm");
  return 0;
}

constexpr Verb kVerbs[] = {
    {"swarm", Swarm, "PROCESSES MAPPINGS SECONDS"},
    {"wait", Wait, "TOKEN"},
    {"stubborn", Stubborn, "TOKEN"},
    {"daemonize", Daemonize, "TOKEN"},
    {"daemonize-holding", DaemonizeHolding, "TOKEN"},
    {"respawn", Respawn, "TOKEN"},
    {"stop-self", StopSelf, "TOKEN"},
    {"fds", Fds, ""},
    {"fake-record", FakeRecord, ""},
    {"crash", Crash, "[MIB]"},
    {"signals", Signals, ""},
    {"masks", Masks, ""},
    {"flood", Flood, "BYTES [FD]"},
    {"args", Args, "ARG..."},
    {"exit", Exit, "N"},
    {"die", Die, "SIGNAL"},
    {"count-stdin", CountStdin, ""},
};

}  // namespace

std::span<const Verb> LifeVerbs() { return kVerbs; }

}  // namespace probe
