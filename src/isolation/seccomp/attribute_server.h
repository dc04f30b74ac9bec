// SPDX-License-Identifier: Apache-2.0
//
// Changes of modes, owners, times and extended attributes at the process level, made by the supervisor.
//
// Landlock does not govern metadata, and at the process level the payload may have the caller's own uid. So the filter
// refuses every such call (shared_host.h), and this server makes the change for the payload if the file lies in a tree
// that it was granted for writing. Programs such as tar, cp and git need that in their own workspace.
//
// Nothing that the payload can change between look and use decides: the path is read from its memory once, and opened
// below a granted tree by openat2, which leaves that tree by no link and no "..". The change is made on the descriptor
// that was opened. A path or a link that was swapped meanwhile leads to another file of the same tree, or nowhere. The
// payload's own call is never continued.
//
// As root the supervisor could change every file: therefore only files of the boundary's own uid are changed, the owner
// never, and of the extended attributes only those called "user.".
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "isolation/plan.h"

namespace coffer::isolation {

class WaitingThread;

class AttributeServer {
 public:
  // The writable trees of a plan at the process level; the descriptors of its rules must still be open. `uid` is the
  // one that the boundary has on the host.
  AttributeServer(const BoundaryPlan& plan, uint32_t uid);

  // 0 or -errno, as the kernel would have answered. Nothing: the call is to be refused and recorded, because it is not
  // one of these, the profile refuses it, its file is outside, or the payload's memory cannot be read.
  std::optional<long> Answer(int notify_fd, const seccomp_notif& request) const;

  // True if the file behind a descriptor of this process lies in one of those trees.
  bool MayChange(int file) const;

 private:
  struct Tree {
    UniqueFd fd;
    std::vector<std::string> names;  // as the plan has it, and without links
  };
  struct Signature;
  struct Target;
  struct Change;

  static const Signature* FindSignature(std::string_view syscall);
  // 0, the answer for a call that makes no sense, or nothing if the caller's memory cannot be read.
  static std::optional<long> ReadTarget(const Signature& call, const seccomp_data& data,
                                        WaitingThread& caller, Target* target);
  static std::optional<long> ReadChange(const Signature& call, const seccomp_data& data,
                                        WaitingThread& caller, Change* change);
  std::optional<long> Open(const Target& target, UniqueFd* file) const;
  UniqueFd OpenSame(const UniqueFd& theirs) const;
  std::optional<UniqueFd> OpenBelow(const std::string& path, bool follow, long* error) const;
  std::optional<long> Make(const Change& change, int file) const;

  std::vector<Tree> trees_;
  std::vector<sock_filter> allowed_;  // the profile before calls on metadata were refused
  uint32_t uid_;
};

}  // namespace coffer::isolation
