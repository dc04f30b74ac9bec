// SPDX-License-Identifier: Apache-2.0
//
// Hiding from those who count: files without names, memory outside any process's pages, children whose time and I/O the
// kernel forgets, trees that no path reaches.
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "probe.h"

namespace probe {
namespace {

constexpr size_t kMiB = 1 << 20;
char block[kMiB];

bool WriteBlocks(int fd, int count) {
  memset(block, 'h', sizeof block);
  for (int i = 0; i < count; ++i) {
    if (write(fd, block, sizeof block) != static_cast<ssize_t>(sizeof block)) {
      return false;
    }
  }
  return true;
}

bool SendDescriptor(int socket, int fd) {
  char control[CMSG_SPACE(sizeof(int))] = {};
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
  head->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(head), &fd, sizeof fd);
  return sendmsg(socket, &message, MSG_DONTWAIT) == 1;
}

// Keeps `fd` alive in one of several ways and closes it. "drop" keeps nothing: the innocent twin.
bool Keep(const char* how, int fd) {
  static int queue[2] = {-1, -1};
  bool kept = true;
  if (strcmp(how, "open") == 0) {
    return true;
  }
  if (strcmp(how, "map") == 0) {
    kept = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0) != MAP_FAILED;
  } else if (strcmp(how, "flight") == 0) {
    int ends[2];
    kept = socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0 && SendDescriptor(ends[0], fd);
    close(ends[0]);
  } else if (strcmp(how, "queue") == 0) {
    // All in one socket: only the first can be looked at from outside.
    kept = (queue[0] >= 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, queue) == 0) &&
           SendDescriptor(queue[0], fd);
  } else if (strcmp(how, "thread") == 0) {
    // A thread with a table of its own, which has a copy of every descriptor of this moment.
    constexpr size_t kStack = 65536;
    char* stack = static_cast<char*>(
        mmap(nullptr, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    kept = clone(
               [](void*) -> int {
                 while (true) {
                   pause();
                 }
               },
               stack + kStack, CLONE_VM | CLONE_FS | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM,
               nullptr) > 0;
  }
  close(fd);
  return kept;
}

// What is held stays for as long as argv[at] says, in seconds. A look comes every tenth of a second, but the machine may be
// busy: a test that expects one says more.
void Stay(int argc, char** argv, int at) {
  if (argc > at) {
    sleep(static_cast<unsigned>(atoi(argv[at])));
  } else {
    usleep(400000);
  }
}

// `hold-nameless DIR MIB HOW [SECONDS]`: files of 4 MiB that lose their names and stay.
int HoldNameless(int argc, char** argv) {
  if (argc < 4) {
    return 2;
  }
  const int most = atoi(argv[2]);
  int held = 0;
  for (; held < most; held += 4) {
    char path[512];
    snprintf(path, sizeof path, "%s/nameless-%d", argv[1], held);
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || unlink(path) != 0 || !WriteBlocks(fd, 4) || !Keep(argv[3], fd)) {
      Refused("hold", errno);
      return 0;
    }
    usleep(4000);
  }
  Open("hold", "%d MiB", held);
  Stay(argc, argv, 4);
  return 0;
}

// Locks on bytes of new files, from the end: each is put before those that are there.
bool TakeLocks(int files, long each, int command) {
  for (int file = 0; file < files; ++file) {
    const int fd = static_cast<int>(Call(SYS_memfd_create, "locks", 0));
    for (long i = each; i > 0; --i) {
      struct flock lock = {};
      lock.l_type = F_WRLCK;
      lock.l_start = i * 2;
      lock.l_len = 1;
      if (fcntl(fd, command, &lock) != 0) {
        return false;
      }
    }
  }
  return true;
}

// `hold-locks MIB HOW [OTHER [SECONDS]]`: locks of files, which are memory of the kernel (192 bytes each). In many files of many processes: the
// kernel compares a new lock with all others of its file.
int HoldLocks(int argc, char** argv) {
  if (argc < 3) {
    return 2;
  }
  constexpr int kProcesses = 16;
  constexpr int kFiles = 64;
  const long each = atol(argv[1]) * static_cast<long>(kMiB) / 192 / (kProcesses * kFiles);
  const int command = strcmp(argv[2], "posix") == 0 ? F_SETLK : F_OFD_SETLK;
  int ready[2];
  const size_t other = argc > 3 ? strtoul(argv[3], nullptr, 10) * kMiB : 0;
  void* pages =
      mmap(nullptr, other + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED || pipe(ready) != 0) {
    return 2;
  }
  memset(pages, 'o', other);
  for (int process = 0; process < kProcesses; ++process) {
    if (fork() == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
      const char answer = TakeLocks(kFiles, each, command) ? 'y' : 'n';
      (void)!write(ready[1], &answer, 1);
      pause();
      _exit(0);
    }
  }
  for (int process = 0; process < kProcesses; ++process) {
    char answer = 'n';
    if (read(ready[0], &answer, 1) != 1 || answer != 'y') {
      Refused("locks", errno);
      return 0;
    }
  }
  Open("locks", "%ld", each * kFiles * kProcesses);
  // A look comes every tenth of a second, but the machine may be busy, or emulated.
  sleep(argc > 4 ? static_cast<unsigned>(atoi(argv[4])) : 3);
  return 0;
}

// Shared memory without a descriptor: children touch it piece by piece, and no process that lives has a page of it. With
// "drop" there is as much of it, and hardly a page is touched. It may have a name.
void ShareMemory(int most, const char* how) {
  const size_t size = static_cast<size_t>(most) * kMiB;
  char* memory = static_cast<char*>(
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  if (memory == MAP_FAILED) {
    Refused("hide", errno);
    return;
  }
  if (strcmp(how, "shared-named") == 0) {
    prctl(0x53564d61 /* PR_SET_VMA */, 0, memory, size, "own");  // Linux 5.17
  }
  const size_t touched = strcmp(how, "shared-drop") == 0 ? 4096 : 4 * kMiB;
  for (size_t at = 0; at < size; at += 4 * kMiB) {
    const pid_t child = fork();
    if (child == 0) {
      memset(memory + at, 1, touched);
      _exit(0);
    }
    waitpid(child, nullptr, 0);
  }
  Open("hide", "%d MiB", most);
}

// `hide-memory MIB HOW [SECONDS]`: memory that is in no process's pages.
int HideMemory(int argc, char** argv) {
  if (argc < 3) {
    return 2;
  }
  const int most = atoi(argv[1]);
  const char* how = argv[2];
  if (strcmp(how, "undumpable") == 0) {
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    how = "open";
  }
  if (strncmp(how, "shared", 6) == 0) {
    ShareMemory(most, how);
    Stay(argc, argv, 3);
    return 0;
  }
  if (strcmp(how, "tables") == 0) {
    // One page read in every 2 MiB: a page table each, and nothing in them but the page of zeros.
    const size_t step = 2 * kMiB;
    const size_t count = static_cast<size_t>(most) * 256;
    char* base = static_cast<char*>(
        mmap(nullptr, step * count, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (base == MAP_FAILED) {
      Refused("hide", errno);
      return 0;
    }
    madvise(base, step * count, MADV_NOHUGEPAGE);
    unsigned sum = 0;
    for (size_t i = 0; i < count; ++i) {
      sum += static_cast<unsigned char>(*static_cast<volatile char*>(base + i * step));
      if (i % 1024 == 0) {
        usleep(2000);
      }
    }
    Open("hide", "%d MiB %u", most, sum);
    Stay(argc, argv, 3);
    return 0;
  }
  if (strcmp(how, "thread") == 0) {
    // The first thread ends: /proc/PID shows a zombie without memory, and another thread goes on.
    static size_t wanted;
    static unsigned stays;
    wanted = static_cast<size_t>(most);
    stays = argc > 3 ? static_cast<unsigned>(atoi(argv[3])) : 1;
    pthread_t other;
    pthread_create(
        &other, nullptr,
        [](void*) -> void* {
          usleep(50000);  // the first one is gone by now
          for (size_t i = 0; i < wanted; i += 4) {
            char* piece = static_cast<char*>(mmap(nullptr, 4 * kMiB, PROT_READ | PROT_WRITE,
                                                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
            if (piece == MAP_FAILED) {
              break;
            }
            memset(piece, 1, 4 * kMiB);
            usleep(2000);
          }
          Open("hide");
          sleep(stays);
          _exit(0);
        },
        nullptr);
    Call(SYS_exit, 0);
  }
  if (strcmp(how, "sockets") == 0) {
    // A few processes, because each may hold only so many descriptors.
    for (int child = 0; child < 16; ++child) {
      if (fork() == 0) {
        for (int i = 0; i < most * 4 / 16; ++i) {
          int ends[2];
          if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) {
            break;
          }
          while (send(ends[0], block, 65536, MSG_DONTWAIT) > 0) {
          }
        }
        sleep(2);
        _exit(0);
      }
    }
    while (wait(nullptr) > 0) {
    }
    Open("hide");
    return 0;
  }
  for (int held = 0; held < most; held += 4) {
    const int fd = static_cast<int>(Call(SYS_memfd_create, "hidden", 0));
    if (fd < 0 || !WriteBlocks(fd, 4) || !Keep(how, fd)) {
      Refused("hide", errno);
      return 0;
    }
    usleep(2000);
  }
  Open("hide", "%d MiB", most);
  Stay(argc, argv, 3);
  return 0;
}

long CpuMillis() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return used.tv_sec * 1000 + used.tv_nsec / 1000000;
}

// `spin-forgotten MILLIS CHILDREN`: one child after the other spins; their parent does not want to hear of them, so the
// kernel forgets their time.
int SpinForgotten(int argc, char** argv) {
  if (argc < 3) {
    return 2;
  }
  signal(SIGCHLD, SIG_IGN);
  const long millis = atol(argv[1]);
  for (int i = 0; i < atoi(argv[2]); ++i) {
    const pid_t child = fork();
    if (child == 0) {
      while (CpuMillis() < millis) {
      }
      _exit(0);
    }
    waitpid(child, nullptr, 0);  // returns when it is gone, and says ECHILD
  }
  Open("spin", "parent %ld ms", CpuMillis());
  return 0;
}

// `write-orphaned DIR MIB`: children of children write, sync and delete; their parents are gone.
int WriteOrphaned(int argc, char** argv) {
  if (argc < 3) {
    return 2;
  }
  for (int written = 0; written < atoi(argv[2]); written += 4) {
    int done[2];
    if (pipe(done) != 0) {
      return 3;
    }
    const pid_t middle = fork();
    if (middle == 0) {
      if (fork() == 0) {
        char path[512];
        snprintf(path, sizeof path, "%s/orphan-%d", argv[1], written);
        const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        const bool wrote = WriteBlocks(fd, 4) && fsync(fd) == 0;
        unlink(path);
        close(done[0]);
        _exit(wrote && write(done[1], "x", 1) == 1 ? 0 : 1);
      }
      _exit(0);
    }
    waitpid(middle, nullptr, 0);
    close(done[1]);
    char byte = 0;
    if (read(done[0], &byte, 1) != 1) {
      Refused("write", errno);
      return 0;
    }
    close(done[0]);
  }
  usleep(200000);  // what is still ending when the first process has ended is not waited for
  Open("write");
  return 0;
}

// `dig DIR LEVELS NAME_LENGTH`: a chain of directories, made from below by renaming; closed ones beside it.
int Dig(int argc, char** argv) {
  if (argc < 4 || chdir(argv[1]) != 0) {
    Refused("chdir", errno);
    return 0;
  }
  char name[256] = {};
  memset(name, 'd', static_cast<size_t>(atoi(argv[3])) % sizeof name);
  char inner[512];
  snprintf(inner, sizeof inner, "next/%s", name);
  int made = mkdir("chain", 0700) == 0 ? 1 : 0;
  while (made < atoi(argv[2]) && mkdir("next", 0700) == 0 && rename("chain", inner) == 0 &&
         rename("next", "chain") == 0) {
    ++made;
  }
  Say("levels %d", made);
  if (made < atoi(argv[2])) {
    Refused("dig", errno);
  } else {
    Open("dig");
  }
  return 0;
}

// `close-dirs DIR`: directories that their own owner may not enter, with something in them.
int CloseDirs(int argc, char** argv) {
  if (argc < 2 || chdir(argv[1]) != 0) {
    return 2;
  }
  for (const mode_t mode : {0U, 0100U, 0400U}) {
    char path[64];
    snprintf(path, sizeof path, "closed-%o", mode);
    char below[128];
    snprintf(below, sizeof below, "%s/below", path);
    if (mkdir(path, 0700) != 0 || mkdir(below, 0) != 0 || chmod(path, mode) != 0) {
      Refused("close", errno);
      return 0;
    }
  }
  Open("close");
  usleep(400000);
  return 0;
}

constexpr Verb kVerbs[] = {
    {"hold-nameless", HoldNameless, "DIR MIB open|map|flight|queue|thread|drop [SECONDS]"},
    {"hold-locks", HoldLocks, "MIB posix|description [MIB of other memory [SECONDS]]"},
    {"hide-memory", HideMemory,
     "MIB open|undumpable|map|flight|sockets|tables|thread|shared|shared-named|shared-drop|drop "
     "[SECONDS]"},
    {"spin-forgotten", SpinForgotten, "MILLIS CHILDREN"},
    {"write-orphaned", WriteOrphaned, "DIR MIB"},
    {"dig", Dig, "DIR LEVELS NAME_LENGTH"},
    {"close-dirs", CloseDirs, "DIR"},
};

}  // namespace

std::span<const Verb> HidingVerbs() { return kVerbs; }

}  // namespace probe
