// SPDX-License-Identifier: Apache-2.0
#include "bench/gateway/fairness.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <new>
#include <string_view>
#include <thread>

namespace coffer::bench {
namespace {

double Percentile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1,
                         static_cast<size_t>(share * static_cast<double>(values.size())))];
}

constexpr in_addr_t kHere = INADDR_LOOPBACK;
constexpr in_addr_t kElsewhere = INADDR_LOOPBACK + 1;  // as from another machine
// One address has 28,000 ports, and closed connections keep theirs for a minute. A thousand a second use them up within
// half a minute. From then on the kernel searches all of them for each connect, with interrupts held back: the attacker's
// own work, which in use happens on another machine.
constexpr in_addr_t kMachines = 200;

int Connect(uint16_t port, in_addr_t from = kHere) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(from);
  const int on = 1;
  (void)::setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
  (void)::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    ::close(fd);
    return -1;
  }
  return fd;
}

void SendAll(int fd, const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const ssize_t sent = ::send(fd, text.data() + at, text.size() - at, MSG_NOSIGNAL);
    if (sent <= 0) {
      return;
    }
    at += static_cast<size_t>(sent);
  }
}

std::string Head(const FairnessTarget& target, const std::string& first, const std::string& more) {
  return first + " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + target.hostile_key +
         "\r\n" + more + "\r\n";
}

// Requests whose clients leave, answers that are not read, bodies of a megabyte; forty connections at any time. All of it
// asks for the list of 500 tools.
[[noreturn]] void Attack(const FairnessTarget& target, std::atomic<uint64_t>* sent,
                         std::chrono::microseconds pause) {
  const sched_param none{};
  (void)::sched_setscheduler(0, SCHED_IDLE, &none);
  const std::string get = Head(target, "GET /v1/tools", "");
  const std::string body =
      R"({"tool":"python","args":{"code":")" + std::string(1'000'000, 'x') + "\"";
  const std::string post =
      Head(target, "POST /v1/calls",
           "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
               "\r\n") +
      body;
  std::vector<int> unread;
  auto due = std::chrono::steady_clock::now();
  for (unsigned round = 0;; ++round) {
    std::this_thread::sleep_until(due);
    due = std::max(due + pause, std::chrono::steady_clock::now() - pause * 100);
    const int fd = Connect(target.port, kElsewhere + round % kMachines);
    if (fd < 0) {
      continue;
    }
    if (round % 50 == 0) {
      SendAll(fd, post);
      ::close(fd);
    } else {
      SendAll(fd, get);
      unread.push_back(fd);
    }
    ++*sent;
    if (unread.size() >= 40) {
      for (const int old : unread) {
        ::close(old);
      }
      unread.clear();
    }
  }
}

[[noreturn]] void AskOften(const FairnessTarget& target, std::atomic<uint64_t>* sent) {
  Attack(target, sent, std::chrono::milliseconds(2));
}
// Most of what this costs is the kernel's work for connections, which counts for no tenant.
[[noreturn]] void AskWithoutEnd(const FairnessTarget& target, std::atomic<uint64_t>* sent) {
  Attack(target, sent, std::chrono::microseconds(0));
}

[[noreturn]] void BurnCpu(const FairnessTarget&, std::atomic<uint64_t>*) {
  for (;;) {
    asm volatile("");
  }
}

[[noreturn]] void SyncDisk(const FairnessTarget& target, std::atomic<uint64_t>* sent) {
  const std::string file = target.directory + "/synced";
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  const std::string block(1 << 20, 'x');
  for (;;) {
    (void)!::pwrite(fd, block.data(), block.size(), 0);
    ::fsync(fd);
    ++*sent;
  }
}

struct Trouble {
  const char* what;
  void (*make)(const FairnessTarget&, std::atomic<uint64_t>*);
  unsigned processes;
};

// Asks /healthz, each time on a connection of its own, as probes do. A prober runs on another machine: its own wait for a
// processor of this one is not the daemon's, so it asks for real-time priority.
class Prober {
 public:
  explicit Prober(uint16_t port) : thread_([this, port] { Run(port); }) {}
  std::vector<double> Stop() {
    stopped_ = true;
    thread_.join();
    return latencies_;
  }

 private:
  using Clock = std::chrono::steady_clock;
  void Run(uint16_t port) {
    sched_param priority{};
    priority.sched_priority = 1;
    (void)::sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &priority);
    const std::string request =
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    for (auto due = Clock::now(); !stopped_; due += std::chrono::milliseconds(20)) {
      std::this_thread::sleep_until(due);
      const int fd = Connect(port);
      char answer[16] = {};
      if (fd >= 0) {
        SendAll(fd, request);
        (void)!::recv(fd, answer, sizeof(answer), MSG_WAITALL);
        ::close(fd);
      }
      const bool good = std::string_view(answer, 12) == "HTTP/1.1 200";
      latencies_.push_back(
          good ? std::chrono::duration<double, std::nano>(Clock::now() - due).count() : 1e12);
    }
  }
  std::atomic<bool> stopped_ = false;
  std::vector<double> latencies_;
  std::thread thread_;
};

}  // namespace

std::vector<FairnessRow> MeasureFairness(const FairnessTarget& target, const VictimCalls& calls,
                                         int samples) {
  using Clock = std::chrono::steady_clock;
  const int warm = std::max(500, samples / 10);
  const auto begun = Clock::now();
  (void)calls(warm, 0);
  const double alone = warm / std::chrono::duration<double>(Clock::now() - begun).count();
  const int rate = std::max(10, static_cast<int>(alone / 2));
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  const Trouble troubles[] = {{"alone", nullptr, 0},
                              {"a hostile tenant on the API, 1,000 requests a second", AskOften, 2},
                              {"the same, as fast as two clients can", AskWithoutEnd, 2},
                              {"processes that burn every core", BurnCpu, cores},
                              {"a process that syncs the disk", SyncDisk, 1}};
  // Counted by the processes.
  void* const shared = ::mmap(nullptr, sizeof(std::atomic<uint64_t>), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* const sent = new (shared) std::atomic<uint64_t>(0);
  std::vector<FairnessRow> rows;
  for (const Trouble& trouble : troubles) {
    std::vector<pid_t> processes;
    for (unsigned i = 0; i < trouble.processes; ++i) {
      const pid_t pid = ::fork();
      if (pid == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        trouble.make(target, sent);
      }
      processes.push_back(pid);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(trouble.processes == 0 ? 0 : 500));
    *sent = 0;
    Prober prober(target.port);
    const std::vector<double> latencies = calls(samples, rate);
    const std::vector<double> health = prober.Stop();
    for (const pid_t pid : processes) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
    FairnessRow row;
    row.what = trouble.what;
    row.p50_ms = Percentile(latencies, 0.5) / 1e6;
    row.p99_ms = Percentile(latencies, 0.99) / 1e6;
    row.ratio = rows.empty() ? 1 : row.p99_ms / rows.front().p99_ms;
    row.health_p50_ms = Percentile(health, 0.5) / 1e6;
    row.health_p99_ms = Percentile(health, 0.99) / 1e6;
    row.rate = rate;
    row.attacks = *sent;
    row.memory_kib = std::atol(StatusOf(target.gateway, "VmHWM").c_str());
    rows.push_back(row);
    fmt::print(stderr, "  {}: p50 {:.2f} ms, p99 {:.2f} ms ({:.2f})\n", row.what, row.p50_ms,
               row.p99_ms, row.ratio);
  }
  return rows;
}

std::string FairnessTable(const std::vector<FairnessRow>& rows) {
  std::string table = fmt::format("The victim makes {} calls a second.\n\n", rows.front().rate);
  table +=
      "| beside the victim | p50 | p99 | p99 against alone | /healthz p50, p99 | requests or syncs "
      "of "
      "the other | most memory of the gateway |\n|---|---|---|---|---|---|---|\n";
  for (const FairnessRow& row : rows) {
    table +=
        fmt::format("| {} | {:.2f} ms | {:.2f} ms | {:.2f} | {:.2f}, {:.2f} ms | {} | {} MiB |\n",
                    row.what, row.p50_ms, row.p99_ms, row.ratio, row.health_p50_ms,
                    row.health_p99_ms, row.attacks, row.memory_kib / 1024);
  }
  return table;
}

}  // namespace coffer::bench
