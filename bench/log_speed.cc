// SPDX-License-Identifier: Apache-2.0
//
// How fast the audit log is: bench_log DIRECTORY [RECORDS [latency|throughput|verify]]
//
// Append latency at 200 calls a second (a decision and a receipt each, four threads, with fsync); records a second with 1,
// 2 and 8 threads and group commit; verification of a log with as many records as asked for (200,000), in batches of one
// and of ten; bytes on disk for each record. DIRECTORY is made, and must be on the disk in question.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "audit/log/checkpoint.h"
#include "audit/log/log.h"
#include "audit/log/verify_log.h"

namespace coffer::audit {
namespace {

template <typename T>
T Must(Result<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "bench_log: %s: %s\n", result.error().code.c_str(),
                 result.error().message.c_str());
    std::exit(1);
  }
  return std::move(result).value();
}

double Seconds(Nanos time) { return static_cast<double>(time.count()) / 1e9; }

const std::string kHash = "sha256:" + std::string(64, 'a');

DecisionRecord Decision(int number) {
  DecisionRecord record;
  record.identity.call_id = "0192f0c4-7a3b-7cc0-8000-" + std::to_string(100'000'000'000 + number);
  record.identity.session_id = "0192f0c4-7a3b-7cc0-8000-000000000001";
  record.identity.agent = "bot";
  record.identity.user = "uid:1000";
  record.identity.tool = "python";
  record.tool_version = "1.0.0";
  record.manifest = record.envelope = record.args_hash = kHash;
  record.effect = "reversible";
  record.identity.trace_id = "4bf92f3577b34da6a3ce929d0e0e4736";
  return record;
}

ReceiptRecord ReceiptOf(int number) {
  ReceiptRecord record;
  record.identity.call_id = Decision(number).identity.call_id;
  record.identity.tool = "python";
  record.outcome = "success";
  record.ran = true;
  record.body = kHash;
  record.identity.trace_id = "4bf92f3577b34da6a3ce929d0e0e4736";
  return record;
}

void Latency(const std::string& directory, int calls, double rate) {
  Log log = Must(Log::Open(directory));
  std::vector<double> millis(static_cast<size_t>(calls) * 2);
  std::atomic<int> next = 0;
  const Nanos begin = BootTime();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int n = next++; n < calls; n = next++) {
        std::this_thread::sleep_for(begin + Nanos(static_cast<int64_t>(n / rate * 1e9)) -
                                    BootTime());
        const auto timed = [&](const auto& record, size_t slot) {
          const Nanos from = BootTime();
          Must(log.Append(record));
          millis[slot] = Seconds(BootTime() - from) * 1000;
        };
        timed(Decision(n), static_cast<size_t>(n) * 2);
        timed(ReceiptOf(n), static_cast<size_t>(n) * 2 + 1);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  const double seconds = Seconds(BootTime() - begin);
  std::sort(millis.begin(), millis.end());
  const auto at = [&](double share) {
    return millis[static_cast<size_t>(share * static_cast<double>(millis.size() - 1))];
  };
  std::printf("append at %.0f calls/s (asked for %.0f): p50 %.2f ms, p99 %.2f ms, most %.2f ms\n",
              calls / seconds, rate, at(0.5), at(0.99), at(1));
}

void Throughput(const std::string& directory, int threads) {
  constexpr double kFor = 3;
  Log log = Must(Log::Open(directory));
  std::atomic<int> done = 0;
  const Nanos begin = BootTime();
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&, t] {
      for (int n = t * 1'000'000; Seconds(BootTime() - begin) < kFor; ++n) {
        Must(log.Append(Decision(n)));
        Must(log.Append(ReceiptOf(n)));
        done += 2;
      }
    });
  }
  for (std::thread& thread : all) {
    thread.join();
  }
  std::printf("%d threads: %.0f records/s\n", threads, done / Seconds(BootTime() - begin));
}

// A log of this many records, written by hand because only the reading is measured.
void Verify(const std::string& directory, int records, int batch) {
  {
    Log log = Must(Log::Open(directory));  // makes the files
  }
  Signer signer = Must(Signer::FromSeed([&] {
    std::FILE* key = std::fopen((directory + "/key").c_str(), "r");
    char text[65] = {};
    if (key == nullptr || std::fread(text, 1, 64, key) != 64) {
      std::exit(1);
    }
    std::fclose(key);
    return std::string(text);
  }()));
  const std::string origin = std::string(kOriginPrefix) + "0123456789abcdef";
  const std::string header = std::string(kHeaderPrefix) + origin;
  std::FILE* file = std::fopen((directory + "/records").c_str(), "w");
  Frontier frontier;
  Hash prev = LineHash(header);
  std::fprintf(file, "%s\n", header.c_str());
  for (int n = 0; n < records; ++n) {
    const LeafText leaf =
        Must(n % 2 == 0 ? FormatLeaf(Decision(n / 2)) : FormatLeaf(ReceiptOf(n / 2)));
    const std::string line = leaf.Line(static_cast<uint64_t>(n));
    frontier.Append(LeafHash(line));
    std::fprintf(file, "%s\n", line.c_str());
    if ((n + 1) % batch == 0 || n + 1 == records) {
      const std::string mark =
          SignCheckpoint(signer, origin, frontier.size(), frontier.Root(), prev).Line();
      prev = LineHash(mark);
      std::fprintf(file, "%s\n", mark.c_str());
    }
  }
  std::fclose(file);
  for (const int threads : {1, 2}) {
    VerifyOptions options;
    options.threads = threads;
    const Nanos begin = BootTime();
    const std::clock_t cpu = std::clock();
    const LogVerdict verdict = Must(VerifyLog(directory, options));
    const double cpu_seconds = static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC;
    const double seconds = Seconds(BootTime() - begin);
    if (!verdict.ok()) {
      std::fprintf(stderr, "bench_log: %s\n", verdict.findings[0].message.c_str());
      std::exit(1);
    }
    std::printf(
        "verify, batches of %d, %d threads: %.0f records/s, %.0f for each second of a processor\n",
        batch, threads, records / seconds, records / cpu_seconds);
  }
  std::printf("%.0f bytes on disk for a record, in batches of %d\n",
              static_cast<double>(std::filesystem::file_size(directory + "/records")) / records,
              batch);
}

int Main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: bench_log DIRECTORY [RECORDS [latency|throughput|verify]]\n");
    return 2;
  }
  const std::string place = argv[1];
  const int records = argc > 2 ? std::atoi(argv[2]) : 200'000;
  const std::string only = argc > 3 ? argv[3] : "";
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  std::filesystem::create_directories(place);
  if (only.empty() || only == "latency") {
    Latency(place + "/latency", 2000, 200);
  }
  if (only.empty() || only == "throughput") {
    for (const int threads : {1, 2, 8}) {
      Throughput(place + "/throughput" + std::to_string(threads), threads);
    }
  }
  if (only.empty() || only == "verify") {
    Verify(place + "/verify1", records, 1);
    Verify(place + "/verify10", records, 10);
  }
  return 0;
}

}  // namespace
}  // namespace coffer::audit

int main(int argc, char** argv) { return coffer::audit::Main(argc, argv); }
