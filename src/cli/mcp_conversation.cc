// SPDX-License-Identifier: Apache-2.0
#include "cli/mcp_conversation.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <chrono>
#include <optional>

#include "cli/line_stream.h"

namespace coffer::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kFarewell{5};  // for calls that run when the client closes stdin
constexpr int kTickMs = 200;
constexpr int kRestEvery = 16;  // answers
constexpr size_t kMostUnwritten = size_t{8}
                                  << 20;  // bytes that the client has not read, before we read on

class Conversation {
 public:
  Conversation(McpWork& calls, int signals)
      : calls_(calls), signals_(signals), server_(calls, [this](gateway::McpOutgoing out) {
          out_.Add(std::move(out.line));
          ++answers_;
        }) {}

  void Run() {
    while (!Over()) {
      std::vector<pollfd> polled = {
          {signals_, POLLIN, 0},
          {in_.ended() || out_.pending() > kMostUnwritten ? -1 : STDIN_FILENO, POLLIN, 0},
          {out_.broken() ? -1 : STDOUT_FILENO, static_cast<short>(out_.pending() > 0 ? POLLOUT : 0),
           0}};
      calls_.AddTo(&polled);
      const int ready = ::poll(polled.data(), polled.size(), Timeout());
      if (ready < 0) {
        continue;  // a signal that was not blocked
      }
      if (ready == 0 && MayRest()) {
        calls_.Rest();
        answers_ = 0;
        continue;
      }
      if (polled[0].revents != 0) {
        TakeSignal();
      }
      if (polled[2].revents != 0) {
        Write(polled[2].revents);
      }
      if (polled[1].revents != 0) {
        Read();
      }
      calls_.Handle(polled);
      if (farewell_ && Clock::now() >= *farewell_) {
        calls_.CancelAll("the client has left");
      }
    }
  }

 private:
  bool Over() const { return farewell_.has_value() && calls_.idle() && out_.pending() == 0; }
  bool MayRest() const {
    return answers_ >= kRestEvery && calls_.idle() && !farewell_ && out_.pending() == 0;
  }
  int Timeout() const {
    if (MayRest()) {
      return 0;
    }
    return calls_.idle() && !farewell_ ? -1 : kTickMs;
  }

  void Leave(Clock::time_point when) { farewell_ = farewell_ ? std::min(*farewell_, when) : when; }

  void TakeSignal() {
    signalfd_siginfo info{};
    (void)!::read(signals_, &info, sizeof(info));
    out_.Drop();
    Leave(Clock::now());
  }

  void Write(short events) {
    if ((events & POLLOUT) != 0) {
      out_.Write();
    }
    if (out_.broken() || (events & POLLERR) != 0) {
      out_.Drop();
      Leave(Clock::now());
    }
  }

  void Read() {
    in_.Read(
        [this](std::string_view line) { Take(line); },
        [this] {
          out_.Add(gateway::McpErrorLine(
              "", {gateway::McpErrorCode::kBadMessage, "the message is longer than 4 MiB", {}}));
        });
    if (in_.ended()) {
      Leave(Clock::now() + kFarewell);
    }
  }

  void Take(std::string_view line) {
    if (line.find_first_not_of(" \t\r") != std::string_view::npos) {
      server_.Receive(line);
    }
  }

  McpWork& calls_;
  const int signals_;
  LineReader in_{STDIN_FILENO, gateway::kMaxMcpLine};
  LineWriter out_{STDOUT_FILENO};
  gateway::McpServer server_;
  std::optional<Clock::time_point> farewell_;  // when what still runs is cancelled
  int answers_ = 0;                            // since the last rest
};

}  // namespace

UniqueFd CatchEndingSignals() {
  sigset_t caught;
  sigemptyset(&caught);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    sigaddset(&caught, signal);
  }
  UniqueFd fd(::signalfd(-1, &caught, SFD_CLOEXEC | SFD_NONBLOCK));
  sigaddset(&caught, SIGPIPE);  // a client that is gone shows as EPIPE
  ::sigprocmask(SIG_BLOCK, &caught, nullptr);
  return fd;
}

void Converse(McpWork& work, int signals) { Conversation(work, signals).Run(); }

}  // namespace coffer::cli
