// SPDX-License-Identifier: Apache-2.0
#include "base/print.h"
#include "cli/mcp_calls.h"
#include "cli/mcp_conversation.h"
#include "cli/text_verb.h"
#include "cli/verbs.h"
#include "isolation/caller_path.h"
#include "isolation/host_path.h"

namespace coffer::cli {
namespace {

constexpr std::string_view kMcpUsage =
    R"(Serve the declared tools over MCP on stdin and stdout, for an agent that starts this program.

Usage: coffer mcp [--project DIR] [flags]
       coffer mcp wrap [flags] -- CMD     the tools of another MCP server, which runs in a boundary, or is at --url URL
       coffer mcp review [NAME]           what has changed in the tools of a wrapped server
       coffer mcp install [--print]       the entry in the configuration of the agents that are found here

  --project DIR       the tools work in this directory of yours, at its own path, instead of the session's files. What
                      runs code on the host later (.git/hooks, .vscode, ...) is read-only, as with `coffer run --project`
  --session ID        work in this session (`coffer sessions new`), which stays afterwards; without it there is a new one,
                      which ends with the client
  --config FILE       the limits of tenants and agents (coffer.toml in the operator's directory)
  --state DIR, --tools DIR   as in `coffer tools --help`

In an agent's configuration:

  {"mcpServers": {"coffer": {"command": "coffer", "args": ["mcp"]}}}
  {"mcpServers": {"coffer": {"command": "coffer", "args": ["mcp", "--project", "/home/me/project"]}}}

No daemon is needed. Every call climbs the whole ladder and has a receipt (`coffer audit list`). It speaks MCP 2026-07-28,
2025-11-25, 2025-06-18 and 2025-03-26. When the client closes stdin, calls that still run have five seconds to end.

Exit status: 0 when the client has left; 120 refused, 125 Cofferdam failed.
)";

constexpr call::FlagSpec kMcpFlags[] = {
    {"--session", true}, {"--project", true}, {"--config", true}};

// What a mount of the project would refuse is said before the client is answered.
Result<std::string> ResolveProject(const call::VerbFlags& flags) {
  if (!flags.Has("--project")) {
    return std::string();
  }
  TRY_ASSIGN(const isolation::CallerPath found,
             isolation::ResolveCallerPath(flags.Value("--project"), policy::Access::kWrite));
  TRY_ASSIGN(const isolation::HostPath opened,
             isolation::OpenHostPath(found.path, policy::Access::kWrite));
  if (!opened.directory) {
    return Refused("policy.usage", "--project needs a directory", "write --project .");
  }
  return opened.path;
}

}  // namespace

int McpVerb(std::span<const std::string_view> words) {
  if (!words.empty() && words.front() == "wrap") {
    return WrapVerb(words.subspan(1));
  }
  if (!words.empty() && words.front() == "review") {
    return ReviewVerb(words.subspan(1));
  }
  if (!words.empty() && words.front() == "install") {
    return InstallVerb(words.subspan(1));
  }
  const Result<call::VerbFlags> flags = call::VerbFlags::Parse("mcp", words, kMcpFlags);
  if (!flags.ok()) {
    return FailVerb(flags.error());
  }
  if (flags->help()) {
    PrintOut(kMcpUsage);
    return 0;
  }
  if (!flags->words().empty() || !flags->rest().empty()) {
    return FailVerb(Refused(
        "policy.usage", "coffer mcp takes no words",
        "`coffer mcp wrap -- CMD` wraps another server; `coffer mcp --help` has the flags"));
  }
  const Result<std::string> project = ResolveProject(*flags);
  if (!project.ok()) {
    return FailVerb(project.error());
  }
  Result<std::unique_ptr<LocalLadder>> ladder = LocalLadder::Open(*flags, *project);
  if (!ladder.ok()) {
    return FailVerb(ladder.error());
  }
  const UniqueFd signals = CatchEndingSignals();
  Result<std::unique_ptr<McpCalls>> calls = McpCalls::Open(**ladder, flags->Value("--session"));
  if (!calls.ok()) {
    return FailVerb(calls.error());
  }
  Converse(**calls, signals.get());
  const Status ended = (*calls)->End();
  return ended.ok() ? 0 : FailVerb(ended.error());
}

}  // namespace coffer::cli
