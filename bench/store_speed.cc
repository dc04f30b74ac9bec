// SPDX-License-Identifier: Apache-2.0
//
// bench_store: what the store costs a call, step by step, in microseconds.
//
// usage: bench_store DIRECTORY CALLS [THREADS [CALLS_PER_SECOND]]
// DIRECTORY is made, used and left; put it on the disk in question, or on /dev/shm to leave the disk out. Without a rate
// every thread goes as fast as it can. Each call checks its key, is admitted with rates, budgets and an idempotency key,
// recorded and started in one transaction, and finished with a receipt of 3 kB. A thread maintains the store meanwhile.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "store/admission.h"
#include "store/call.h"
#include "store/key.h"
#include "store/store.h"

namespace coffer::store {
namespace {

constexpr const char* kSteps[] = {"key", "admit", "record+start", "finish", "key to start"};

struct Sample {
  double micros[std::size(kSteps)];
};

[[noreturn]] void Fail(const Error& error) {
  std::fprintf(stderr, "bench_store: %s: %s\n", error.code.c_str(), error.message.c_str());
  std::exit(1);
}

template <typename T>
T Must(Result<T> result) {
  if (!result.ok()) {
    Fail(result.error());
  }
  return std::move(result).value();
}
void Must(const Status& status) {
  if (!status.ok()) {
    Fail(status.error());
  }
}

Sample OneCall(Store& store, const std::string& key, int number) {
  const TenantId tenant = TenantId::Local();
  AdmitRequest request;
  request.identity.tenant = tenant;
  request.identity.agent = "bot";
  request.identity.tool = "python";
  request.args_hash = "sha256:" + std::to_string(number);
  request.idempotency_key = "key-" + std::to_string(number);
  request.request_hash = request.args_hash;
  request.quotas.tenant = {{{1000000, std::chrono::hours(1)}}, 10000, 1000};
  request.quotas.agent.calls = {{1000000, std::chrono::hours(1)}};
  request.quotas.tool.calls = {{1000000, std::chrono::minutes(1)}};
  const std::string hash = "sha256:" + std::string(64, '0');
  const CallDecision decision{"1.0.0", hash, hash, "reversible", std::string(200, 'a')};
  CallEnd end;
  end.outcome = Outcome::kSuccess;
  end.receipt = std::string(3000, 'r');
  end.result = std::string(500, 'o');

  const Nanos begin = BootTime();
  Must(CheckKey(store, key));
  const Nanos checked = BootTime();
  const Admission admission = Must(AdmitCall(store, request));
  if (admission.verdict != AdmitVerdict::kAdmitted) {
    Fail(Internal("bench", admission.reason));
  }
  const Nanos admitted = BootTime();
  Must(RecordAndStartCall(store, tenant, admission.call_id, decision, {1, 1, "boot"}));
  const Nanos started = BootTime();
  Must(FinishCall(store, tenant, admission.call_id, end));
  const Nanos finished = BootTime();
  const auto micros = [](Nanos time) { return static_cast<double>(time.count()) / 1000; };
  return {{micros(checked - begin), micros(admitted - checked), micros(started - admitted),
           micros(finished - started), micros(started - begin)}};
}

void Report(const std::vector<Sample>& samples) {
  std::printf("%-14s %10s %10s %10s %10s  us\n", "", "median", "p90", "p99", "most");
  for (size_t step = 0; step < std::size(kSteps); ++step) {
    std::vector<double> values;
    for (const Sample& sample : samples) {
      values.push_back(sample.micros[step]);
    }
    std::sort(values.begin(), values.end());
    const auto at = [&](double share) {
      return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
    };
    std::printf("%-14s %10.0f %10.0f %10.0f %10.0f\n", kSteps[step], at(0.5), at(0.9), at(0.99),
                at(1));
  }
}

int Main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: bench_store DIRECTORY CALLS [THREADS [CALLS_PER_SECOND]]\n");
    return 2;
  }
  const int calls = std::atoi(argv[2]);
  const int threads = argc > 3 ? std::atoi(argv[3]) : 1;
  const double rate = argc > 4 ? std::atof(argv[4]) : 0;
  Store store = Must(Store::Open(argv[1]));
  Must(EnsureTenant(store, TenantId::Local()));
  const std::string key =
      Must(CreateKey(store, TenantId::Local(), {Role::kAgent, "bot", Nanos(0)})).text;

  std::atomic<bool> stop = false;
  std::thread maintainer([&] {
    while (!stop) {
      Must(store.Maintain());
      std::this_thread::sleep_for(std::chrono::milliseconds(250));
    }
  });
  std::vector<Sample> samples(static_cast<size_t>(calls));
  std::atomic<int> next = 0;
  const Nanos begin = BootTime();
  std::vector<std::thread> workers;
  for (int i = 0; i < threads; ++i) {
    workers.emplace_back([&] {
      for (int n = next++; n < calls; n = next++) {
        if (rate > 0) {
          std::this_thread::sleep_for(begin + Nanos(static_cast<int64_t>(n / rate * 1e9)) -
                                      BootTime());
        }
        samples[static_cast<size_t>(n)] = OneCall(store, key, n);
      }
    });
  }
  for (std::thread& worker : workers) {
    worker.join();
  }
  const double seconds = static_cast<double>((BootTime() - begin).count()) / 1e9;
  stop = true;
  maintainer.join();
  std::printf("%d calls, %d threads, %.0f calls/s\n", calls, threads, calls / seconds);
  Report(samples);
  return 0;
}

}  // namespace
}  // namespace coffer::store

int main(int argc, char** argv) { return coffer::store::Main(argc, argv); }
