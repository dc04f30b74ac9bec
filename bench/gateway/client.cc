// SPDX-License-Identifier: Apache-2.0
#include "bench/gateway/client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

namespace coffer::bench {
namespace {

constexpr std::string_view kHealth = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";

[[noreturn]] void Fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

int Connect(uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    Fail("connect");
  }
  return fd;
}

void Send(int fd, std::string_view bytes) {
  if (::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(bytes.size())) {
    Fail("send");
  }
}

// Whether head and body are there.
bool Complete(const std::string& answer) {
  const size_t end = answer.find("\r\n\r\n");
  const size_t length = answer.find("Content-Length: ");
  return end != std::string::npos && length < end &&
         answer.size() >= end + 4 + std::strtoul(answer.c_str() + length + 16, nullptr, 10);
}

}  // namespace

Client::Client(uint16_t port, std::string key) : fd_(Connect(port)), key_(std::move(key)) {}
Client::~Client() { ::close(fd_); }

std::string Client::Post(const std::string& path, const std::string& body) {
  Send(fd_, "POST " + path + " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + key_ +
                "\r\nContent-Type: application/json\r\nContent-Length: " +
                std::to_string(body.size()) + "\r\n\r\n" + body);
  std::string answer;
  std::array<char, 8192> piece;
  while (!Complete(answer)) {
    const ssize_t got = ::recv(fd_, piece.data(), piece.size(), 0);
    if (got <= 0) {
      std::fprintf(stderr, "the daemon closed the connection after: %s\n", answer.c_str());
      std::exit(1);
    }
    answer.append(piece.data(), static_cast<size_t>(got));
  }
  return answer;
}

size_t AskHealth(uint16_t port, int connections, std::chrono::steady_clock::time_point until) {
  const int poll = ::epoll_create1(EPOLL_CLOEXEC);
  std::vector<int> open;
  for (int i = 0; i < connections; ++i) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = Connect(port);
    open.push_back(event.data.fd);
    ::epoll_ctl(poll, EPOLL_CTL_ADD, event.data.fd, &event);
    Send(event.data.fd, kHealth);
  }
  std::array<epoll_event, 64> events;
  std::array<char, 4096> buffer;
  size_t answers = 0;
  while (std::chrono::steady_clock::now() < until) {
    const int ready = ::epoll_wait(poll, events.data(), events.size(), 1000);
    for (int i = 0; i < ready; ++i) {
      const int fd = events[static_cast<size_t>(i)].data.fd;
      const ssize_t count = ::recv(fd, buffer.data(), buffer.size(), 0);
      if (count < 15 || std::memcmp(buffer.data(), "HTTP/1.1 200 OK", 15) != 0) {
        std::fprintf(stderr, "an answer that is none\n");
        std::exit(1);
      }
      ++answers;
      Send(fd, kHealth);
    }
  }
  for (const int fd : open) {
    ::close(fd);
  }
  ::close(poll);
  return answers;
}

}  // namespace coffer::bench
