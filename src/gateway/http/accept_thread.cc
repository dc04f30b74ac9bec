// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/accept_thread.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/clock.h"
#include "base/sys.h"
#include "gateway/http/listen.h"
#include "gateway/http/parser.h"

namespace coffer::gateway {
namespace {

using raw::Arg;
using raw::Syscall;

constexpr std::string_view kProbe = "GET /healthz ";
constexpr size_t kProbeBytes = 4096;  // a longer head is not a probe's
constexpr size_t kMaxWaiting = 512;
constexpr size_t kMaxInTransit = 4096;
constexpr std::chrono::milliseconds kAcceptPatience{1000};
constexpr int kTickMs = 100;
constexpr int kHeldTickMs = 10;  // while connections are held

Status Watch(int poll, int fd, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  const long added = Syscall(SYS_epoll_ctl, poll, EPOLL_CTL_ADD, fd, Arg(&event));
  if (added < 0) {
    return sys::ErrnoError("gateway.accept.watch", "cannot watch a socket", added);
  }
  return {};
}

long AcceptOne(int listener) {
  return Syscall(SYS_accept4, listener, 0, 0, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

void Refuse(int fd, std::string_view code, std::string detail) {
  Problem problem = FatalProblem(503, code, std::move(detail));
  problem.retry_after = 1;
  const Response response = ProblemResponse(problem);
  SendAtOnce(fd, FormatResponseHead(response, false, HttpDate(WallTime())) + response.body);
}

Response HealthResponse(bool turns, std::chrono::milliseconds age) {
  if (turns) {
    return JsonResponse(200, R"({"status":"ok"})");
  }
  return JsonResponse(503, R"({"status":"stuck","detail":"the event loop has not turned for )" +
                               std::to_string(age.count()) + R"( ms"})");
}

// As in linux/sched/types.h, which cannot be included beside <sched.h>.
struct SchedAttributes {
  uint32_t size, policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime, deadline, period;
};

// Asks the kernel to run this thread soon after it wakes, for short times (Linux 6.12): it needs
// microseconds, and a probe should not wait behind all that is busy on the host. Takes no priority,
// so it needs no privilege; where the kernel does not know it, nothing changes.
void AskForShortSlices() {
  constexpr uint64_t kSlice = 100'000;  // ns, the shortest
  SchedAttributes wanted{};
  if (Syscall(SYS_sched_getattr, 0, Arg(&wanted), sizeof(wanted), 0) < 0 ||
      wanted.policy != SCHED_OTHER) {
    return;
  }
  wanted.flags = 0;
  wanted.runtime = kSlice;
  wanted.deadline = wanted.period = 0;
  (void)Syscall(SYS_sched_setattr, 0, Arg(&wanted), 0);
}

}  // namespace

bool IsAbandonedReading(int fd) {
  pollfd hangup{fd, POLLRDHUP, 0};
  if (::poll(&hangup, 1, 0) != 1) {
    return false;
  }
  std::array<char, 5> first{};
  const long got =
      Syscall(SYS_recvfrom, fd, Arg(first.data()), first.size(), MSG_PEEK | MSG_DONTWAIT, 0, 0);
  const std::string_view bytes(first.data(), static_cast<size_t>(std::max(got, 0L)));
  return bytes.empty() || bytes.starts_with("GET ") || bytes == "HEAD ";
}

AcceptThread::AcceptThread(const HttpLimits& limits, const SiteNames& names,
                           const KnownTenants& known, HandOver hand_over)
    : limits_(limits),
      names_(names),
      known_(known),
      hand_over_(std::move(hand_over)),
      poll_(::epoll_create1(EPOLL_CLOEXEC)),
      stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      spare_(::eventfd(0, EFD_CLOEXEC)),
      pace_(limits.pace),
      beat_(Clock::now().time_since_epoch().count()) {}

AcceptThread::~AcceptThread() { Stop(); }

Status AcceptThread::Add(AcceptListener listener) {
  TRY(Watch(poll_.get(), listener.fd.get(), EPOLLIN));
  listeners_.push_back(std::move(listener));
  return {};
}

void AcceptThread::Start() {
  Beat();
  thread_ = std::thread([this] { Run(); });
}

void AcceptThread::Stop() {
  if (thread_.joinable()) {
    const uint64_t one = 1;
    (void)!::write(stop_.get(), &one, sizeof(one));
    thread_.join();
  }
  waiting_.clear();
  by_fd_.clear();
  pace_.Clear();
  listeners_.clear();
}

void AcceptThread::Beat() { beat_ = Clock::now().time_since_epoch().count(); }

AcceptThread::Counts AcceptThread::counts() const {
  return {accepted_, refused_, healthy_, unhealthy_};
}

bool AcceptThread::LoopTurns(std::chrono::milliseconds* age) const {
  const auto since = Clock::now().time_since_epoch() - Clock::duration(beat_.load());
  *age = std::chrono::duration_cast<std::chrono::milliseconds>(since);
  return *age < limits_.loop_stale;
}

void AcceptThread::Run() {
  AskForShortSlices();
  if (const Status watched = Watch(poll_.get(), stop_.get(), EPOLLIN); !watched.ok()) {
    return;
  }
  std::array<epoll_event, 64> events;
  for (;;) {
    const int patience = pace_.holds_any() ? kHeldTickMs : waiting_.empty() ? -1 : kTickMs;
    const int ready =
        ::epoll_wait(poll_.get(), events.data(), static_cast<int>(events.size()), patience);
    for (int i = 0; i < ready; ++i) {
      const int fd = events[static_cast<size_t>(i)].data.fd;
      if (fd == stop_.get()) {
        return;
      }
      if (const auto found = by_fd_.find(fd); found != by_fd_.end()) {
        Look(found->second);
        continue;
      }
      for (const AcceptListener& listener : listeners_) {
        if (listener.fd.get() == fd) {
          Accept(listener);
        }
      }
    }
    while (!waiting_.empty() && Clock::now() - waiting_.front().since >= kAcceptPatience) {
      HandOverOldest();
    }
    if (pace_.holds_any()) {
      const auto left = [](const Newcomer& held) {
        return !held.tls && IsAbandonedReading(held.fd.get());
      };
      for (Newcomer& due : pace_.Due(Clock::now(), left)) {
        Enter(std::move(due));
      }
    }
  }
}

void AcceptThread::Accept(const AcceptListener& listener) {
  const long taken = AcceptOne(listener.fd.get());
  if (taken == -EMFILE || taken == -ENFILE) {
    // Left in the backlog it would wake this thread for ever.
    spare_.Reset();
    const long refused = AcceptOne(listener.fd.get());
    if (refused >= 0) {
      const UniqueFd fd(static_cast<int>(refused));
      ++refused_;
      Refuse(fd.get(), "http.connections", "too many connections");
    }
    spare_ = UniqueFd(::eventfd(0, EFD_CLOEXEC));
  } else if (taken >= 0) {
    ++accepted_;
    UniqueFd fd(static_cast<int>(taken));
    Keep({std::move(fd), listener.tls, listener.health_only, Clock::now()});
  }
}

void AcceptThread::Keep(Waiting waiting) {
  const int fd = waiting.fd.get();
  const bool watched = waiting.tls || Watch(poll_.get(), fd, EPOLLIN | EPOLLRDHUP | EPOLLET).ok();
  const Place place = waiting_.insert(waiting_.end(), std::move(waiting));
  by_fd_[fd] = place;
  if (place->tls || !watched) {
    Pass(place);
  } else if (waiting_.size() > kMaxWaiting) {
    HandOverOldest();
  }
}

void AcceptThread::Look(Place place) {
  std::array<char, kProbeBytes> buffer;
  bool keep = true;
  while (keep) {
    const long got = Syscall(SYS_recvfrom, place->fd.get(), Arg(buffer.data()), buffer.size(),
                             MSG_PEEK | MSG_DONTWAIT, 0, 0);
    if (got == -EAGAIN || got == -EINTR) {
      return;
    }
    if (got <= 0) {
      Drop(place);
      return;
    }
    const std::string_view bytes(buffer.data(), static_cast<size_t>(got));
    const bool may_be_probe = bytes.substr(0, kProbe.size()) == kProbe.substr(0, bytes.size());
    const bool complete = bytes.find("\r\n\r\n") != std::string_view::npos;
    if (may_be_probe && !complete && bytes.size() < kProbeBytes) {
      return;  // the rest wakes us
    }
    if (!may_be_probe || !AnswerHealth(place, bytes, &keep)) {
      Pass(place, bytes);
      return;
    }
  }
  Drop(place);
}

bool AcceptThread::AnswerHealth(Place place, std::string_view bytes, bool* keep) {
  RequestParser parser(limits_);
  std::optional<Problem> problem;
  const size_t size = parser.FindHead(bytes, &problem);
  Head head;
  if (size == 0 || problem.has_value() || parser.ParseHead(bytes.substr(0, size), &head) ||
      head.target != "/healthz" || head.HasBody()) {
    return false;
  }
  const Result<Channel> channel = DescribeChannel(place->fd.get());
  // A probe names the address it was told, not the site: its own listener has no names to check.
  if (!channel.ok() || (!place->health_only && CheckSite(head, *channel, names_).has_value())) {
    return false;
  }
  std::array<char, kProbeBytes> read;
  (void)!::recv(place->fd.get(), read.data(), size, MSG_DONTWAIT);
  std::chrono::milliseconds age{0};
  const bool turns = LoopTurns(&age);
  ++(turns ? healthy_ : unhealthy_);
  *keep = head.keep_alive;
  place->since = Clock::now();
  waiting_.splice(waiting_.end(), waiting_, place);
  const Response response = HealthResponse(turns, age);
  SendAtOnce(place->fd.get(),
             FormatResponseHead(response, *keep, HttpDate(WallTime())) + response.body);
  return true;
}

void AcceptThread::HandOverOldest() { Pass(waiting_.begin()); }

// To the loop, as soon as it is this tenant's turn, or this peer's.
void AcceptThread::Pass(Place place, std::string_view bytes) {
  Newcomer newcomer{std::move(place->fd), place->tls};
  const int fd = newcomer.fd.get();
  (void)::epoll_ctl(poll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  const bool health_only = place->health_only;
  by_fd_.erase(fd);
  waiting_.erase(place);
  if (health_only) {
    const Response response =
        ProblemResponse(FatalProblem(404, "route.unknown", "there is only /healthz here"));
    SendAtOnce(fd, FormatResponseHead(response, false, HttpDate(WallTime())) + response.body);
    return;
  }
  const Result<Channel> channel = DescribeChannel(fd);
  if (!channel.ok() || IsAbandonedReading(fd)) {
    return;  // dropped here: the loop has enough to do
  }
  const std::string tenant = known_.FindInHead(bytes, limits_);
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
void AcceptThread::Enter(Newcomer newcomer) {
  if (in_transit_ >= kMaxInTransit) {
    TurnAway(newcomer, "too many connections wait to be served");
    return;
  }
  ++in_transit_;
  hand_over_(std::move(newcomer.fd), newcomer.tls);
}

void AcceptThread::TurnAway(const Newcomer& newcomer, std::string why) {
  ++refused_;
  if (!newcomer.tls) {
    Refuse(newcomer.fd.get(), "http.connections", std::move(why));
  }
}

void AcceptThread::Drop(Place place) {
  by_fd_.erase(place->fd.get());
  waiting_.erase(place);
}

}  // namespace coffer::gateway
