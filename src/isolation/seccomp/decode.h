// SPDX-License-Identifier: Apache-2.0
//
// Arguments of a system call as a person would write them: "AF_VSOCK, SOCK_STREAM, 0".
//
// From the registers alone. Pointers are shown as "ptr" or "null": their values say nothing, differ on every
// run and would turn one repeated call into many records.
#pragma once

#include <linux/seccomp.h>

#include <string>
#include <string_view>

namespace coffer::isolation {

// For a name without an entry in the table: the six registers in hex.
std::string DecodeArguments(std::string_view syscall, const seccomp_data& data);

}  // namespace coffer::isolation
