// SPDX-License-Identifier: Apache-2.0
//
// The everyday tools that come with the runtimes "sh" and "bash", where the host has them.
//
// Each one is a mount, so the list is what scripts use and not what exists. Not in it, on purpose: compilers, package
// managers, anything setuid, anything that mounts, changes users or speaks to the network (mount, su, ip, nc, ssh),
// and ps, which drags in eight libraries of the service manager.
#pragma once

#include <span>
#include <string_view>

namespace coffer::isolation {

std::span<const std::string_view> ShellTools();

}  // namespace coffer::isolation
