// SPDX-License-Identifier: Apache-2.0
//
// Eating the machine: processes, threads, memory, processor time, descriptors, priorities.
#include <fcntl.h>
#include <linux/ioprio.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "probe.h"

namespace probe {
namespace {

constexpr size_t kMiB = 1 << 20;

int Number(int argc, char** argv, int index, int otherwise) {
  return argc > index ? atoi(argv[index]) : otherwise;
}

// `fork-bomb [MOST]`: forks until refused; says how many lived at once, then ends them.
int ForkBomb(int argc, char** argv) {
  const int most = Number(argc, argv, 1, 5000);
  int alive = 0;
  int error_number = 0;
  static pid_t children[100000];
  while (alive < most && alive < 100000) {
    const pid_t child = fork();
    if (child == 0) {
      while (true) {
        pause();
      }
    }
    if (child < 0) {
      error_number = errno;
      break;
    }
    children[alive++] = child;
  }
  if (error_number != 0) {
    Refused("fork", error_number);
  } else {
    Open("fork");
  }
  Say("alive %d", alive);
  for (int i = 0; i < alive; ++i) {
    kill(children[i], SIGKILL);
  }
  for (int i = 0; i < alive; ++i) {
    waitpid(children[i], nullptr, 0);
  }
  return 0;
}

// `fork-bomb-wild`: doubles without end and without mercy.
int ForkBombWild(int, char**) {
  Say("bomb");
  while (true) {
    fork();
  }
}

// `thread-bomb [MOST]`: bare threads by clone(), which count as processes.
int ThreadBomb(int argc, char** argv) {
  const int most = Number(argc, argv, 1, 5000);
  int alive = 0;
  int error_number = 0;
  constexpr size_t kStack = 16384;
  for (; alive < most; ++alive) {
    void* stack = mmap(nullptr, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED) {
      error_number = errno;
      break;
    }
    const int thread = clone(
        [](void*) -> int {
          while (true) {
            pause();
          }
        },
        static_cast<char*>(stack) + kStack,
        CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM, nullptr);
    if (thread < 0) {
      error_number = errno;
      break;
    }
  }
  if (error_number != 0) {
    Refused("thread", error_number);
  } else {
    Open("thread");
  }
  Say("alive %d", alive);
  _exit(0);
}

// `zombies N`: N children whose parents have gone. Each attempt may find the table full for a moment.
int Zombies(int argc, char** argv) {
  const int most = Number(argc, argv, 1, 1000);
  int made = 0;
  for (int attempt = 0; made < most && attempt < most * 20; ++attempt) {
    // The middle one ends at once: its child becomes init's.
    const pid_t middle = fork();
    if (middle == 0) {
      const pid_t orphan = fork();
      _exit(orphan < 0 ? 1 : 0);
    }
    if (middle < 0) {
      usleep(1000);
      continue;
    }
    int status = 0;
    waitpid(middle, &status, 0);
    const bool worked = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    made += worked ? 1 : 0;
    if (!worked) {
      usleep(1000);
    }
  }
  Say("orphans %d", made);
  return 0;
}

// `eat-memory MIB`: touches every page.
int EatMemory(int argc, char** argv) {
  const size_t want = static_cast<size_t>(Number(argc, argv, 1, 1024));
  for (size_t i = 0; i < want; ++i) {
    void* piece = mmap(nullptr, kMiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (piece == MAP_FAILED) {
      Refused("mmap", errno);
      return 1;
    }
    memset(piece, static_cast<int>(i) | 1, kMiB);
  }
  Open("memory", "%zu MiB", want);
  return 0;
}

// `eat-tree MIB CHILDREN`: the same sum, spread over children that each stay small.
int EatTree(int argc, char** argv) {
  const size_t want = static_cast<size_t>(Number(argc, argv, 1, 1024));
  const int children = Number(argc, argv, 2, 8);
  for (int i = 0; i < children; ++i) {
    if (fork() == 0) {
      for (size_t piece = 0; piece < want / static_cast<size_t>(children); ++piece) {
        void* at = mmap(nullptr, kMiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED) {
          _exit(1);
        }
        memset(at, 1, kMiB);
      }
      sleep(5);
      _exit(0);
    }
  }
  int status = 0;
  while (wait(&status) > 0) {
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
      Refused("tree", ENOMEM);
      return 1;
    }
  }
  Open("tree", "%zu MiB", want);
  return 0;
}

// `eat-memfd MIB`, `eat-shm MIB`: memory that hides in files.
int EatMemfd(int argc, char** argv) {
  const int want = Number(argc, argv, 1, 1024);
  const bool memfd = strcmp(argv[0], "eat-memfd") == 0;
  const int fd = memfd ? static_cast<int>(Call(SYS_memfd_create, "x", 0))
                       : open("/dev/shm/eat", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) {
    Refused("open", errno);
    return 1;
  }
  static char piece[kMiB];
  memset(piece, 1, sizeof piece);
  for (int i = 0; i < want; ++i) {
    if (write(fd, piece, sizeof piece) != static_cast<ssize_t>(sizeof piece)) {
      Refused("write", errno);
      Say("wrote %d", i);
      return 1;
    }
  }
  Open("memory", "%d MiB", want);
  return 0;
}

// `spin PROCESSES SECONDS`: burns processor time on purpose.
int Spin(int argc, char** argv) {
  const int processes = Number(argc, argv, 1, 1);
  const int seconds = Number(argc, argv, 2, 3600);
  for (int i = 1; i < processes; ++i) {
    if (fork() == 0) {
      break;
    }
  }
  alarm(static_cast<unsigned>(seconds));
  volatile unsigned long counter = 0;
  while (true) {
    counter = counter + 1;
  }
}

// `spin-chain`: each process burns a little and is replaced, so that no single one reaches a per-process limit.
int SpinChain(int, char**) {
  while (true) {
    const pid_t child = fork();
    if (child == 0) {
      volatile unsigned long counter = 0;
      for (long i = 0; i < 50000000; ++i) {
        counter = counter + 1;
      }
      _exit(0);
    }
    if (child > 0) {
      waitpid(child, nullptr, 0);
    }
  }
}

// `fds-bomb`: opens until refused.
int FdsBomb(int, char**) {
  int opened = 0;
  int error_number = 0;
  while (opened < 2000000) {
    if (open("/dev/null", O_RDONLY) < 0) {
      error_number = errno;
      break;
    }
    ++opened;
  }
  Say("opened %d", opened);
  Refused("open", error_number);
  return 0;
}

// `scm-bomb`: parks descriptors in flight, where they count for nobody's table.
int ScmBomb(int, char**) {
  long parked = 0;
  int error_number = 0;
  for (int pair = 0; pair < 200 && error_number == 0; ++pair) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0) {
      error_number = errno;
      break;
    }
    for (int send = 0; send < 16; ++send) {
      constexpr int kMost = 64;
      char control[CMSG_SPACE(kMost * sizeof(int))] = {};
      char byte = 0;
      struct iovec data = {&byte, 1};
      struct msghdr message = {};
      message.msg_iov = &data;
      message.msg_iovlen = 1;
      message.msg_control = control;
      message.msg_controllen = sizeof control;
      cmsghdr* head = CMSG_FIRSTHDR(&message);
      head->cmsg_level = SOL_SOCKET;
      head->cmsg_type = SCM_RIGHTS;
      head->cmsg_len = CMSG_LEN(kMost * sizeof(int));
      int list[kMost];
      for (int& fd : list) {
        fd = ends[0];
      }
      memcpy(CMSG_DATA(head), list, sizeof list);
      if (sendmsg(ends[1], &message, MSG_DONTWAIT) < 0) {
        if (errno != EAGAIN) {
          error_number = errno;
        }
        break;
      }
      parked += kMost;
    }
    // Both ends are closed: what is in flight keeps them alive.
    close(ends[0]);
    close(ends[1]);
  }
  Say("parked %ld", parked);
  if (error_number != 0) {
    Refused("scm", error_number);
  } else {
    Open("scm");
  }
  return 0;
}

// `priorities`: everything that would put this process before others.
int Priorities(int, char**) {
  struct sched_param fifo = {1};
  Verdict("nice", setpriority(PRIO_PROCESS, 0, -20));
  Verdict("sched-fifo", Call(SYS_sched_setscheduler, 0, SCHED_FIFO, &fifo));
  struct {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
  } deadline = {48, 6 /* SCHED_DEADLINE */, 0, 0, 0, 10000000, 30000000, 30000000};
  Verdict("sched-deadline", Call(SYS_sched_setattr, 0, &deadline, 0));
  sched_param other = {0};
  Call(SYS_sched_setscheduler, 0, SCHED_OTHER, &other);
  Verdict("ioprio-rt",
          Call(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, (IOPRIO_CLASS_RT << IOPRIO_CLASS_SHIFT) | 0));
  Verdict("mlockall", Call(SYS_mlockall, MCL_CURRENT | MCL_FUTURE));
  const int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0) {
    Refused("oom-score", errno);
  } else {
    Verdict("oom-score", write(fd, "-1000", 5));
  }
  struct rlimit most = {RLIM_INFINITY, RLIM_INFINITY};
  Verdict("rlimit-nproc", setrlimit(RLIMIT_NPROC, &most));
  Verdict("rlimit-core", [&] {
    struct rlimit now = {0, 0};
    const int set = setrlimit(RLIMIT_CORE, &most);
    getrlimit(RLIMIT_CORE, &now);
    errno = now.rlim_cur <= 1 ? EPERM : errno;  // it may be answered as if it were done
    return now.rlim_cur <= 1 ? -1 : set;
  }());
  Verdict("rlimit-nofile", [] {
    struct rlimit files = {1 << 20, 1 << 20};
    return setrlimit(RLIMIT_NOFILE, &files);
  }());
  return 0;
}

// `core-limit`: lowers it to 0 in each way there is, and prints what it is then.
int CoreLimit(int, char**) {
  struct rlimit none = {0, 0};
  struct rlimit now = {7, 7};
  const int answers[] = {setrlimit(RLIMIT_CORE, &none),
                         Call(SYS_prlimit64, 0, RLIMIT_CORE, &none, nullptr) == 0 ? 0 : -1,
                         Call(SYS_prlimit64, 0, RLIMIT_CORE, &none, &now) == 0 ? 0 : -1};
  getrlimit(RLIMIT_CORE, &now);
  Say("answers %d %d %d, limit %llu", answers[0], answers[1], answers[2],
      static_cast<unsigned long long>(now.rlim_cur));
  return 0;
}

constexpr Verb kVerbs[] = {
    {"core-limit", CoreLimit, ""},
    {"fork-bomb", ForkBomb, "[MOST]"},
    {"fork-bomb-wild", ForkBombWild, ""},
    {"thread-bomb", ThreadBomb, "[MOST]"},
    {"zombies", Zombies, "N"},
    {"eat-memory", EatMemory, "MIB"},
    {"eat-tree", EatTree, "MIB CHILDREN"},
    {"eat-memfd", EatMemfd, "MIB"},
    {"eat-shm", EatMemfd, "MIB"},
    {"spin", Spin, "PROCESSES SECONDS"},
    {"spin-chain", SpinChain, ""},
    {"fds-bomb", FdsBomb, ""},
    {"scm-bomb", ScmBomb, ""},
    {"priorities", Priorities, ""},
};

}  // namespace

std::span<const Verb> ResourceVerbs() { return kVerbs; }

}  // namespace probe
