// SPDX-License-Identifier: Apache-2.0
//
// Makes calls of a declared tool in this process, in a session, with the ladder, the launcher and the record that `coffer mcp` has:
// what a call over stdio is compared with (scripts/bench_mcp.py).
//
//   call_in_process SESSION TOOL ARGS      for each line on stdin one call; its milliseconds on stdout
#include <fmt/format.h>
#include <stdio.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <variant>

#include "base/ids.h"
#include "base/print.h"
#include "call/warden/collect.h"
#include "cli/local_ladder.h"
#include "cli/local_sessions.h"

namespace coffer::cli {
namespace {

Result<double> CallOnce(LocalLadder& local, call::LocalLauncher& launcher,
                        const std::string& session, const std::string& tool,
                        const std::string& args) {
  call::ToolRequest request;
  request.identity.agent = kCliAgent;
  request.identity.user = fmt::format("uid:{}", ::getuid());
  request.identity.tool = tool;
  request.identity.session_id = session;
  request.args_json = args;
  TRY_ASSIGN(request.idempotency_key, NewId());
  const auto began = std::chrono::steady_clock::now();
  std::variant<call::ReadyCall, call::ToolReply> climbed = local.ladder().Climb(request);
  if (const auto* refused = std::get_if<call::ToolReply>(&climbed)) {
    return Refused(refused->error_class, refused->error_message);
  }
  call::ReadyCall& ready = std::get<call::ReadyCall>(climbed);
  ready.run.marks_cut = true;
  ready.run.session = session;
  std::variant<call::RunChannels, call::ToolReply> launched =
      local.ladder().Launch(ready, launcher);
  if (const auto* refused = std::get_if<call::ToolReply>(&launched)) {
    return Refused(refused->error_class, refused->error_message);
  }
  call::Collected collected = call::Collect(std::move(std::get<call::RunChannels>(launched)), {});
  launcher.Reap(ready.call_id());
  const call::ToolReply reply = local.ladder().Descend(ready, std::move(collected));
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - began;
  if (reply.outcome != "success") {
    return Refused(reply.error_class, reply.error_message);
  }
  return took.count();
}

Status Serve(const std::string& session, const std::string& tool, const std::string& args) {
  TRY_ASSIGN(const call::VerbFlags flags, call::VerbFlags::Parse("call", {}, {}));
  TRY_ASSIGN(const std::unique_ptr<LocalLadder> local, LocalLadder::Open(flags));
  TRY_ASSIGN(LocalSessions sessions, LocalSessions::Open(local->state()));
  TRY_ASSIGN(const LocalSessions::Held held, sessions.Hold(session));
  call::LocalLauncher launcher(&local->allowed(), local->tools_maker());
  for (int c = ::getchar(); c != EOF; c = ::getchar()) {
    if (c == '\n') {
      TRY_ASSIGN(const double took, CallOnce(*local, launcher, session, tool, args));
      PrintOut(fmt::format("{:.4f}\n", took));
    }
  }
  return {};
}

}  // namespace
}  // namespace coffer::cli

int main(int argc, char** argv) {
  const coffer::Status served =
      argc == 4 ? coffer::cli::Serve(argv[1], argv[2], argv[3])
                : coffer::Refused("policy.usage", "call_in_process SESSION TOOL ARGS");
  if (!served.ok()) {
    coffer::PrintError(served.error());
    return 1;
  }
  return 0;
}
