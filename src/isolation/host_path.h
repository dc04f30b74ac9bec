// SPDX-License-Identifier: Apache-2.0
//
// A HostPath is something of the host that was opened once, without following any link, and found
// fit to be shown inside a boundary. Everything that is bound goes through here: mounts, inputs,
// the program, its loader and libraries, the trees of a runtime (opened_runtime.h).
//
// It is examined through an O_PATH descriptor, before anything is opened for reading: a fifo or
// device that a file names is never opened. What is mounted later is this descriptor (with
// privilege) or the same device, inode and type (without), so swapping the path for a link after
// the check changes nothing. The descriptor stays open until then, so the inode cannot be reused.
// Refused: links anywhere in the path, "..", sockets, fifos and devices, pseudo file systems, and,
// for the caller's own directories, paths that are too broad by name or under another name, and
// writing to the system's directories.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "isolation/system_paths.h"
#include "policy/envelope.h"

namespace coffer::isolation {

// Two classes, no third. The system's own (system_paths.h) may be named by anything. The caller's is everything else.
enum class PathClass : uint8_t { kSystem, kCaller };

// Why it is shown, for the receipt.
enum class BindReason : uint8_t {
  kRuntime,  // a tree or file of a runtime
  kProgram,
  kScript,
  kLoader,
  kLibrary,
  kMount,
  kInput,
  kWorkspace,
};
std::string_view PathClassName(PathClass path_class);
std::string_view BindReasonName(BindReason reason);

struct HostPath {
  UniqueFd fd;       // O_PATH
  std::string path;  // absolute, clean
  bool directory = false;
  dev_t dev = 0;
  ino_t ino = 0;
  uid_t owner = 0;
  gid_t group = 0;
  uint64_t size = 0;
  PathClass path_class = PathClass::kCaller;
  BindReason reason = BindReason::kMount;
};

// Absolute and without ".", "..", "//"; ".." and control characters are refused, never resolved.
Result<std::string> CleanPath(std::string_view given);

// Opens and examines `path`, which is clean. It may be of either class and as broad as it likes: those rules are the
// callers', below and in opened_runtime.h. The errno is in the error if it cannot be opened.
Result<HostPath> ExamineHostPath(std::string path, BindReason reason, SystemPaths& system);

// What a path may be that the caller names. kNarrow: neither too broad nor, for writing, one of the
// system's directories. kSystem: the second is allowed, by --dangerously-rw. kAny: both are, by a
// manifest's dangerously_host, and for a session's workspace below our own state directory.
// Everything else still holds.
enum class Breadth : uint8_t { kNarrow, kSystem, kAny };
Breadth BreadthOf(const policy::Mount& mount);
// A path that the caller named, for a mount, an input or a workspace.
Result<HostPath> OpenHostPath(std::string_view given, policy::Access access,
                              Breadth breadth = Breadth::kNarrow,
                              BindReason reason = BindReason::kMount);

// Refuses a directory that is too broad by name, or is such a directory under another name, or the caller's home.
Status CheckNotBroad(const HostPath& path);

// Refuses one of the system's directories (system_paths.h), or one below it, under whatever name.
// What a payload wrote there would be root's, because mounts are mapped to their owner: the next
// step is the host.
Status CheckNotSystem(const HostPath& path);

// For a mount of a declared tool: a directory that root owns is writable only with the manifest's dangerously_host.
Status CheckToolMayWrite(const HostPath& path, const policy::Mount& mount);

// The examined file itself, opened for reading: its name is not looked up again. kRefused unless it is a regular file.
Result<UniqueFd> OpenForReading(const HostPath& path);

}  // namespace coffer::isolation
