// SPDX-License-Identifier: Apache-2.0
//
// How many small requests the gateway answers on one core, and what it holds afterwards.
//
// The server is a process of its own with a service that does nothing; the client keeps some connections open and has
// one request on each of them at any time (no pipelining). "per core" is requests over the CPU time the server used, which is what a
// core of its own would give: the client and the rest of the machine do not count.
// Usage: bench_gateway [SECONDS] [CONNECTIONS]
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/server.h"
#include "net/loop.h"
#include "tests/gateway/fake_service.h"

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::string_view kRequest = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";

// Runs the server until it is killed; writes its port to `out`.
[[noreturn]] void Serve(int out) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  cpu_set_t core;
  CPU_ZERO(&core);
  CPU_SET(0, &core);
  ::sched_setaffinity(0, sizeof(core), &core);
  auto loop = coffer::net::MakeLoop();
  coffer::gateway::FakeService service;
  coffer::gateway::ServerConfig config;
  config.tcp.emplace_back();
  auto server = coffer::gateway::Server::Open(*loop, service, std::move(config));
  if (!server.ok()) {
    std::fprintf(stderr, "%s\n", server.error().message.c_str());
    std::_Exit(1);
  }
  const uint16_t port = (*server)->ports().front();
  if (::write(out, &port, sizeof(port)) != sizeof(port)) {
    std::_Exit(1);
  }
  loop->Run();
  std::_Exit(0);
}

// VmRSS in KiB.
long ResidentKib(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) {
      return std::atol(line.c_str() + 6);
    }
  }
  return 0;
}

// User and system time of the process, in seconds.
double CpuSeconds(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  const char* at = text.c_str() + text.rfind(')') + 1;
  std::array<unsigned long, 2> ticks{};
  std::sscanf(at, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &ticks[0], &ticks[1]);
  return static_cast<double>(ticks[0] + ticks[1]) / static_cast<double>(::sysconf(_SC_CLK_TCK));
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
    std::perror("connect");
    std::exit(1);
  }
  return fd;
}

void SendOne(int fd) {
  if (::send(fd, kRequest.data(), kRequest.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(kRequest.size())) {
    std::perror("send");
    std::exit(1);
  }
}

// One answer per connection and turn; returns how many there were. An answer fits in one segment.
size_t Drive(int poll, size_t at_most, Clock::time_point until) {
  std::array<epoll_event, 64> events;
  std::array<char, 4096> buffer;
  size_t answers = 0;
  while (answers < at_most && Clock::now() < until) {
    const int ready = ::epoll_wait(poll, events.data(), events.size(), 1000);
    for (int i = 0; i < ready; ++i) {
      const int fd = events[static_cast<size_t>(i)].data.fd;
      const ssize_t count = ::recv(fd, buffer.data(), buffer.size(), 0);
      if (count < 15 || std::memcmp(buffer.data(), "HTTP/1.1 200 OK", 15) != 0) {
        std::fprintf(stderr, "an answer that is none\n");
        std::exit(1);
      }
      ++answers;
      SendOne(fd);
    }
  }
  return answers;
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 5;
  const int connections = argc > 2 ? std::atoi(argv[2]) : 32;
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) {
    return 1;
  }
  const pid_t server = ::fork();
  if (server == 0) {
    Serve(pipe[1]);
  }
  uint16_t port = 0;
  if (::read(pipe[0], &port, sizeof(port)) != sizeof(port)) {
    return 1;
  }
  const int poll = ::epoll_create1(EPOLL_CLOEXEC);
  for (int i = 0; i < connections; ++i) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = Connect(port);
    ::epoll_ctl(poll, EPOLL_CTL_ADD, event.data.fd, &event);
    SendOne(event.data.fd);
  }
  const auto never = Clock::time_point::max();
  Drive(poll, 10'000, never);
  const long after_10k = ResidentKib(server);

  const double cpu_before = CpuSeconds(server);
  const auto began = Clock::now();
  const size_t answers = Drive(
      poll, SIZE_MAX,
      began + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds)));
  const double wall = std::chrono::duration<double>(Clock::now() - began).count();
  const double cpu = CpuSeconds(server) - cpu_before;

  Drive(poll, 90'000, never);
  std::printf(
      "{\"requests\": %zu, \"connections\": %d, \"per_second\": %.0f, \"server_cpu_seconds\": "
      "%.2f, "
      "\"per_core_second\": %.0f, \"rss_kib_after_10000\": %ld, \"rss_kib_at_end\": %ld}\n",
      answers, connections, static_cast<double>(answers) / wall, cpu,
      static_cast<double>(answers) / cpu, after_10k, ResidentKib(server));
  ::kill(server, SIGKILL);
  ::waitpid(server, nullptr, 0);
  return 0;
}
