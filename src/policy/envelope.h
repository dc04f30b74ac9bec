// SPDX-License-Identifier: Apache-2.0
//
// The envelope: everything one call may touch, as one value.
//
// `coffer run` builds it from flags, a manifest builds it from TOML, and from here on there is one code path.
// Defaults deny: no network, no host path, small limits. Pure data; checking a path against the host is done
// where the path is opened (isolation/host_path.h), because only there is the answer free of races.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "policy/layer.h"

namespace coffer::policy {

enum class Level : uint8_t { kProcess, kContainer, kAuto };
std::string_view LevelName(Level level);
std::optional<Level> FindLevel(std::string_view name);

// Every cap has a value; none is optional. `io` has a value because "no cap" is not something a call can ask for.
struct Limits {
  Nanos cpu = std::chrono::seconds(10);   // of the whole tree
  Nanos wall = std::chrono::seconds(30);  // boot-time clock
  uint64_t memory = 256ULL << 20;         // with swap and everything in tmpfs
  uint64_t processes = 32;                // processes and threads together
  uint64_t open_files = 100;              // per process
  uint64_t disk = 100ULL << 20;           // bytes in each writable place
  uint64_t inodes = 16384;                // files in each writable place
  uint64_t io = 1ULL << 30;               // bytes to and from block devices
  uint64_t output = 1ULL << 20;           // stdout and stderr together
  uint64_t tmp = 16ULL << 20;             // size of /tmp
  bool operator==(const Limits&) const = default;
};

// How many files a writable place may hold if only its size was given: as many per byte as the defaults have, so that a
// project that fits by size also fits by number. At least `least`.
constexpr uint64_t InodesFor(uint64_t bytes, uint64_t least) {
  constexpr uint64_t kBytesPerInode = 6400;
  constexpr uint64_t kMostInodes = 1000000;
  return std::max(least, std::min(bytes / kBytesPerInode, kMostInodes));
}

enum class Access : uint8_t { kRead, kWrite };

// A host directory or file that is visible inside at `at`.
struct Mount {
  std::string host;  // absolute, as the caller gave it
  std::string at;    // absolute inside
  Access access = Access::kRead;
  bool dangerous = false;  // broad, and a manifest's dangerously_host says why; never from flags
  bool system = false;     // writable below the system's directories: --dangerously-rw
  bool operator==(const Mount&) const = default;
};

enum class SyscallProfile : uint8_t { kStrict, kDefault, kCompat, kImported };
std::string_view SyscallProfileName(SyscallProfile profile);

struct Envelope {
  Level level = Level::kAuto;
  LayerSet floor;
  Limits limits;
  std::vector<Mount> mounts;  // --ro, --rw, --out
  std::string workspace;      // a session's directory that is /workspace; empty: a fresh one
  Access workspace_access = Access::kWrite;
  std::vector<std::string> inputs;    // host files brought in read-only, by copy, under /in
  std::vector<std::string> runtimes;  // empty: what the command needs
  std::vector<std::string> optional_runtimes;  // beside them, where the host has them
  std::vector<std::pair<std::string, std::string>> env;
  std::string cwd = "/workspace";
  uint32_t uid = 1000;               // as seen inside
  std::vector<std::string> exports;  // files of /workspace that are kept (policy/export_pattern.h)
  std::vector<std::string> network;  // what a declared tool may reach (policy/egress_line.h)
  uint64_t connections = 0;          // of it at the same time; 0: the proxy's own bound
  SyscallProfile syscalls = SyscallProfile::kDefault;
  std::string imported_seccomp;  // the OCI JSON text, if syscalls is kImported
  bool tty = false;
  bool exec = false;  // files in /workspace, /tmp and mounts can be executed
  bool overlay =
      false;  // read-only directories of the host lie behind an overlay (isolation/child/overlay.h)
};

// One canonical line of JSON: same envelope, same bytes.
std::string CanonicalForm(const Envelope& envelope);
// "sha256:..." over the canonical form.
std::string EnvelopeId(const Envelope& envelope);

// Why a host path is too broad to be mounted ("/", "/etc", "/home", a runtime socket, ...), or nothing.
// `path` is absolute and free of "..", "." and double slashes.
std::optional<std::string> OverBroadReason(std::string_view path);

}  // namespace coffer::policy
