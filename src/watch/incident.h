// SPDX-License-Identifier: Apache-2.0
//
// Which denied system calls look like an attempt to leave the boundary (R89).
//
// Only calls that no ordinary program makes by habit: a denied chown is a program that does not know where it is, a
// denied setns is one that does. The kind names what was reached for. It judges by names alone, and what the kernel
// refused before the filter saw it is not in here.
#pragma once

#include <optional>
#include <string_view>

namespace coffer::watch {

// "namespace" | "mount" | "process" | "kernel" | "keyring", or nothing: a denial like any other.
std::optional<std::string_view> FindIncident(std::string_view denied_syscall);

}  // namespace coffer::watch
