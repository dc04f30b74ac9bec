// SPDX-License-Identifier: Apache-2.0
//
// The figures of the gate, on the real daemon: from a request on the wire to a launched boundary at 200 calls a second,
// policy evaluation among 500 manifests, /healthz, memory after many calls, and what a tenant notices of a hostile one.
//
// The daemon's warden is replaced by one that starts nothing (fake_warden.cc), so that the boundary, which has figures of
// its own, does not count. Requests are sent at fixed times, whether or not earlier ones were answered, and a latency
// counts from the time a request was due: a daemon that stalls is not flattered.
// Usage: bench_gate --cofferd FILE --fake-warden FILE [--docs FILE] [--calls 10000] [--only fairness]
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "bench/gateway/client.h"
#include "bench/gateway/evaluate.h"
#include "bench/gateway/fairness.h"
#include "bench/gateway/process.h"

namespace coffer::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRate = 200;  // calls a second
constexpr int kClients = 16;
constexpr size_t kManifests = 500;

struct Options {
  std::string cofferd, fake_warden, docs;
  int calls = 10'000;
  bool only_fairness = false;
};

[[noreturn]] void Fail(const std::string& why) {
  std::fprintf(stderr, "bench_gate: %s\n", why.c_str());
  std::exit(1);
}

struct Daemon {
  pid_t monitor = 0;
  uint16_t port = 0;
  std::string key;
  std::vector<pid_t> processes;  // without the warden, which is not the real one
  pid_t gateway = 0;
};

std::string Between(const std::string& text, const std::string& before, const std::string& after) {
  const size_t begin = text.find(before);
  if (begin == std::string::npos) {
    return {};
  }
  const size_t at = begin + before.size();
  return text.substr(at, text.find(after, at) - at);
}

Daemon Start(const Options& options, const std::string& directory) {
  int out[2];
  if (::pipe2(out, O_CLOEXEC) != 0) {
    Fail("no pipe");
  }
  Daemon daemon;
  daemon.monitor = ::fork();
  if (daemon.monitor == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(out[1], STDOUT_FILENO);
    const std::string state = directory + "/state", tools = directory + "/tools";
    ::execl(options.cofferd.c_str(), "cofferd", "--warden", options.fake_warden.c_str(), "--state",
            state.c_str(), "--tools", tools.c_str(), "--listen", "127.0.0.1:0", "--json", nullptr);
    std::_Exit(127);
  }
  ::close(out[1]);
  std::string said;
  char piece[512];
  while (said.find('\n') == std::string::npos) {
    const ssize_t got = ::read(out[0], piece, sizeof(piece));
    if (got <= 0) {
      Fail("the daemon does not start");
    }
    said.append(piece, static_cast<size_t>(got));
  }
  daemon.port = static_cast<uint16_t>(std::stoi(Between(said, "127.0.0.1:", "\"")));
  daemon.key = Between(said, "\"key\":\"", "\"");
  if (daemon.key.empty()) {
    daemon.key = Between(said, "\"key\": \"", "\"");
  }
  daemon.processes = {daemon.monitor};
  for (const pid_t child : ChildrenOf(daemon.monitor)) {
    const std::string name = NameOf(child);
    if (name.starts_with("coffer")) {
      daemon.processes.push_back(child);
      daemon.gateway = Threads(child) > 1 ? child : daemon.gateway;
    }
  }
  return daemon;
}

constexpr const char* kCall = R"json({"tool":"python","args":{"code":"print(2 + 2)"}})json";

// Nanoseconds from when each call was due to when its boundary was launched; `rate` 0 is as fast as it goes.
std::vector<double> MakeCalls(const Daemon& daemon, const std::string& key, int count, int rate) {
  std::vector<double> latencies(static_cast<size_t>(count));
  std::atomic<int> next = 0;
  std::atomic<int> failed = 0;
  const auto begin = Clock::now() + std::chrono::milliseconds(50);
  std::vector<std::thread> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.emplace_back([&] {
      Client client(daemon.port, key);
      for (int number = next++; number < count; number = next++) {
        auto due = Clock::now();
        if (rate > 0) {
          due = begin + std::chrono::nanoseconds(1'000'000'000LL / rate) * number;
          std::this_thread::sleep_until(due);
        }
        const std::string answer = client.Post("/v1/calls", kCall);
        const std::string launched = Between(answer, "\"stdout\":\"", "\"");
        if (launched.empty()) {
          if (failed++ == 0) {
            std::fprintf(stderr, "bench_gate: %s\n", answer.substr(0, 400).c_str());
          }
          continue;
        }
        latencies[static_cast<size_t>(number)] =
            static_cast<double>(std::stoll(launched) - due.time_since_epoch().count());
      }
    });
  }
  for (std::thread& client : clients) {
    client.join();
  }
  if (failed > 0) {
    Fail(std::to_string(failed) + " calls failed");
  }
  return latencies;
}

double Percentile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1,
                         static_cast<size_t>(share * static_cast<double>(values.size())))];
}

long Resident(const Daemon& daemon) {
  long kib = 0;
  for (const pid_t pid : daemon.processes) {
    kib += ResidentKib(pid);
  }
  return kib;
}

// A key of a tenant's agent, made by the program beside cofferd.
std::string NewKey(const Options& options, const std::string& directory,
                   const std::string& tenant) {
  const std::string coffer = std::filesystem::path(options.cofferd).parent_path() / "coffer";
  const std::string command = coffer + " key new --json --role agent --agent a --tenant " + tenant +
                              " --state " + directory + "/state";
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  char text[4096] = {};
  if (pipe == nullptr || std::fread(text, 1, sizeof(text) - 1, pipe) == 0 || ::pclose(pipe) != 0) {
    Fail("no key for " + tenant);
  }
  const std::string said = text;
  const std::string key = Between(said, "\"key\":\"", "\"");
  return key.empty() ? Between(said, "\"key\": \"", "\"") : key;
}

std::vector<FairnessRow> MeasureTenants(const Options& options, const std::string& directory,
                                        const Daemon& daemon) {
  const FairnessTarget target{daemon.port, NewKey(options, directory, "victim"),
                              NewKey(options, directory, "hostile"), directory, daemon.gateway};
  return MeasureFairness(
      target,
      [&](int count, int rate) { return MakeCalls(daemon, target.victim_key, count, rate); },
      options.calls);
}

void Stop(const Daemon& daemon, const std::string& directory) {
  ::kill(daemon.monitor, SIGTERM);
  ::waitpid(daemon.monitor, nullptr, 0);
  std::filesystem::remove_all(directory);
}

struct Health {
  double per_second = 0;
  double per_core_second = 0;
};

Health MeasureHealth(const Daemon& daemon) {
  constexpr double kSeconds = 4;
  const double cpu_before = CpuSeconds(daemon.gateway);
  const auto begin = Clock::now();
  const auto until =
      begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(kSeconds));
  const size_t answers = AskHealth(daemon.port, 32, until);
  const double wall = std::chrono::duration<double>(Clock::now() - begin).count();
  const double cpu = CpuSeconds(daemon.gateway) - cpu_before;
  return {static_cast<double>(answers) / wall, static_cast<double>(answers) / cpu};
}

std::string Row(const char* what, const char* target, const std::string& value, bool reached) {
  return std::string("| ") + what + " | " + target + " | " + value + " | " +
         (reached ? "yes" : "no") + " |\n";
}

std::string Text(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

}  // namespace

int Main(const Options& options) {
  std::string directory = "/tmp/coffer-bench-gate-XXXXXX";
  if (::mkdtemp(directory.data()) == nullptr || ::chmod(directory.c_str(), 0755) != 0) {
    Fail("no directory");
  }
  WriteManifests(directory + "/tools", kManifests);
  if (options.only_fairness) {
    const Daemon alone = Start(options, directory);
    (void)MakeCalls(alone, alone.key, 400, 0);  // warm
    std::fputs(FairnessTable(MeasureTenants(options, directory, alone)).c_str(), stdout);
    Stop(alone, directory);
    return 0;
  }
  const std::vector<double> evaluations = MeasureEvaluation(directory + "/tools");

  const Daemon daemon = Start(options, directory);
  (void)MakeCalls(daemon, daemon.key, 400, 0);     // warm
  const int paced_calls = options.calls * 4 / 10;  // 20 seconds' worth
  const std::vector<double> paced = MakeCalls(daemon, daemon.key, paced_calls, kRate);
  const Health health = MeasureHealth(daemon);
  (void)MakeCalls(daemon, daemon.key, options.calls - 400 - paced_calls, 0);
  const long after = Resident(daemon);
  (void)MakeCalls(daemon, daemon.key, options.calls, 0);
  const long later = Resident(daemon);
  const std::vector<FairnessRow> fairness = MeasureTenants(options, directory, daemon);
  Stop(daemon, directory);

  const double p50 = Percentile(paced, 0.5) / 1e6, p99 = Percentile(paced, 0.99) / 1e6;
  const double policy = Percentile(evaluations, 0.99) / 1e3;
  const double growth = static_cast<double>(later - after) / 1024;
  std::string table = "| what | target | measured | reached |\n|---|---|---|---|\n";
  table += Row("request to launched boundary, p99 at 200 calls/s", "< 5 ms",
               Text("%.2f ms", p99) + Text(" (p50 %.2f ms)", p50), p99 < 5);
  table += Row("policy evaluation with 500 manifests, p99", "< 1 ms",
               Text("%.0f us", policy) + Text(" (p50 %.0f us)", Percentile(evaluations, 0.5) / 1e3),
               policy < 1000);
  table += Row("`/healthz` on one core", ">= 20,000/s",
               Text("%.0f/s", health.per_core_second) + Text(" (%.0f/s in all)", health.per_second),
               health.per_core_second >= 20'000);
  table += Row("resident memory after 10,000 calls", "< 60 MiB",
               Text("%.1f MiB", static_cast<double>(after) / 1024), after < 60L * 1024);
  table += Row("its growth over 10,000 more", "flat", Text("%+.1f MiB", growth), growth < 4);
  const std::string fair = FairnessTable(fairness);
  std::fputs((table + "\n" + fair).c_str(), stdout);
  if (!options.docs.empty()) {
    double load[3] = {0, 0, 0};
    (void)::getloadavg(load, 3);
    std::ofstream(options.docs)
        << "# Benchmarks of the gate\n\nWritten by `make bench-gate` (`bench/gateway/gate.cc`): "
           "the "
           "real daemon, over HTTP on loopback, with\nauthentication, store and log on disk; only "
           "the warden is one that starts nothing, so that the "
           "boundary\n([BENCHMARKS](BENCHMARKS.md)) "
           "does not count. Latencies count from the time a request was due.\n\n"
        << table
        << "\n## What a tenant notices of another\n\nThe victim makes calls at a fixed rate, half "
           "of "
           "what it gets alone; the trouble is made by other processes meanwhile. Clients of "
           "the\nhostile "
           "tenant have the lowest priority, because they would be on other machines; processes "
           "that "
           "burn CPU or sync the disk\nhave the usual one, and no boundary around them. The aim is "
           "1.5 on the API; the others are reported.\n\n"
        << fair << "\nHost: " << std::thread::hardware_concurrency()
        << " cores, load average when it ended " << Text("%.1f", load[0])
        << " (the measurement itself is about 2).\nMemory is that of monitor, gateway and egress "
           "together. `/healthz` on one core is requests per second of\nCPU time of the gateway.\n";
  }
  return 0;
}

}  // namespace coffer::bench

int main(int argc, char** argv) {
  coffer::bench::Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--calls") {
      options.calls = std::max(1000, std::atoi(argv[i + 1]));
      continue;
    }
    if (flag == "--only") {
      options.only_fairness = std::string(argv[i + 1]) == "fairness";
      continue;
    }
    (flag == "--cofferd"       ? options.cofferd
     : flag == "--fake-warden" ? options.fake_warden
                               : options.docs) = argv[i + 1];
  }
  if (options.cofferd.empty() || options.fake_warden.empty()) {
    std::fprintf(stderr, "usage: bench_gate --cofferd FILE --fake-warden FILE [--docs FILE]\n");
    return 2;
  }
  return coffer::bench::Main(options);
}
