// SPDX-License-Identifier: Apache-2.0
//
// The supervisor's side of a filter. Some system calls are made by a server in the caller's place, and the caller gets
// their result. Every other one is recorded and answered with EPERM.
//
// A refusal reads registers only. It does not read the caller's memory, which can change between check and use. No call
// but the clone of a thread (thread_gate.h) is ever let through from here, so a lost race can make a record less exact,
// but cannot allow a call. The servers: connect_server.h, lock_server.h and sysinfo_server.h, and at the process level
// attribute_server.h. A flood cannot grow the record: after kMaxDistinct different calls the rest is one counter, but for the
// first of each group that must not be hidden (ListBeyond).
#pragma once

#include <linux/seccomp.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "isolation/seccomp/attribute_server.h"
#include "isolation/seccomp/connect_server.h"
#include "isolation/seccomp/lock_server.h"
#include "isolation/seccomp/sysinfo_server.h"
#include "isolation/seccomp/thread_gate.h"

namespace coffer::isolation {

struct DeniedCall {
  std::string
      syscall;  // "clone", "syscall_463" for a number without a name, "others" for the overflow bucket
  std::string arguments;  // "CLONE_NEWUSER|SIGCHLD, ptr, ..."; pointers are never numbers
  uint64_t count = 0;
  // A connect that the supervisor made, and that could not be; otherwise the profile refused it.
  std::optional<RefusedConnect::Why> connect;
  bool read_only_lock =
      false;  // a lock that the supervisor did not take, because its file may only be read
};

class DenialRecorder {
 public:
  static constexpr size_t kMaxDistinct = 256;

  // From now on the calls that `plan` hands to the supervisor are made for the caller. `uid` is the boundary's on the
  // host, `places` are its own tmpfs, `memory` is its cap.
  void ServeCalls(const BoundaryPlan& plan, uint32_t uid, std::span<const UniqueFd> places,
                  uint64_t memory);

  // From now on threads that the filter asks for are made within this cap. The gate; nullptr: there is none.
  void ServeThreads(std::unique_ptr<ThreadGate> gate) { threads_ = std::move(gate); }
  ThreadGate* threads() const { return threads_.get(); }

  // Answers what is pending on `notify_fd`, at most kBatch calls, and never waits; call it whenever the descriptor
  // polls readable. The bound keeps a flood of denied calls from starving the caller's loop: what is left makes the
  // descriptor readable again at once. Fails only if the descriptor is not a listener or memory ran out.
  Status Serve(int notify_fd);

  // Takes over the refusals of servers that answer later. Serve does this; once more when all has ended.
  void TakeLateRefusals();

  // Of calls beyond kMaxDistinct the first of each group is listed too, so that other denials do not hide it. Nothing: it
  // belongs to none. There are few groups, whatever a program does.
  using GroupOf = std::function<std::optional<std::string>(const DeniedCall& denied)>;
  void ListBeyond(GroupOf group) { group_of_ = std::move(group); }

  // In order of first appearance; "others" is last.
  const std::vector<DeniedCall>& denials() const { return denials_; }
  // How many calls were refused in all.
  uint64_t total() const { return total_; }
  // Of the connects that the supervisor made, how many had no route. Also those beyond the list.
  uint64_t unrouted_connects() const { return connects_ != nullptr ? connects_->unrouted() : 0; }
  // The last process under the filter is gone: stop polling the descriptor, it stays readable for ever.
  bool hung_up() const { return hung_up_; }

  // Adds one refused call. Serve does this; public so that records can be tested without a kernel.
  void Record(const seccomp_data& data);

  static constexpr int kBatch = 64;
  // So many calls as counting all processes once takes the time of.
  static constexpr int kCountCosts = 16;

 private:
  Status Prepare(int notify_fd);
  // What a server made of it: the answer, 0 in `later` if it answers by itself. Nothing: refuse it.
  std::optional<long> Made(int notify_fd, const seccomp_notif& request, bool* later);
  void Count(DeniedCall call);
  bool HasRoomFor(const DeniedCall& call);

  std::vector<DeniedCall> denials_;
  std::unordered_map<std::string, size_t> index_;
  GroupOf group_of_;
  std::set<std::string> listed_beyond_;  // groups
  bool overflowed_ = false;              // denials_ ends with "others"
  std::vector<std::byte> request_;       // as large as the kernel says its structs are
  std::vector<std::byte> response_;
  std::shared_ptr<AttributeServer> attributes_;
  std::unique_ptr<ConnectServer> connects_;
  std::unique_ptr<LockServer> locks_;
  std::unique_ptr<SysinfoServer> figures_;
  std::unique_ptr<ThreadGate> threads_;
  int connect_number_ = -1;
  int flock_number_ = -1;
  int sysinfo_number_ = -1;
  uint64_t total_ = 0;
  bool hung_up_ = false;
};

}  // namespace coffer::isolation
