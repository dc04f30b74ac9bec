// SPDX-License-Identifier: Apache-2.0
//
// Sockets of every family, interfaces, and connections that must not leave.
#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "probe.h"

namespace probe {
namespace {

struct Named {
  const char* name;
  int value;
};
constexpr Named kTypes[] = {{"stream", SOCK_STREAM},
                            {"dgram", SOCK_DGRAM},
                            {"raw", SOCK_RAW},
                            {"seqpacket", SOCK_SEQPACKET}};

int TypeOf(const char* text) {
  for (const Named& type : kTypes) {
    if (strcmp(type.name, text) == 0) {
      return type.value;
    }
  }
  return atoi(text);
}

// `socket FAMILY TYPE [PROTOCOL]`
int Socket(int argc, char** argv) {
  if (argc < 3) {
    return 2;
  }
  const int fd =
      socket(atoi(argv[1]), TypeOf(argv[2]) | SOCK_CLOEXEC, argc > 3 ? atoi(argv[3]) : 0);
  Verdict(nullptr, fd);
  return 0;
}

// `socket-sweep`: families 0 to 45, every type; prints "family F type T" for each that opens.
int SocketSweep(int, char**) {
  int opened = 0;
  for (int family = 0; family <= 45; ++family) {
    for (const Named& type : kTypes) {
      for (const int protocol : {0, 1 /* ICMP, and netlink's first user protocol */}) {
        const int fd = socket(family, type.value | SOCK_CLOEXEC, protocol);
        if (fd >= 0) {
          Say("family %d type %s protocol %d", family, type.name, protocol);
          ++opened;
          close(fd);
        }
      }
    }
  }
  Say("total %d", opened);
  return 0;
}

// `tcp-fastopen ADDRESS PORT`: connects without connect(), by sending and by an option.
int FastOpen(int argc, char** argv) {
  if (argc < 3) {
    return 2;
  }
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(atoi(argv[2])));
  inet_pton(AF_INET, argv[1], &address.sin_addr);
  const auto* to = reinterpret_cast<const sockaddr*>(&address);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int other = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || other < 0) {
    Refused("socket", errno);
    return 0;
  }
  const timeval soon = {2, 0};
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof soon);
  setsockopt(other, SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof soon);
  Verdict("send", sendto(fd, "x", 1, MSG_FASTOPEN | MSG_NOSIGNAL, to, sizeof address));
  const int on = 1;
  constexpr int kFastOpenConnect = 30;  // TCP_FASTOPEN_CONNECT
  setsockopt(other, IPPROTO_TCP, kFastOpenConnect, &on, sizeof on);
  if (connect(other, to, sizeof address) != 0) {
    Refused("connect", errno);
    return 0;
  }
  Verdict("option", send(other, "x", 1, MSG_NOSIGNAL));
  return 0;
}

// `tcp ADDRESS PORT`, `udp ADDRESS PORT`: connects (and sends one byte), at most two seconds.
int Reach(int argc, char** argv) {
  if (argc < 3) {
    return 2;
  }
  const bool tcp = strcmp(argv[0], "tcp") == 0;
  const bool six = strchr(argv[1], ':') != nullptr;
  const int fd = socket(six ? AF_INET6 : AF_INET,
                        (tcp ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) {
    Refused("socket", errno);
    return 0;
  }
  sockaddr_storage storage = {};
  socklen_t length = sizeof(sockaddr_in);
  if (six) {
    auto* address = reinterpret_cast<sockaddr_in6*>(&storage);
    address->sin6_family = AF_INET6;
    address->sin6_port = htons(static_cast<uint16_t>(atoi(argv[2])));
    inet_pton(AF_INET6, argv[1], &address->sin6_addr);
    length = sizeof(sockaddr_in6);
  } else {
    auto* address = reinterpret_cast<sockaddr_in*>(&storage);
    address->sin_family = AF_INET;
    address->sin_port = htons(static_cast<uint16_t>(atoi(argv[2])));
    inet_pton(AF_INET, argv[1], &address->sin_addr);
  }
  if (connect(fd, reinterpret_cast<sockaddr*>(&storage), length) != 0) {
    if (errno != EINPROGRESS) {
      Refused("connect", errno);
      return 0;
    }
    pollfd wait = {fd, POLLOUT, 0};
    if (poll(&wait, 1, 2000) <= 0) {
      Refused("connect", ETIMEDOUT);
      return 0;
    }
    int error_number = 0;
    socklen_t size = sizeof error_number;
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &error_number, &size);
    if (error_number != 0) {
      Refused("connect", error_number);
      return 0;
    }
  }
  Verdict("send", send(fd, "x", 1, MSG_NOSIGNAL));
  return 0;
}

// `interfaces`: by index through an ioctl; needs neither netlink nor /proc.
int Interfaces(int, char**) {
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  }
  if (fd < 0) {
    Refused("socket", errno);
    return 0;
  }
  for (int index = 1; index <= 256; ++index) {
    struct ifreq request = {};
    request.ifr_ifindex = index;
    if (ioctl(fd, SIOCGIFNAME, &request) == 0) {
      Say("interface %s", request.ifr_name);
    }
  }
  Say("done");
  return 0;
}

constexpr Verb kVerbs[] = {
    {"socket", Socket, "FAMILY stream|dgram|raw|seqpacket [PROTOCOL]"},
    {"socket-sweep", SocketSweep, ""},
    {"tcp", Reach, "ADDRESS PORT"},
    {"tcp-fastopen", FastOpen, "ADDRESS PORT"},
    {"udp", Reach, "ADDRESS PORT"},
    {"interfaces", Interfaces, ""},
};

}  // namespace

std::span<const Verb> NetVerbs() { return kVerbs; }

}  // namespace probe
