// SPDX-License-Identifier: Apache-2.0
//
// A connection to the proxy of the boundary that this process runs in, with one HTTP request at a time on it.
//
// For a loop that polls: nothing here waits. What comes back is hostile; a head is read as strictly as everywhere
// (net/http_head.h), and a body is handed on piece by piece, so that its reader bounds it. Not thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"
#include "net/http_chunks.h"
#include "net/http_head.h"

namespace coffer::cli {

class ProxiedConnection {
 public:
  // Hears what comes of a request. It may call Drop, and nothing else, from within.
  class Reader {
   public:
    virtual ~Reader() = default;
    virtual void TakeHead(const net::HttpResponseHead& head) = 0;
    virtual void TakeBody(std::string_view piece) = 0;
    // Once for each request, unless it was dropped. `problem` is empty if the answer is whole.
    virtual void TakeEnd(const std::string& problem) = 0;
  };
  // To a port of this loopback.
  static Result<std::unique_ptr<ProxiedConnection>> Open(uint16_t port);

  // While it is not busy. `head_and_body` is the whole request.
  void Begin(std::string_view method, std::string head_and_body, Reader& reader);
  bool busy() const { return reader_ != nullptr; }
  // No request can be sent on it any more: it is closed, or was not used for so long that its peer may close it.
  bool spent() const;
  void Drop();

  int fd() const { return fd_.get(); }
  short events(bool may_read) const;
  void Handle(short happened);

 private:
  using Clock = std::chrono::steady_clock;
  explicit ProxiedConnection(UniqueFd fd) : fd_(std::move(fd)) {}
  void Write();
  void Read();
  void TakeBytes();
  void TakeHead();
  void End(const std::string& problem);

  UniqueFd fd_;
  Reader* reader_ = nullptr;
  std::string method_;
  std::string leaves_;
  size_t written_ = 0;
  std::string came_;
  bool in_body_ = false;
  bool keeps_ = false;  // the connection outlives the answer
  net::HttpBody body_;
  net::ChunkDecoder chunks_;
  Clock::time_point used_ = Clock::now();
};

}  // namespace coffer::cli
