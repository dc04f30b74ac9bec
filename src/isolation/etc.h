// SPDX-License-Identifier: Apache-2.0
//
// The /etc of a boundary: just enough for programs to start, made up, never the host's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "isolation/plan.h"

namespace coffer::isolation {

// passwd and group with root, the boundary's user and nobody; hosts with localhost; nsswitch
// without a name service; the usual services and protocols.
std::vector<PrivateFile> SyntheticEtc(uint32_t uid, const std::string& hostname);
// The nsswitch.conf of a boundary with a resolver.
std::string SwitchWithNames();
// UTC. Without the file the C library assumes it; some runtimes look.
PrivateFile SyntheticLocaltime();

// The name of that user.
inline constexpr const char* kUserName = "agent";

}  // namespace coffer::isolation
