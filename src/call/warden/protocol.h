// SPDX-License-Identifier: Apache-2.0
//
// Between the gateway and the warden: fixed-size messages on a seqpacket socket that was made before either dropped a
// privilege. Descriptors travel with them; what varies in size is in a sealed memfd (call/warden/wire.h).
//
// Each launched call has a socket of its own for its report, which its runner, not the warden, writes: one stream of
// bytes, then the end. An end without a report means that the runner died, and nobody knows how the call went.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace coffer::call {

enum class WardenVerb : uint32_t {
  kLaunch = 1,  // descriptors: request, stdin, stdout, stderr, report
  kKill = 2,    // the call is killed at once
  // About the file system of a session (call/warden/volumes.h); the id is the session's. Descriptor: a pipe for the answer.
  kOpenVolume = 4,
  kCloseVolume = 5,
};

struct WardenMessage {
  uint32_t magic = 0x636f5710;
  uint32_t version = 1;
  uint32_t verb = 0;
  uint32_t reserved = 0;
  uint64_t size = 0;      // bytes in the request, or of the volume
  char call_id[40] = {};  // NUL-terminated
};
static_assert(sizeof(WardenMessage) == 64);

inline constexpr size_t kLaunchDescriptors = 5;
inline constexpr size_t kVolumeDescriptors = 1;
constexpr bool IsVolumeVerb(uint32_t verb) {
  return verb == static_cast<uint32_t>(WardenVerb::kOpenVolume) ||
         verb == static_cast<uint32_t>(WardenVerb::kCloseVolume);
}

struct ReceivedMessage {
  WardenMessage message;
  std::vector<UniqueFd> descriptors;
  bool ended = false;  // the other role is gone
};

Status SendMessage(int socket, const WardenMessage& message, std::span<const int> descriptors);
// A message that is not exactly as above is an error, and so are descriptors that do not belong to its verb.
Result<ReceivedMessage> ReceiveMessage(int socket);

// `bytes` as a memfd that nobody can change any more.
Result<UniqueFd> SealedBytes(std::string_view bytes);
// The bytes of such a memfd; refuses one that is not sealed or not of that size.
Result<std::string> ReadSealed(int fd, uint64_t size);

}  // namespace coffer::call
