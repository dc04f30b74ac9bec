// SPDX-License-Identifier: Apache-2.0
#include "call/warden/collect.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>

#include <algorithm>

#include "base/sys.h"

namespace coffer::call {
namespace {

using raw::Arg;
using raw::Syscall;

constexpr size_t kReport = 2;
constexpr size_t kMaxOutput = 64 << 20;
constexpr size_t kMostWaiting = 16;  // more than an egress role has open for one call

void TakeSignals(const CollectOptions& options) {
  signalfd_siginfo info{};
  while (Syscall(SYS_read, options.signals, Arg(&info), sizeof(info)) ==
         static_cast<long>(sizeof(info))) {
    options.on_signal(static_cast<int>(info.ssi_signo));
  }
}

}  // namespace

Collector::Collector(RunChannels channels, OutputSink sink)
    : channels_{Channel{std::move(channels.out), {}, kMaxOutput},
                Channel{std::move(channels.err), {}, kMaxOutput},
                Channel{std::move(channels.report), {}, kMaxReportBytes}},
      sink_(std::move(sink)) {}

void Collector::Read(size_t channel) {
  Channel& from = channels_[channel];
  std::array<char, 65536> buffer;
  const long got = Syscall(SYS_read, from.fd.get(), Arg(buffer.data()), buffer.size());
  if (got == -EINTR || got == -EAGAIN) {
    return;
  }
  if (got <= 0 || from.bytes.size() + static_cast<size_t>(got) > from.limit) {
    from.fd.Reset();
    return;
  }
  const std::string_view piece(buffer.data(), static_cast<size_t>(got));
  from.bytes.append(piece);
  if (channel == kReport) {
    TakeAccess(from.bytes);
  }
  if (sink_ && channel != kReport) {
    sink_(channel == 0 ? Stream::kOut : Stream::kErr, piece);
  }
}

void Collector::AddTo(std::vector<pollfd>* polled) const {
  for (const Channel& channel : channels_) {
    if (channel.fd.valid()) {
      polled->push_back({channel.fd.get(), POLLIN, 0});
    }
  }
}

void Collector::ReadReady(std::span<const pollfd> polled) {
  for (size_t i = 0; i < kChannels; ++i) {
    const UniqueFd& fd = channels_[i].fd;
    if (fd.valid() && std::any_of(polled.begin(), polled.end(), [&](const pollfd& one) {
          return one.fd == fd.get() && one.revents != 0;
        })) {
      Read(i);
    }
  }
}

// Requests for access come before the report, each of fixed size. Only those that wait are kept.
void Collector::TakeAccess(std::string& report) {
  AccessFrame frame;
  const uint64_t magic = frame.magic;
  while (report.size() >= sizeof(frame) && memcmp(report.data(), &magic, sizeof(magic)) == 0) {
    memcpy(&frame, report.data(), sizeof(frame));
    report.erase(0, sizeof(frame));
    std::optional<egress::AccessNotice> notice = NoticeOf(frame);
    if (!notice) {
      continue;
    }
    std::erase_if(waiting_, [&](const auto& one) { return one.id == notice->id; });
    if (notice->kind == egress::AccessNotice::Kind::kAsked && waiting_.size() < kMostWaiting) {
      waiting_.push_back(*std::move(notice));
    }
  }
}

bool Collector::Answer(const AccessAnswer& answer) {
  std::erase_if(waiting_, [&](const auto& one) { return one.id == answer.decision.id; });
  return channels_[kReport].fd.valid() && SendAccessReply(channels_[kReport].fd.get(), answer);
}

bool Collector::done() const {
  return std::none_of(channels_.begin(), channels_.end(),
                      [](const Channel& channel) { return channel.fd.valid(); });
}

Collected Collector::Take() {
  Result<RunReport> report = DecodeReport(channels_[kReport].bytes);
  return {std::move(channels_[0].bytes), std::move(channels_[1].bytes),
          report.ok() ? std::optional(std::move(report).value()) : std::nullopt};
}

Collected Collect(RunChannels channels, const CollectOptions& options) {
  Collector collector(std::move(channels), options.sink);
  std::vector<pollfd> waits;
  while (!collector.done()) {
    waits = {{options.signals, POLLIN, 0}};  // poll skips what is -1
    collector.AddTo(&waits);
    const long answer = Syscall(SYS_ppoll, Arg(waits.data()), waits.size(), 0, 0, 0);
    if (answer < 0 && answer != -EINTR) {
      break;
    }
    collector.ReadReady(waits);
    if (waits[0].revents != 0) {
      TakeSignals(options);
    }
  }
  return collector.Take();
}

}  // namespace coffer::call
