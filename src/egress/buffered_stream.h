// SPDX-License-Identifier: Apache-2.0
//
// One side of a proxied connection: a Stream with a bounded buffer in front, its bytes counted.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "egress/rule_meter.h"
#include "net/splice_pipe.h"

namespace coffer::egress {

class BufferedStream {
 public:
  explicit BufferedStream(std::unique_ptr<net::Stream> stream) : stream_(std::move(stream)) {}
  // From here on its bytes are charged to `budget`, which outlives it: what goes beyond does not pass, and ends it.
  void Charge(ByteBudget& budget) { budget_ = &budget; }

  // Bytes read and not used yet. At most kMostBuffered bytes are read ahead.
  std::string& buffer() { return buffer_; }
  static constexpr size_t kMostBuffered = 64UL * 1024;
  std::string Take(size_t size);  // the first bytes of it

  // Reads some more into the buffer; false at the end, or if it is full.
  net::Task<bool> Fill();
  // Up to and with the first empty line. Nothing if the stream ended before, or it is longer than `most`.
  net::Task<std::optional<std::string>> ReadHead(size_t most);
  net::Task<bool> Write(std::string_view data);

  // Whether bytes of one can go to the other inside the kernel.
  static bool ArePlain(BufferedStream& a, BufferedStream& b) {
    return a.stream_->plain_socket() != nullptr && b.stream_->plain_socket() != nullptr;
  }
  // Fill and Write for two plain streams; the buffer must have been taken. Each FillPipe is written before the next.
  // False of FillPipe: nothing more comes through a pipe, and Fill tells why. `moved` runs after each part.
  net::Task<bool> FillPipe(net::SplicePipe& pipe);
  net::Task<bool> WritePipe(net::SplicePipe& pipe, const std::function<void()>& moved);

  // After Fill gave false: whether the peer said that this is the end (with TLS by close_notify, else by FIN). Otherwise it
  // broke off, or was cut here.
  bool EndedWell() const;
  // True: until further notice a close, also by the end of this process, is a reset, so that the peer cannot take it for the
  // end of the message. Not with TLS, where the missing close_notify says the same.
  void ResetOnClose(bool reset);

  net::Stream& stream() { return *stream_; }
  // Another protocol on the same bytes (TLS): the buffer must have been taken.
  std::unique_ptr<net::Stream> TakeStream() { return std::move(stream_); }
  uint64_t received() const { return received_; }
  uint64_t sent() const { return sent_; }

 private:
  bool CountReceived(size_t count);

  std::unique_ptr<net::Stream> stream_;
  ByteBudget* budget_ = nullptr;
  std::string buffer_;
  uint64_t received_ = 0;
  uint64_t sent_ = 0;
  bool ended_ =
      false;  // it was read to its end: a socket tells that once, and who reads again waits
};

}  // namespace coffer::egress
