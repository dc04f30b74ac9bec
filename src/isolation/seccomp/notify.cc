// SPDX-License-Identifier: Apache-2.0
#include "isolation/seccomp/notify.h"

#include <errno.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/sys.h"
#include "isolation/seccomp/decode.h"
#include "isolation/seccomp/syscall_table.h"

namespace coffer::isolation {
namespace {

// Linux 6.6: the answer wakes the caller on this processor, which makes a denial two to five times cheaper.
constexpr unsigned long kIoctlSetFlags = SECCOMP_IOW(4, __u64);
constexpr long kSyncWakeUp = 1;

long Ioctl(int fd, unsigned long command, long argument) {
  return raw::Syscall(SYS_ioctl, fd, static_cast<long>(command), argument);
}

// The poll events that are there now, or -errno.
long PollNow(int fd) {
  pollfd entry{fd, POLLIN, 0};
  timespec zero{};
  const long answer = raw::Syscall(SYS_ppoll, raw::Arg(&entry), 1, raw::Arg(&zero));
  return answer < 0 ? answer : entry.revents;
}

// Between quotes, with nothing that a terminal or a log would take for more than text.
std::string QuotedText(std::string_view text) {
  std::string quoted = "\"";
  for (const char letter : text) {
    const bool plain = letter >= ' ' && letter <= '~' && letter != '"' && letter != '\\';
    quoted += plain ? letter : '?';
  }
  return quoted + '"';
}

std::string NameOrNumber(int number) {
  const std::string_view name = SyscallName(number);
  return name.empty() ? "syscall_" + std::to_string(number) : std::string(name);
}

}  // namespace

Status DenialRecorder::Prepare(int notify_fd) {
  seccomp_notif_sizes sizes{};
  const long answer = raw::Syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, raw::Arg(&sizes));
  if (answer < 0) {
    return sys::ErrnoError("isolation.seccomp.sizes",
                           "cannot ask for the size of seccomp notifications", answer);
  }
  // A newer kernel may write more than this program knows, an older one less.
  request_.resize(std::max<size_t>(sizes.seccomp_notif, sizeof(seccomp_notif)));
  response_.resize(std::max<size_t>(sizes.seccomp_notif_resp, sizeof(seccomp_notif_resp)));
  (void)Ioctl(notify_fd, kIoctlSetFlags, kSyncWakeUp);  // only speed: older kernels refuse it
  return {};
}

void DenialRecorder::ServeCalls(const BoundaryPlan& plan, uint32_t uid,
                                std::span<const UniqueFd> places, uint64_t memory) {
  if (plan.level == policy::Level::kProcess) {
    attributes_ = std::make_shared<AttributeServer>(plan, uid);
  }
  if (plan.serve_locks) {
    // At the container level the mounts tell, at the process level the trees that Landlock grants.
    locks_ =
        std::make_unique<LockServer>(attributes_ == nullptr ? LockServer::MayWrite(OnWritableMount)
                                                            : [granted = attributes_](int file) {
                                                                return granted->MayChange(file);
                                                              });
    flock_number_ = SyscallNumber("flock");
  }
  if (plan.serve_connect) {
    connects_ = std::make_unique<ConnectServer>(places, uid);
    connect_number_ = SyscallNumber("connect");
  }
  if (plan.serve_sysinfo) {
    figures_ = std::make_unique<SysinfoServer>(memory);
    sysinfo_number_ = SyscallNumber("sysinfo");
  }
}

std::optional<long> DenialRecorder::Made(int notify_fd, const seccomp_notif& request, bool* later) {
  if (connects_ != nullptr && request.data.nr == connect_number_) {
    const std::optional<long> answer = connects_->Take(notify_fd, request);
    *later = answer == 0;
    return answer;
  }
  if (locks_ != nullptr && request.data.nr == flock_number_) {
    const std::optional<long> answer = locks_->Take(notify_fd, request);
    *later = answer == 0;
    return answer;
  }
  if (figures_ != nullptr && request.data.nr == sysinfo_number_) {
    return figures_->Take(notify_fd, request);
  }
  return attributes_ != nullptr ? attributes_->Answer(notify_fd, request) : std::nullopt;
}

void DenialRecorder::TakeLateRefusals() {
  const auto connects =
      connects_ != nullptr ? connects_->TakeRefused() : std::vector<RefusedConnect>();
  if (const uint64_t locks = locks_ != nullptr ? locks_->TakeRefused() : 0; locks > 0) {
    total_ += locks;
    Count({"flock", "LOCK_EX", locks, std::nullopt, true});
  }
  for (const RefusedConnect& refused : connects) {
    ++total_;
    const bool host_socket = refused.why == RefusedConnect::Why::kHostSocket;
    Count({"connect", host_socket ? "AF_UNIX, " + QuotedText(refused.to) : refused.to, 1,
           refused.why});
  }
}

Status DenialRecorder::Serve(int notify_fd) {
  if (request_.empty()) {
    TRY(Prepare(notify_fd));
  }
  TakeLateRefusals();
  for (int served = 0; served < kBatch; ++served) {
    // RECV waits if nothing is pending, so ask first. If the caller dies in between, RECV answers ENOENT.
    const long events = PollNow(notify_fd);
    if (events < 0 && events != -EINTR) {
      return sys::ErrnoError("isolation.seccomp.poll", "cannot poll the seccomp listener", events);
    }
    if (events > 0 && (events & POLLNVAL) != 0) {
      return Internal("isolation.seccomp.poll", "the seccomp listener is not an open descriptor");
    }
    if (events < 0 || (events & POLLIN) == 0) {
      hung_up_ = hung_up_ || (events > 0 && (events & (POLLHUP | POLLERR)) != 0);
      return {};
    }
    std::fill(request_.begin(), request_.end(), std::byte{0});  // the kernel refuses a used buffer
    const long received = Ioctl(notify_fd, SECCOMP_IOCTL_NOTIF_RECV, raw::Arg(request_.data()));
    if (received == -ENOENT || received == -EINTR) {
      continue;  // the caller died before we came to it
    }
    if (received < 0) {
      return sys::ErrnoError("isolation.seccomp.receive", "cannot receive a seccomp notification",
                             received);
    }
    const auto* request = reinterpret_cast<const seccomp_notif*>(request_.data());
    std::fill(response_.begin(), response_.end(), std::byte{0});
    auto* response = reinterpret_cast<seccomp_notif_resp*>(response_.data());
    response->id = request->id;
    bool later = false;
    std::optional<long> made;
    if (threads_ != nullptr && ThreadGate::Asks(request->data)) {
      const uint64_t counts = threads_->counts();
      made = threads_->Admit() ? 0 : -EAGAIN;
      response->flags = *made == 0 ? SECCOMP_USER_NOTIF_FLAG_CONTINUE : 0;
      served += threads_->counts() == counts ? 0 : kCountCosts - 1;
    } else {
      made = Made(notify_fd, *request, &later);
    }
    if (later) {
      continue;
    }
    response->error = static_cast<int>(made.value_or(-EPERM));
    const long sent = Ioctl(notify_fd, SECCOMP_IOCTL_NOTIF_SEND, raw::Arg(response_.data()));
    if (!made) {
      Record(request->data);
    }
    if (sent < 0 &&
        sent != -ENOENT) {  // ENOENT: the caller died or was interrupted; the attempt still counts
      return sys::ErrnoError("isolation.seccomp.answer", "cannot answer a seccomp notification",
                             sent);
    }
  }
  return {};
}

void DenialRecorder::Record(const seccomp_data& data) {
  ++total_;
  std::string name = NameOrNumber(data.nr);
  std::string arguments = DecodeArguments(name, data);
  Count({std::move(name), std::move(arguments), 1});
}

void DenialRecorder::Count(DeniedCall call) {
  std::string key = call.syscall + '(' + call.arguments;
  const auto known = index_.find(key);
  if (known != index_.end()) {
    denials_[known->second].count += call.count;
    return;
  }
  if (HasRoomFor(call)) {
    const size_t at = denials_.size() - (overflowed_ ? 1 : 0);
    index_.emplace(std::move(key), at);
    denials_.insert(denials_.begin() + static_cast<ptrdiff_t>(at), std::move(call));
    return;
  }
  if (!overflowed_) {
    denials_.push_back({"others", "", 0});
    overflowed_ = true;
  }
  denials_.back().count += call.count;
}

bool DenialRecorder::HasRoomFor(const DeniedCall& call) {
  if (index_.size() < kMaxDistinct) {
    return true;
  }
  const std::optional<std::string> group = group_of_ ? group_of_(call) : std::nullopt;
  return group && listed_beyond_.insert(*group).second;
}

}  // namespace coffer::isolation
