// SPDX-License-Identifier: Apache-2.0
#include "cli/inside_server.h"

#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/sys.h"

namespace coffer::cli {
namespace {

using raw::Syscall;

constexpr size_t kMostLine = 1 << 20;
constexpr size_t kMostUnread = 1 << 20;  // that a client has been sent and not read
constexpr std::chrono::seconds kMostStall{30};
constexpr std::chrono::milliseconds kLeastIdle{1000};  // before another may have its place
// In each second, of all clients together. What they cost is not charged to the boundary.
constexpr size_t kMostMessages = 500;
constexpr size_t kMostBytes = 8 << 20;
constexpr size_t kMostRead = 65536;  // of line_stream.h, at once
constexpr size_t kMostAtOnce = 256;  // messages in that
constexpr int kBusyPollMs = 100;
constexpr int kRestMs = 1000;

}  // namespace

InsideConnection::InsideConnection(InsideWork& calls, UniqueFd fd, uint64_t number)
    : calls_(calls),
      fd_(std::move(fd)),
      number_(number),
      in_(fd_.get(), kMostLine),
      out_(fd_.get()),
      mcp_(*this, [this](gateway::McpOutgoing out) {
        if (fd_) {
          wrote_ = out_.pending() == 0 ? Clock::now() : wrote_;
          out_.Add(out.line);
        }
      }) {}

void InsideConnection::ListTools(const gateway::McpId& id) { mcp_.Answer(id, calls_.Tools()); }

void InsideConnection::Begin(const gateway::McpCall& call) { calls_.Begin(*this, call); }

void InsideConnection::Cancel(const gateway::McpId& id, const std::string& /*reason*/) {
  calls_.Cancel(*this, id);
}

bool InsideConnection::takes_more() const { return out_.pending() <= kMostUnread; }

short InsideConnection::events(bool may_read) const {
  const int reads = may_read && takes_more() && !in_.ended() ? POLLIN : 0;
  return static_cast<short>(reads | (out_.pending() > 0 ? POLLOUT : 0));
}

InsideConnection::Work InsideConnection::Handle(short happened) {
  Work work;
  if ((happened & POLLOUT) != 0) {
    const size_t before = out_.pending();
    out_.Write();
    wrote_ = out_.pending() < before ? Clock::now() : wrote_;
  }
  if ((happened & POLLIN) != 0) {
    work = Read();
  }
  // A client that has said all it has to say may still wait for its answers.
  const bool done = in_.ended() && out_.pending() == 0 && !calls_.HasAny(*this);
  if (out_.broken() || (happened & (POLLERR | POLLHUP)) != 0 || done) {
    Close();
  }
  return work;
}

InsideConnection::Work InsideConnection::Read() {
  Work work;
  int waiting = 0;
  (void)Syscall(SYS_ioctl, fd_.get(), FIONREAD, raw::Arg(&waiting));
  work.bytes = std::min<size_t>(static_cast<size_t>(std::max(waiting, 0)), kMostRead);
  in_.Read(
      [&](std::string_view line) {
        if (++work.messages > kMostAtOnce) {
          Close();  // each of them may ask for much more than it says
        }
        if (fd_ && line.find_first_not_of(" \t\r") != std::string_view::npos) {
          asked_ = Clock::now();
          mcp_.Receive(line);
        }
      },
      [&] {
        ++work.messages;
        out_.Add(gateway::McpErrorLine(
            "", {gateway::McpErrorCode::kBadMessage, "the message is longer than 1 MiB", {}}));
      });
  return work;
}

void InsideConnection::Close() {
  if (fd_) {
    out_.Drop();
    fd_.Reset();
    calls_.CancelAllOf(*this);
  }
}

bool InsideConnection::stalled() const {
  return out_.pending() > 0 && Clock::now() - wrote_ > kMostStall;
}

std::chrono::milliseconds InsideConnection::idle() const {
  return calls_.HasAny(*this) || out_.pending() > 0
             ? std::chrono::milliseconds(0)
             : std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - asked_);
}

bool InsideServer::MayRead() {
  if (Clock::now() - second_ >= std::chrono::seconds(1)) {
    second_ = Clock::now();
    this_second_ = {};
  }
  return !ending_ && this_second_.messages < kMostMessages && this_second_.bytes < kMostBytes;
}

// The connection that has asked for nothing for longest.
bool InsideServer::MakeRoom() {
  if (connections_.size() < kMostConnections) {
    return true;
  }
  const auto oldest = std::max_element(
      connections_.begin(), connections_.end(),
      [](const auto& left, const auto& right) { return left->idle() < right->idle(); });
  if ((*oldest)->idle() < kLeastIdle) {
    return false;
  }
  (*oldest)->Close();
  connections_.erase(oldest);
  return true;
}

void InsideServer::Accept() {
  ++this_second_.messages;
  if (!MakeRoom()) {
    return;
  }
  const long fd = Syscall(SYS_accept4, listener_.get(), 0, 0, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd >= 0) {
    connections_.push_back(
        std::make_unique<InsideConnection>(calls_, UniqueFd(static_cast<int>(fd)), ++made_));
  }
}

void InsideServer::Sweep() {
  for (const auto& connection : connections_) {
    if (connection->stalled() || ending_) {
      connection->Close();
    }
  }
  std::erase_if(connections_, [&](const auto& connection) {
    return connection->fd() < 0 && !calls_.HasAny(*connection);
  });
}

int InsideServer::Timeout(bool may_read) const {
  const bool full = connections_.size() >= kMostConnections;
  return !calls_.idle() || !may_read || full ? kBusyPollMs : kRestMs;
}

bool InsideServer::Serve(int control, int signals) {
  bool signalled = false;
  while (!ending_ || !calls_.idle()) {
    const bool may_read = MayRead();
    const bool has_room = connections_.size() < kMostConnections ||
                          std::any_of(
                              connections_.begin(), connections_.end(),
                              [](const auto& one) { return one->idle() >= kLeastIdle; });
    std::vector<pollfd> polled = {{ending_ ? -1 : control, POLLIN, 0},
                                  {ending_ ? -1 : signals, POLLIN, 0},
                                  {may_read && has_room ? listener_.get() : -1, POLLIN, 0}};
    std::vector<InsideConnection*> clients;
    for (const auto& connection : connections_) {
      polled.push_back({connection->fd(), connection->events(may_read), 0});
      clients.push_back(connection.get());
    }
    constexpr size_t kFirstClient = 3;
    calls_.AddTo(&polled);
    if (::poll(polled.data(), polled.size(), Timeout(may_read)) < 0) {
      continue;
    }
    // First, while no descriptor has another meaning than it had in poll.
    calls_.Handle(polled);
    if (polled[0].revents != 0 || polled[1].revents != 0) {
      signalled = polled[1].revents != 0;
      ending_ = true;
      listener_.Reset();
      calls_.CancelAll();
    }
    for (size_t i = 0; i < clients.size() && !ending_; ++i) {
      const int unless_read = MayRead() ? 0 : POLLIN;
      const auto happened = static_cast<short>(polled[kFirstClient + i].revents & ~unless_read);
      if (clients[i]->fd() >= 0 && happened != 0) {
        const InsideConnection::Work work = clients[i]->Handle(happened);
        this_second_.messages += work.messages;
        this_second_.bytes += work.bytes;
      }
    }
    Sweep();
    if (!ending_ && polled[2].revents != 0) {
      Accept();
    }
  }
  return !signalled;
}

}  // namespace coffer::cli
