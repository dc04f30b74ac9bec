// SPDX-License-Identifier: Apache-2.0
//
// The verbs of `coffer` that main.cc knows by nothing but a function: each takes the words after its name and returns
// the exit status. Those with more to offer have a header of their own (verb_run.h, verb_audit.h, verb_processes.h).
#pragma once

#include <span>
#include <string_view>

#include "isolation/boundary.h"

namespace coffer::cli {

// `coffer access`: lists the hosts that calls of the daemon wait for, and sends the answer of an
// operator.
int AccessVerb(std::span<const std::string_view> words);

// `coffer cache`: the directories that --cache keeps between the calls of a project.
int CacheVerb(std::span<const std::string_view> words);

// `coffer call TOOL`: a declared tool, through the whole ladder, without a daemon.
int CallVerb(std::span<const std::string_view> words);

// `coffer doctor`: what this host can enforce, level by level and layer by layer, and how to fix
// what it cannot. Exit status 1 if the default level cannot be reached.
int DoctorVerb(std::span<const std::string_view> words);

// `coffer key`: API keys, made, listed and revoked by the owner of the state directory.
int KeyVerb(std::span<const std::string_view> words);

// `coffer mcp`: the declared tools for an MCP client that starts this program and talks to it over
// stdin and stdout.
int McpVerb(std::span<const std::string_view> words);

// The verbs below `coffer mcp`: wrap and review, for other people's MCP servers, and install.
int WrapVerb(std::span<const std::string_view> words);
int ReviewVerb(std::span<const std::string_view> words);
int InstallVerb(std::span<const std::string_view> words);

// `coffer runtimes`: the named runtimes, which of them this host has, and what each makes visible.
int RunRuntimesVerb(std::span<const std::string_view> words);

// `coffer serve` hands over to `cofferd`, which lies beside it; `coffer warden` is what cofferd
// starts for the one role that needs privilege.
int ServeVerb(std::span<const std::string_view> words);
int WardenVerb(std::span<const std::string_view> words);

// `coffer sessions`: workspaces that calls share, what runs in their background, and an end to
// them.
int SessionsVerb(std::span<const std::string_view> words, isolation::OwnWords own);

// `coffer shell`: an interactive boundary for the project in the current directory. It is `coffer
// run --project . --tty` with a shell and without limits of a script: words in, words for `coffer
// run` out, so there is one code path.
int ShellVerb(std::span<const std::string_view> words, isolation::OwnWords own);

// `coffer switch`: stops agents, tools, sessions and tenants, and lets them go on.
int SwitchVerb(std::span<const std::string_view> words);

// `coffer tools`: what can be called, what is wrong with a manifest, and a new one to start from.
int ToolsVerb(std::span<const std::string_view> words);

}  // namespace coffer::cli
