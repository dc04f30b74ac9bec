// SPDX-License-Identifier: Apache-2.0
#include "call/warden/collect.h"

#include <errno.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>

#include <array>

#include "base/sys.h"

namespace coffer::call {
namespace {

using raw::Arg;
using raw::Syscall;

// Reads once; closes at the end, at an error, or when there is too much.
void ReadSome(UniqueFd& from, size_t limit, std::string& into, const auto& sink) {
  std::array<char, 65536> buffer;
  const long got = Syscall(SYS_read, from.get(), Arg(buffer.data()), buffer.size());
  if (got == -EINTR || got == -EAGAIN) {
    return;
  }
  if (got <= 0 || into.size() + static_cast<size_t>(got) > limit) {
    from.Reset();
    return;
  }
  const std::string_view piece(buffer.data(), static_cast<size_t>(got));
  into.append(piece);
  sink(piece);
}

void TakeSignals(const CollectOptions& options) {
  signalfd_siginfo info{};
  while (Syscall(SYS_read, options.signals, Arg(&info), sizeof(info)) ==
         static_cast<long>(sizeof(info))) {
    options.on_signal(static_cast<int>(info.ssi_signo));
  }
}

}  // namespace

std::optional<RunReport> ReadReport(const std::string& bytes) {
  Result<RunReport> report = DecodeReport(bytes);
  return report.ok() ? std::optional<RunReport>(std::move(report).value()) : std::nullopt;
}

Collected Collect(RunChannels channels, const CollectOptions& options) {
  Collected collected;
  std::string report;
  const auto to = [&](Stream stream) {
    return [&options, stream](std::string_view piece) {
      if (options.sink) {
        options.sink(stream, piece);
      }
    };
  };
  while (channels.out || channels.err || channels.report) {
    pollfd waits[4] = {{channels.out.get(), POLLIN, 0},
                       {channels.err.get(), POLLIN, 0},
                       {channels.report.get(), POLLIN, 0},
                       {options.signals, POLLIN, 0}};
    const long answer = Syscall(SYS_ppoll, Arg(waits), 4, 0, 0, 0);
    if (answer < 0 && answer != -EINTR) {
      break;
    }
    if (channels.out && waits[0].revents != 0) {
      ReadSome(channels.out, kMaxCollected, collected.stdout_text, to(Stream::kOut));
    }
    if (channels.err && waits[1].revents != 0) {
      ReadSome(channels.err, kMaxCollected, collected.stderr_text, to(Stream::kErr));
    }
    if (channels.report && waits[2].revents != 0) {
      ReadSome(channels.report, kMaxWireBytes, report, [](std::string_view) {});
    }
    if (waits[3].revents != 0) {
      TakeSignals(options);
    }
  }
  collected.report = ReadReport(report);
  return collected;
}

}  // namespace coffer::call
