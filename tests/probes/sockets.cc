// SPDX-License-Identifier: Apache-2.0
//
// Ways to a UNIX socket of the host that do not look like connect(2) with a plain path.
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>

#include "probe.h"

namespace probe {
namespace {

sockaddr_un AddressOf(const char* path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  strncpy(address.sun_path, path, sizeof address.sun_path - 1);
  return address;
}

// The same message by every call that takes an address. None waits: a queue holds about ten.
void SendAll(const char* what, int fd, const sockaddr_un& address) {
  char label[64];
  if (fd < 0) {
    Refused(what, errno);
    return;
  }
  char byte = 'x';
  iovec data = {&byte, 1};
  msghdr message = {};
  message.msg_name = const_cast<sockaddr_un*>(&address);
  message.msg_namelen = sizeof address;
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  mmsghdr many = {message, 0};
  snprintf(label, sizeof label, "%s-sendto", what);
  Verdict(label, sendto(fd, &byte, 1, MSG_DONTWAIT, reinterpret_cast<const sockaddr*>(&address),
                        sizeof address));
  snprintf(label, sizeof label, "%s-sendmsg", what);
  Verdict(label, sendmsg(fd, &message, MSG_DONTWAIT));
  snprintf(label, sizeof label, "%s-sendmmsg", what);
  const int sent = sendmmsg(fd, &many, 1, MSG_DONTWAIT);
  Verdict(label, sent == 1 ? 1 : -1);
  snprintf(label, sizeof label, "%s-connect", what);
  long answer = connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  if (answer == 0) {
    answer = send(fd, &byte, 1, MSG_DONTWAIT);
  }
  Verdict(label, answer);
  close(fd);
}

// `unix-datagrams PATH`: from a socket and from both kinds of pairs.
int UnixDatagrams(int argc, char** argv) {
  if (argc < 2) {
    return 2;
  }
  const sockaddr_un address = AddressOf(argv[1]);
  SendAll("socket", socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), address);
  // SOCK_RAW is SOCK_DGRAM by another name.
  const int raw = socket(AF_UNIX, SOCK_RAW | SOCK_CLOEXEC, 0);
  Verdict("raw", raw < 0 ? raw
                         : sendto(raw, "x", 1, MSG_DONTWAIT,
                                  reinterpret_cast<const sockaddr*>(&address), sizeof address));
  for (const int type : {SOCK_DGRAM, SOCK_SEQPACKET}) {
    int ends[2] = {-1, -1};
    const char* name = type == SOCK_DGRAM ? "pair" : "seqpacket";
    if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) != 0) {
      Refused(name, errno);
      continue;
    }
    SendAll(name, ends[0], address);
  }
  return 0;
}

// `unix-inherited PATH`: by every descriptor that it was started with.
int UnixInherited(int argc, char** argv) {
  if (argc < 2) {
    return 2;
  }
  const sockaddr_un address = AddressOf(argv[1]);
  for (int fd = 0; fd < 64; ++fd) {
    if (sendto(fd, "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&address),
               sizeof address) == 1) {
      Open("inherited", "descriptor %d", fd);
    }
  }
  Say("tried");
  return 0;
}

struct Flip {
  sockaddr_un own;
  sockaddr_un host;
  const char* link;
  volatile bool end;
  volatile char* shown;  // what connect reads
};

// Exchanges the address in memory, and what a link leads to, as fast as it can.
void* FlipForEver(void* given) {
  auto* flip = static_cast<Flip*>(given);
  char fresh[120];
  snprintf(fresh, sizeof fresh, "%s.new", flip->link);
  for (unsigned i = 0; !flip->end; ++i) {
    const sockaddr_un& next = (i & 1) != 0 ? flip->own : flip->host;
    for (size_t at = 0; at < sizeof next; ++at) {
      flip->shown[at] = reinterpret_cast<const char*>(&next)[at];
    }
    if ((i & 15) == 0) {
      unlink(fresh);
      if (symlink((i & 16) != 0 ? flip->own.sun_path : flip->host.sun_path, fresh) == 0) {
        rename(fresh, flip->link);
      }
    }
  }
  return nullptr;
}

// `unix-race OWN HOST LINK SECONDS`: listens at OWN and connects to an address that changes under the call. Prints how
// often it reached itself; the owner of HOST knows how often it was reached.
int UnixRace(int argc, char** argv) {
  if (argc < 5) {
    return 2;
  }
  static Flip flip = {};
  static sockaddr_un shown = {};
  flip.own = AddressOf(argv[1]);
  flip.host = AddressOf(argv[2]);
  flip.link = argv[3];
  flip.shown = reinterpret_cast<volatile char*>(&shown);
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  unlink(argv[1]);
  if (bind(listener, reinterpret_cast<const sockaddr*>(&flip.own), sizeof flip.own) != 0 ||
      listen(listener, 64) != 0) {
    Refused("listen", errno);
    return 0;
  }
  shown = flip.own;
  pthread_t thread;
  if (pthread_create(&thread, nullptr, FlipForEver, &flip) != 0) {
    return 1;
  }
  const sockaddr_un link = AddressOf(argv[3]);
  const time_t end = time(nullptr) + atoi(argv[4]);
  long tries = 0;
  long own = 0;
  while (time(nullptr) < end) {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const sockaddr_un& address = (tries & 1) != 0 ? link : shown;
    connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    close(fd);
    const int came = accept(listener, nullptr, nullptr);
    if (came >= 0) {
      ++own;
      close(came);
    }
    ++tries;
  }
  flip.end = true;
  pthread_join(thread, nullptr);
  Say("own %ld tries %ld", own, tries);
  return 0;
}

// `bind-unix PATH`: makes a socket there.
int BindUnix(int argc, char** argv) {
  const sockaddr_un address = AddressOf(argc > 1 ? argv[1] : "/none");
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  Verdict(nullptr, bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address));
  return 0;
}

#ifndef SO_PASSPIDFD
#define SO_PASSPIDFD 76  // Linux 6.5
#endif

// A socket whose every peek brings a descriptor along, with another one in flight. With "peek" it looks itself, a hundred
// times, and counts; otherwise it waits to be looked at.
int PassPidfd(int argc, char** argv) {
  int ends[2];
  const int on = 1;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0 ||
      setsockopt(ends[1], SOL_SOCKET, SO_PASSPIDFD, &on, sizeof on) != 0) {
    Refused("pidfd", errno);
    return 1;
  }
  alignas(cmsghdr) char control[256] = {};
  char byte = 'x';
  iovec data{&byte, 1};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = CMSG_SPACE(sizeof(int));
  cmsghdr* const rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(rights), &ends[0], sizeof(int));
  if (sendmsg(ends[0], &message, 0) != 1) {
    Refused("send", errno);
    return 1;
  }
  if (argc > 1 && strcmp(argv[1], "peek") == 0) {
    const int before = dup(1);
    close(before);
    for (int i = 0; i < 20; ++i) {
      message.msg_controllen = sizeof control;
      (void)!recvmsg(ends[1], &message, MSG_PEEK);
    }
    const int after = dup(1);
    Open("peek", "%d descriptors", after - before);
    return 0;
  }
  Say("ready");
  sleep(30);
  return 0;
}

constexpr Verb kVerbs[] = {
    {"pass-pidfd", PassPidfd, "[peek]"},       {"unix-datagrams", UnixDatagrams, "PATH"},
    {"unix-inherited", UnixInherited, "PATH"}, {"unix-race", UnixRace, "OWN HOST LINK SECONDS"},
    {"bind-unix", BindUnix, "PATH"},
};

}  // namespace

std::span<const Verb> SocketVerbs() { return kVerbs; }

}  // namespace probe
