// SPDX-License-Identifier: Apache-2.0
//
// A HostPath is a path of the host that was opened once, without following any link, and found fit to be mounted.
//
// What is mounted later is this descriptor (with privilege) or the same device and inode (without), so swapping the
// path for a link after the check changes nothing (R36, R37). Refused: links anywhere in the path, "..", sockets, fifos and
// devices, paths that are too broad by name or by being an alias of such a directory, pseudo file systems.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "policy/envelope.h"

namespace coffer::isolation {

struct HostPath {
  UniqueFd fd;       // O_PATH
  std::string path;  // absolute, clean
  bool directory = false;
  dev_t dev = 0;
  ino_t ino = 0;
  uid_t owner = 0;
  gid_t group = 0;
  uint64_t size = 0;
};

// Absolute and without ".", "..", "//"; ".." and control characters are refused, never resolved.
Result<std::string> CleanPath(std::string_view given);

// How broad a path may be: a manifest's dangerously_host, and a session's workspace below our own state directory, are no
// business of the rules about broad paths. Everything else still holds.
enum class Breadth : uint8_t { kNarrow, kAny };
Result<HostPath> OpenHostPath(std::string_view given, policy::Access access,
                              Breadth breadth = Breadth::kNarrow);

// Fifos below a directory: they have no mount flag that stops their use, so each is covered. Bounded: a tree with
// more than `kMaxScanned` entries or too many fifos is refused. Relative paths, in no order.
Result<std::vector<std::string>> FindFifos(const HostPath& root);
inline constexpr size_t kMaxScanned = 2000000;
inline constexpr size_t kMaxFifos = 64;

}  // namespace coffer::isolation
