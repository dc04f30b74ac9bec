// SPDX-License-Identifier: Apache-2.0
//
// Ways to meet a process of the host: sockets with and without a path, System V and POSIX IPC.
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>

#include "probe.h"

namespace probe {
namespace {

void Connect(const char* label, const char* name, bool abstract) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    Refused(label, errno);
    return;
  }
  struct sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  strncpy(address.sun_path + (abstract ? 1 : 0), name, sizeof address.sun_path - 2);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + strlen(name) + 1);
  Verdict(label, connect(fd, reinterpret_cast<sockaddr*>(&address), length));
  close(fd);
}

int ConnectUnix(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    Connect(nullptr, argv[i], false);
  }
  return 0;
}

int AbstractUnix(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    Connect(nullptr, argv[i], true);
  }
  return 0;
}

// `pair-datagram PATH`: an end of a datagram pair that sends elsewhere, and one that connects elsewhere.
int PairDatagram(int argc, char** argv) {
  int ends[2];
  if (argc < 2 || socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends) != 0) {
    Refused("pair", errno);
    return 0;
  }
  struct sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  strncpy(address.sun_path, argv[1], sizeof address.sun_path - 1);
  const auto* to = reinterpret_cast<const sockaddr*>(&address);
  Verdict("send", sendto(ends[0], "x", 1, MSG_DONTWAIT, to, sizeof address));
  Verdict("connect", connect(ends[1], to, sizeof address));
  return 0;
}

// `locks FILE`: every kind of lock that a reader can take. None of them waits.
int Locks(int argc, char** argv) {
  const int file = argc < 2 ? -1 : open(argv[1], O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    Refused("open", errno);
    return 0;
  }
  Verdict("exclusive", flock(file, LOCK_EX | LOCK_NB));
  Verdict("shared", flock(file, LOCK_SH | LOCK_NB));
  struct flock range = {};
  range.l_type = F_RDLCK;
  Verdict("posix", fcntl(file, F_SETLK, &range));
  Verdict("ofd", fcntl(file, F_OFD_SETLK, &range));
  return 0;
}

int exchanged = -1;
int exchanged_for[2] = {-1, -1};
std::atomic<bool> exchanging{true};

void* ExchangeDescriptor(void*) {
  for (unsigned round = 0; exchanging; ++round) {
    dup2(exchanged_for[round % 2], exchanged);
  }
  return nullptr;
}

// `lock-race FILE OTHER`: locks a descriptor exclusively while another thread makes it lead to the one file and to the other.
int LockRace(int argc, char** argv) {
  for (int i = 0; i < 2; ++i) {
    exchanged_for[i] = argc < 3 ? -1 : open(argv[i + 1], O_RDONLY | O_CLOEXEC);
    if (exchanged_for[i] < 0) {
      Refused("open", errno);
      return 0;
    }
  }
  exchanged = dup(exchanged_for[1]);
  pthread_t thread;
  if (pthread_create(&thread, nullptr, ExchangeDescriptor, nullptr) != 0) {
    Refused("thread", EAGAIN);
    return 0;
  }
  for (int round = 0; round < 500; ++round) {
    flock(exchanged, LOCK_EX | LOCK_NB);
    usleep(1000);
    flock(exchanged_for[0], LOCK_UN);
    flock(exchanged_for[1], LOCK_UN);
  }
  exchanging = false;
  pthread_join(thread, nullptr);
  printf("raced\n");
  return 0;
}

const char* crowded = nullptr;
std::atomic<int> turned_away{0};

void* WaitForLock(void*) {
  const int file = open(crowded, O_RDONLY | O_CLOEXEC);
  if (flock(file, LOCK_EX) != 0 && errno == ENOLCK) {
    ++turned_away;
  }
  return nullptr;
}

// `lock-crowd FILE N SECONDS`: N threads wait for an exclusive lock that another holds. Says whether any was turned away, as soon as there
// is one; the others wait on.
int LockCrowd(int argc, char** argv) {
  if (argc < 4) {
    return 2;
  }
  crowded = argv[1];
  const int wanted = atoi(argv[2]);
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 256 * 1024);
  for (int i = 0; i < wanted; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, &small, WaitForLock, nullptr) != 0) {
      Refused("thread", EAGAIN);
      return 0;
    }
  }
  for (int tries = 0; tries < 100 * atoi(argv[3]) && turned_away == 0; ++tries) {
    usleep(10000);
  }
  printf("turned away: %s\n", turned_away > 0 ? "some" : "none");
  fflush(stdout);
  _exit(0);
}

// `sysv-shm KEY`: attaches a segment that somebody else made.
int SysvShm(int argc, char** argv) {
  const key_t key = argc > 1 ? static_cast<key_t>(strtol(argv[1], nullptr, 0)) : 1;
  const int id = shmget(key, 1, 0);
  if (id < 0) {
    Refused(nullptr, errno);
    return 0;
  }
  const void* at = shmat(id, nullptr, SHM_RDONLY);
  if (at == reinterpret_cast<void*>(-1)) {
    Refused(nullptr, errno);
    return 0;
  }
  Open(nullptr, "%.32s", static_cast<const char*>(at));
  return 0;
}

int SysvCreate(int argc, char** argv) {
  const key_t key = argc > 1 ? static_cast<key_t>(strtol(argv[1], nullptr, 0)) : 1;
  Verdict(nullptr, shmget(key, 4096, IPC_CREAT | 0666));
  return 0;
}

// `mq NAME`: opens a queue that somebody else made.
int Mq(int argc, char** argv) {
  Verdict(nullptr, mq_open(argc > 1 ? argv[1] : "/none", O_RDONLY));
  return 0;
}

// `shm-open NAME`: POSIX shared memory of the host.
int ShmOpen(int argc, char** argv) {
  Verdict(nullptr, shm_open(argc > 1 ? argv[1] : "/none", O_RDONLY, 0));
  return 0;
}

// `scm-receive`: descriptor 0 is a socket on which somebody may offer a descriptor.
int ScmReceive(int, char**) {
  char byte = 0;
  struct iovec data = {&byte, 1};
  char control[CMSG_SPACE(sizeof(int))] = {};
  struct msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const long got = recvmsg(0, &message, MSG_DONTWAIT);
  if (got < 0) {
    Refused(nullptr, errno);
    return 0;
  }
  const cmsghdr* head = CMSG_FIRSTHDR(&message);
  if (head != nullptr && head->cmsg_type == SCM_RIGHTS) {
    Open(nullptr, "descriptor received");
  } else {
    Say("NOTHING");
  }
  return 0;
}

constexpr Verb kVerbs[] = {
    {"connect-unix", ConnectUnix, "PATH..."},
    {"abstract-unix", AbstractUnix, "NAME..."},
    {"pair-datagram", PairDatagram, "PATH"},
    {"locks", Locks, "FILE"},
    {"lock-race", LockRace, "FILE OTHER"},
    {"lock-crowd", LockCrowd, "FILE N SECONDS"},
    {"sysv-shm", SysvShm, "KEY"},
    {"sysv-create", SysvCreate, "KEY"},
    {"mq", Mq, "NAME"},
    {"shm-open", ShmOpen, "NAME"},
    {"scm-receive", ScmReceive, ""},
};

}  // namespace

std::span<const Verb> IpcVerbs() { return kVerbs; }

}  // namespace probe
