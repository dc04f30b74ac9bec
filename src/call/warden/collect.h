// SPDX-License-Identifier: Apache-2.0
//
// Collects the report and the output of a runner until its channels end.
//
// All callers use it: `coffer call` blocks in Collect, the servers of the command line poll AddTo's descriptors with their own
// and hand the answer to ReadReady, and the gateway's loop calls Read when a channel is readable.
// Output is bounded by the runner (the call's own cap); here it is bounded once more, because a runner may have been
// broken into. Not thread-safe.
#pragma once

#include <poll.h>

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "call/warden/access_channel.h"
#include "call/warden/launcher.h"
#include "call/warden/wire.h"

namespace coffer::call {

// The report and output of a call that ended. No report: its runner died, and how far the call came is not known.
struct Collected {
  std::string stdout_text;
  std::string stderr_text;
  std::optional<RunReport> report;
  std::optional<Error> stopped;  // it was killed from outside: why, and by whom
};

enum class Stream { kOut, kErr };
// Sees all output as it comes; may be empty.
using OutputSink = std::function<void(Stream, std::string_view)>;

class Collector {
 public:
  static constexpr size_t kChannels = 3;  // stdout, stderr, report

  Collector(RunChannels channels, OutputSink sink);

  // -1 once the channel has ended.
  int fd(size_t channel) const { return channels_[channel].fd.get(); }
  // Reads once. The channel ends at its end, at an error, or when there is too much.
  void Read(size_t channel);
  // Adds the channels that have not ended.
  void AddTo(std::vector<pollfd>* polled) const;
  // Reads each channel of which poll(2) said something, once. Other descriptors among them are passed over.
  void ReadReady(std::span<const pollfd> polled);
  bool done() const;
  // Access that the call waits for, as it was asked for; and how one of them is answered. False: the runner is gone.
  const std::vector<egress::AccessNotice>& waiting() const { return waiting_; }
  bool Answer(const AccessAnswer& answer);
  // Once, when done.
  Collected Take();

 private:
  struct Channel {
    UniqueFd fd;
    std::string bytes;
    size_t limit = 0;
  };
  std::array<Channel, kChannels> channels_;
  void TakeAccess(std::string& report);

  OutputSink sink_;
  std::vector<egress::AccessNotice> waiting_;
};

struct CollectOptions {
  OutputSink sink;
  int signals = -1;  // a signalfd
  std::function<void(int)> on_signal;
};

// Blocks until all three channels have ended.
Collected Collect(RunChannels channels, const CollectOptions& options);

}  // namespace coffer::call
