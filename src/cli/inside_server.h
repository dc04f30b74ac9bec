// SPDX-License-Identifier: Apache-2.0
//
// MCP on a socket inside a boundary: connections of hostile code, for the calls of inside_work.h.
//
// Bounded: connections, the length of a message, messages and bytes in a second, what a client has
// not read yet, calls at the same time, waiting and in all. No read or write here waits. A client
// that does not read gets nothing more made for it, and is cut off after a while; a connection that
// asks for nothing makes room for another. Beyond the rate clients are read later; one that sends
// hundreds of messages at once is cut off. Descriptors that a client sends along are closed by the
// kernel, because nothing here asks for them.
#pragma once

#include <chrono>
#include <list>
#include <memory>
#include <vector>

#include "base/unique_fd.h"
#include "cli/inside_work.h"
#include "cli/line_stream.h"
#include "gateway/mcp/server.h"

namespace coffer::cli {

// One client. It stays until its calls have ended.
class InsideConnection : public gateway::McpHost, public InsideCaller {
 public:
  InsideConnection(InsideWork& calls, UniqueFd fd, uint64_t number);

  void ListTools(const gateway::McpId& id) override;
  void Begin(const gateway::McpCall& call) override;
  void Cancel(const gateway::McpId& id, const std::string& reason) override;

  gateway::McpServer& mcp() override { return mcp_; }
  uint64_t number() const override { return number_; }
  bool takes_more() const override;

  int fd() const { return fd_.get(); }  // -1 once it is closed
  short events(bool may_read) const;
  struct Work {
    size_t messages = 0;
    size_t bytes = 0;
  };
  Work Handle(short happened);
  void Close();
  // It has not read what it was sent for too long.
  bool stalled() const;
  // How long it has asked for nothing; zero while a call of it is under way.
  std::chrono::milliseconds idle() const;

 private:
  using Clock = std::chrono::steady_clock;
  Work Read();

  InsideWork& calls_;
  UniqueFd fd_;
  const uint64_t number_;
  LineReader in_;
  LineWriter out_;
  gateway::McpServer mcp_;
  Clock::time_point asked_ = Clock::now();
  Clock::time_point wrote_ = Clock::now();
};

class InsideServer {
 public:
  static constexpr size_t kMostConnections = 16;

  InsideServer(InsideWork& calls, UniqueFd listener)
      : calls_(calls), listener_(std::move(listener)) {}

  // Returns when the channel has ended or a signal came, and every call has its receipt. False: a signal ended it.
  bool Serve(int control, int signals);

 private:
  using Clock = std::chrono::steady_clock;
  bool MayRead();
  void Accept();
  bool MakeRoom();
  void Sweep();
  int Timeout(bool may_read) const;

  InsideWork& calls_;
  UniqueFd listener_;
  std::list<std::unique_ptr<InsideConnection>> connections_;
  uint64_t made_ = 0;
  bool ending_ = false;
  Clock::time_point second_ = Clock::now();
  InsideConnection::Work this_second_;
};

}  // namespace coffer::cli
