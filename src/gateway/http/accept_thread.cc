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
constexpr size_t kMaxProbes = 64;  // that may ask again
constexpr int kAcceptsAtOnce = 64;
constexpr timespec kFullPause{0, 1'000'000};
constexpr int kAnswersAtOnce = 16;  // to one connection
constexpr std::chrono::milliseconds kAcceptPatience{1000};
constexpr int kTickMs = 100;
constexpr uint32_t kWatched = EPOLLIN | EPOLLRDHUP | EPOLLET;

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

AcceptThread::AcceptThread(const HttpLimits& limits, const SiteNames& names, ConnectionDoor& door)
    : limits_(limits),
      names_(names),
      door_(door),
      poll_(::epoll_create1(EPOLL_CLOEXEC)),
      stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      spare_(::eventfd(0, EFD_CLOEXEC)),
      beat_(Clock::now().time_since_epoch().count()) {}

AcceptThread::~AcceptThread() { Stop(); }

Status AcceptThread::Add(AcceptListener listener) {
  TRY(Watch(poll_.get(), listener.fd.get(), EPOLLIN));
  listeners_.push_back(std::move(listener));
  return {};
}

void AcceptThread::Start() {
  thread_ = std::thread([this] { Run(); });
}

void AcceptThread::Stop() {
  if (thread_.joinable()) {
    const uint64_t one = 1;
    (void)!::write(stop_.get(), &one, sizeof(one));
    thread_.join();
  }
  waiting_.clear();
  probes_.clear();
  by_fd_.clear();
  listeners_.clear();
}

void AcceptThread::Beat() {
  beat_ = Clock::now().time_since_epoch().count();
  turned_ = true;
}

AcceptThread::Counts AcceptThread::counts() const {
  return {accepted_, refused_, healthy_, unhealthy_};
}

Response AcceptThread::Health(bool* turns) const {
  const auto since = Clock::now().time_since_epoch() - Clock::duration(beat_.load());
  const auto age = std::chrono::duration_cast<std::chrono::milliseconds>(since);
  *turns = turned_ && age < limits_.loop_stale;
  if (*turns) {
    return JsonResponse(200, R"({"status":"ok"})");
  }
  if (!turned_) {
    return JsonResponse(503, R"({"status":"starting","detail":"the daemon opens its records"})");
  }
  return JsonResponse(503, R"({"status":"stuck","detail":"the event loop has not turned for )" +
                               std::to_string(age.count()) + R"( ms"})");
}

void AcceptThread::Run() {
  AskForShortSlices();
  if (const Status watched = Watch(poll_.get(), stop_.get(), EPOLLIN); !watched.ok()) {
    return;
  }
  std::array<epoll_event, 64> events;
  for (;;) {
    const bool waits = !waiting_.empty() || !probes_.empty();
    const int ready = ::epoll_wait(poll_.get(), events.data(), static_cast<int>(events.size()),
                                   waits ? kTickMs : -1);
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
    EndPatience();
    if (door_.full()) {
      (void)::nanosleep(&kFullPause, nullptr);  // else the backlog would wake this thread at once
    }
  }
}

// Many at once: a probe may be the last of the backlog. Not without end: a probe may be among those accepted.
void AcceptThread::Accept(const AcceptListener& listener) {
  for (int i = 0; i < kAcceptsAtOnce && (listener.health_only || !door_.full()); ++i) {
    const long taken = AcceptOne(listener.fd.get());
    if (taken == -EMFILE || taken == -ENFILE) {
      // Left in the backlog it would wake this thread for ever.
      spare_.Reset();
      const long refused = AcceptOne(listener.fd.get());
      if (refused >= 0) {
        const UniqueFd fd(static_cast<int>(refused));
        ++refused_;
        AnswerBusy(fd.get(), "too many connections");
      }
      spare_ = UniqueFd(::eventfd(0, EFD_CLOEXEC));
      return;
    }
    if (taken == -ECONNABORTED || taken == -EINTR) {
      continue;
    }
    if (taken < 0) {
      return;
    }
    ++accepted_;
    UniqueFd fd(static_cast<int>(taken));
    Keep({std::move(fd), listener.tls, listener.health_only, Clock::now()});
  }
}

void AcceptThread::Keep(Waiting waiting) {
  const Place place = waiting_.insert(waiting_.end(), std::move(waiting));
  by_fd_[place->fd.get()] = place;
  if (place->tls) {
    Pass(place, Said::kNothing);
  } else {
    Look(place);  // most requests come with their connection
  }
  if (waiting_.size() > kMaxWaiting) {
    Pass(waiting_.begin(), Said::kNothing);
  }
}

void AcceptThread::Look(Place place) {
  std::array<char, kProbeBytes> buffer;
  bool keep = true;
  for (int answers = 0; keep; ++answers) {
    if (answers == kAnswersAtOnce) {
      LookAgain(place);
      return;
    }
    const long got = Syscall(SYS_recvfrom, place->fd.get(), Arg(buffer.data()), buffer.size(),
                             MSG_PEEK | MSG_DONTWAIT, 0, 0);
    if (got == -EAGAIN || got == -EINTR) {
      WaitForMore(place);
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
      WaitForMore(place);
      return;
    }
    if (!may_be_probe || !AnswerHealth(place, bytes, &keep)) {
      Pass(place, Said::kSomething);
      return;
    }
  }
  Drop(place);
}

// What is there already wakes us too, when the watch begins.
void AcceptThread::WaitForMore(Place place) {
  if (place->watched) {
    return;
  }
  place->watched = Watch(poll_.get(), place->fd.get(), kWatched).ok();
  if (!place->watched) {
    Pass(place, Said::kNothing);
  }
}

// After the others: the kernel tells of it once more.
void AcceptThread::LookAgain(Place place) {
  epoll_event event{};
  event.events = kWatched;
  event.data.fd = place->fd.get();
  if (!place->watched) {
    WaitForMore(place);
  } else if (::epoll_ctl(poll_.get(), EPOLL_CTL_MOD, place->fd.get(), &event) != 0) {
    Drop(place);
  }
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
  bool turns = false;
  const Response response = Health(&turns);
  ++(turns ? healthy_ : unhealthy_);
  *keep = head.keep_alive;
  place->since = Clock::now();
  probes_.splice(probes_.end(), ListOf(place), place);
  place->answered = true;
  SendAtOnce(place->fd.get(),
             FormatResponseHead(response, *keep, HttpDate(WallTime())) + response.body);
  return true;
}

// A silent connection is the loop's, which has limits for it. One that was answered ends as an idle one ends there.
void AcceptThread::EndPatience() {
  const auto now = Clock::now();
  while (!waiting_.empty() && now - waiting_.front().since >= kAcceptPatience) {
    Pass(waiting_.begin(), Said::kNothing);
  }
  while (!probes_.empty() &&
         (probes_.size() > kMaxProbes || now - probes_.front().since >= limits_.idle_time)) {
    Drop(probes_.begin());
  }
}

void AcceptThread::Pass(Place place, Said said) {
  Newcomer newcomer{std::move(place->fd), place->tls};
  const int fd = newcomer.fd.get();
  if (place->watched) {
    (void)::epoll_ctl(poll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  }
  const bool health_only = place->health_only;
  by_fd_.erase(fd);
  ListOf(place).erase(place);
  if (!health_only) {
    door_.Arrive(std::move(newcomer));
  } else if (said == Said::kSomething) {
    const Response response =
        ProblemResponse(FatalProblem(404, "route.unknown", "there is only /healthz here"));
    SendAtOnce(fd, FormatResponseHead(response, false, HttpDate(WallTime())) + response.body);
  }
}

void AcceptThread::Drop(Place place) {
  by_fd_.erase(place->fd.get());
  ListOf(place).erase(place);
}

}  // namespace coffer::gateway
