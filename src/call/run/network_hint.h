// SPDX-License-Identifier: Apache-2.0
//
// The hint for a caller whose program failed because it has no network. Such a program prints "could not resolve host",
// or nothing.
//
// A boundary without hosts to reach has no name server, so looking up a name leaves no trace. What the caller wrote
// tells more: a URL in the command, or in the script that the command is, names the host to allow. This changes the hint
// only, not the call.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace coffer::call {

// The host, as --allow takes it, of the first URL in the command that leads outside. "HOST" for
// `pip install` and its like, whose registry is a matter of settings.
std::optional<std::string> HostOutside(std::span<const std::string> command);

// The same for the text of a script. Lines that are a comment say nothing of what it does.
std::optional<std::string> HostInScript(std::string_view text);

}  // namespace coffer::call
