// SPDX-License-Identifier: Apache-2.0
//
// Which denied system calls look like an attempt to leave the boundary.
//
// Only calls that no ordinary program makes by habit: a denied chown is a program that does not know where it is, a
// denied setns is one that does. The kind names what was reached for. It judges by names alone, and what the kernel
// refused before the filter saw it is not in here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace coffer::watch {

// "namespace" | "mount" | "process" | "kernel" | "keyring", or nothing: a denial like any other.
std::optional<std::string_view> FindIncident(std::string_view denied_syscall);

// A sentence for each name that is one, for the receipt: "namespace: pivot_root was tried 2 times and denied".
std::vector<std::string> DescribeIncidents(
    const std::vector<std::pair<std::string, uint64_t>>& denied_syscalls);

}  // namespace coffer::watch
