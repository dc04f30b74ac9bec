// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/connection_door.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/sys.h"
#include "gateway/http/listen.h"
#include "gateway/http/message.h"
#include "gateway/http/problem.h"

namespace coffer::gateway {
namespace {

constexpr size_t kMaxInTransit = 4096;
constexpr size_t kHeadBytes = 4096;  // a longer head is not looked through for its tenant
constexpr int kHeldTickMs = 10;      // while connections are held
constexpr int kAtOnce = 256;         // that are let in before those that were held are looked at

long Peek(int fd, char* bytes, size_t size) {
  return raw::Syscall(SYS_recvfrom, fd, raw::Arg(bytes), size, MSG_PEEK | MSG_DONTWAIT, 0, 0);
}

}  // namespace

bool IsAbandonedReading(int fd) {
  pollfd hangup{fd, POLLRDHUP, 0};
  if (::poll(&hangup, 1, 0) != 1) {
    return false;
  }
  std::array<char, 5> first{};
  const long got = Peek(fd, first.data(), first.size());
  const std::string_view bytes(first.data(), static_cast<size_t>(std::max(got, 0L)));
  return bytes.empty() || bytes.starts_with("GET ") || bytes == "HEAD ";
}

void AnswerBusy(int fd, std::string why) {
  Problem problem = FatalProblem(503, "http.connections", std::move(why));
  problem.retry_after = 1;
  const Response response = ProblemResponse(problem);
  SendAtOnce(fd, FormatResponseHead(response, false, HttpDate(WallTime())) + response.body);
}

ConnectionDoor::ConnectionDoor(const HttpLimits& limits, const KnownTenants& known,
                               HandOver hand_over)
    : limits_(limits),
      known_(known),
      hand_over_(std::move(hand_over)),
      pace_(limits.pace),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

ConnectionDoor::~ConnectionDoor() { Stop(); }

void ConnectionDoor::Start() {
  thread_ = std::thread([this] { Run(); });
}

void ConnectionDoor::Stop() {
  stopped_ = true;
  if (thread_.joinable()) {
    (void)::eventfd_write(wake_.get(), 1);
    thread_.join();
  }
  for (Newcomer closed; Take(&closed);) {
  }
  pace_.Clear();
}

void ConnectionDoor::Arrive(Newcomer newcomer) {
  const size_t at = arrived_.load(std::memory_order_relaxed);
  if (at - taken_.load(std::memory_order_acquire) == kSlots) {
    ++refused_;
    return;
  }
  slots_[at % kSlots] = {newcomer.fd.Release(), newcomer.tls};
  arrived_.store(at + 1, std::memory_order_release);
  (void)::eventfd_write(wake_.get(), 1);
}

bool ConnectionDoor::Take(Newcomer* newcomer) {
  const size_t at = taken_.load(std::memory_order_relaxed);
  if (at == arrived_.load(std::memory_order_acquire)) {
    return false;
  }
  const Slot slot = slots_[at % kSlots];
  taken_.store(at + 1, std::memory_order_release);
  *newcomer = {UniqueFd(slot.fd), slot.tls};
  return true;
}

void ConnectionDoor::Run() {
  const auto left = [](const Newcomer& held) {
    return !held.tls && IsAbandonedReading(held.fd.get());
  };
  while (!stopped_) {
    pollfd arrived{wake_.get(), POLLIN, 0};
    (void)::poll(&arrived, 1, pace_.holds_any() ? kHeldTickMs : -1);
    eventfd_t count = 0;
    (void)::eventfd_read(wake_.get(), &count);
    Newcomer newcomer;
    for (int i = 0; i < kAtOnce && !stopped_ && Take(&newcomer); ++i) {
      LetIn(std::move(newcomer));
    }
    if (taken_ != arrived_) {
      (void)::eventfd_write(wake_.get(), 1);  // more at once, after those that were held
    }
    if (pace_.holds_any()) {
      for (Newcomer& due : pace_.Due(Clock::now(), left)) {
        Enter(std::move(due));
      }
    }
  }
}

// To the loop, as soon as it is this tenant's turn, or this peer's.
void ConnectionDoor::LetIn(Newcomer newcomer) {
  const int fd = newcomer.fd.get();
  const Result<Channel> channel = DescribeChannel(fd);
  if (!channel.ok() || IsAbandonedReading(fd)) {
    return;  // dropped here: the loop has enough to do
  }
  std::string tenant;
  if (!newcomer.tls) {
    std::array<char, kHeadBytes> head;
    const long got = Peek(fd, head.data(), head.size());
    tenant = known_.FindInHead({head.data(), static_cast<size_t>(std::max(got, 0L))}, limits_);
  }
  const std::string lane = tenant.empty() ? PeerKey(*channel) : "tenant " + tenant;
  switch (pace_.Take(lane, &newcomer, Clock::now())) {
    case ConnectionPace::Verdict::kNow:
      Enter(std::move(newcomer));
      break;
    case ConnectionPace::Verdict::kHeld:
      break;
    case ConnectionPace::Verdict::kTooMany:
      TurnAway(newcomer, "too many new connections from you wait to be served");
      break;
  }
}

// To the loop, unless it has more on their way than it takes.
void ConnectionDoor::Enter(Newcomer newcomer) {
  if (in_transit_ >= kMaxInTransit) {
    TurnAway(newcomer, "too many connections wait to be served");
    return;
  }
  ++in_transit_;
  hand_over_(std::move(newcomer.fd), newcomer.tls);
}

void ConnectionDoor::TurnAway(const Newcomer& newcomer, std::string why) {
  ++refused_;
  if (!newcomer.tls) {
    AnswerBusy(newcomer.fd.get(), std::move(why));
  }
}

}  // namespace coffer::gateway
