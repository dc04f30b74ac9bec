// SPDX-License-Identifier: Apache-2.0
//
// The file systems of sessions, between the gateway that wants them and the warden that may mount.
//
// The gateway names a session and a size. It chooses neither the image nor where it is mounted: that is `volumes`
// beside the directory of sessions, which must be root's alone, and the session's directory, which must be a real
// directory and not a link. The image was made by mke2fs just before, or by an earlier request. A gateway
// that is broken into can fill the disk up to the ceilings below, and end sessions, which it owns anyway.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "call/warden/protocol.h"

namespace coffer::call {

inline constexpr uint64_t kSmallestVolume = 1ULL << 20;
inline constexpr uint64_t kLargestVolume = 64ULL << 30;
inline constexpr size_t kMostVolumes = 4096;

// In a child of the warden: carries out the message and answers on the socket `answer`, once, without waiting for a
// reader.
[[noreturn]] void ServeVolume(const std::string& sessions, const WardenMessage& message,
                              int answer);

// In the gateway: asks and waits for the answer. Code limits::kNoVolumes: this host has none.
Status AskForVolume(int control, WardenVerb verb, const std::string& session_id, uint64_t bytes);

}  // namespace coffer::call
