// SPDX-License-Identifier: Apache-2.0
//
// The messages of the gateway and the monitor to the warden. They have a fixed size and go over seqpacket sockets that
// were made before any role dropped a privilege. Descriptors travel with them; data of variable size is in a sealed
// memfd (call/warden/wire.h).
//
// Each launched call has a socket of its own for its report: one stream of bytes, then the end. Its
// runner writes it; the warden does so for a call that gets no runner, without ever waiting. An end
// without a report means that the runner died, and how far the call came is unknown.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace coffer::call {

enum class WardenVerb : uint32_t {
  // Descriptors: request, stdin, stdout, stderr, report, up to kMostPortChannels that lead to
  // processes of the session, and the one to the gateway of a call that calls tools, if it does
  // (HasToolsChannel).
  kLaunch = 1,
  kKill = 2,   // the call is killed at once
  kTable = 3,  // descriptors: the table (call/warden/table.h); from the monitor
  // About the file system of a session (call/warden/volumes.h); the id is the session's.
  // Descriptor: a socket for the answer.
  kOpenVolume = 4,
  kCloseVolume = 5,
  kSignal = 6,  // `size` is the number of a signal for what the call runs
};

// The verbs of each peer: the gateway launches, kills and asks for volumes, the monitor hands over tables.
enum class WardenPeer : uint8_t { kGateway, kMonitor };

struct WardenMessage {
  uint32_t magic = 0x636f5710;
  uint32_t version = 2;
  uint32_t verb = 0;
  uint32_t reserved = 0;
  uint64_t size = 0;        // bytes in the request or table, or of the volume
  char call_id[40] = {};    // NUL-terminated; empty for a table
  char parent_id[40] = {};  // the same, of the call that makes this one; empty but for a launch
};
static_assert(sizeof(WardenMessage) == 104);

inline constexpr size_t kLaunchDescriptors = 5;
inline constexpr size_t kMostPortChannels = 4;
inline constexpr size_t kVolumeDescriptors = 1;
constexpr bool IsVolumeVerb(uint32_t verb) {
  return verb == static_cast<uint32_t>(WardenVerb::kOpenVolume) ||
         verb == static_cast<uint32_t>(WardenVerb::kCloseVolume);
}

struct ReceivedMessage {
  WardenMessage message;
  std::vector<UniqueFd> descriptors;
  bool ended = false;  // the other role is gone
  bool empty = false;  // nothing waits
};

struct SocketPair {
  UniqueFd first, second;
};
// Two connected unix sockets of that type, with SOCK_CLOEXEC.
Result<SocketPair> MakeSocketPair(int type);

Status SendMessage(int socket, const WardenMessage& message, std::span<const int> descriptors);
// Never waits. A message that is not exactly as above is an error, and so are a verb that is not the peer's and
// descriptors that do not belong to it.
Result<ReceivedMessage> ReceiveMessage(int socket, WardenPeer peer);
// True if a launch's descriptors are what they must be: a sealed memfd for stdin, pipes or sockets
// for stdout and stderr, a unix stream socket for the report, and unix seqpacket sockets after it;
// the last may be a stream. Writing to anything else could wait, or act with the runner's rights.
bool AreLaunchDescriptors(const std::vector<UniqueFd>& descriptors);
// The same for a message about a volume: a unix stream socket for the answer.
bool AreVolumeDescriptors(const std::vector<UniqueFd>& descriptors);
// Of a launch: the last one is the channel of a call that calls tools.
bool HasToolsChannel(const std::vector<UniqueFd>& descriptors);

// Monitor: `table` is a sealed memfd of `size` bytes. Never waits.
Status SendTable(int socket, int table, uint64_t size);

// A memfd that can be written until it is sealed; from then on no process can change it.
Result<UniqueFd> MakeMemoryFile();
Status Seal(int fd);
// `bytes` as a sealed memfd.
Result<UniqueFd> SealedBytes(std::string_view bytes);
// The bytes of such a memfd; refuses one that is not sealed or not of that size.
Result<std::string> ReadSealed(int fd, uint64_t size);

}  // namespace coffer::call
