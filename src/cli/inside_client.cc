// SPDX-License-Identifier: Apache-2.0
#include "cli/inside_client.h"

#include <errno.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <nlohmann/json.hpp>

#include "base/exit_codes.h"
#include "base/json.h"
#include "base/print.h"
#include "base/sys.h"
#include "base/unique_fd.h"
#include "call/run/launch_tools.h"
#include "call/tool_call.h"
#include "call/tool_shelf.h"
#include "cli/call_answer.h"
#include "gateway/mcp/server.h"

namespace coffer::cli {
namespace {

using raw::Arg;
using raw::Syscall;

constexpr size_t kMostAnswer = size_t{64} << 20;

Result<UniqueFd> ConnectToTools(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return Refused("policy.tools", fmt::format("{} names no socket", call::kToolsVariable));
  }
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  const long made = Syscall(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (made < 0) {
    return sys::ErrnoError("isolation.tools", "cannot make a socket", made);
  }
  UniqueFd socket(static_cast<int>(made));
  long answer = -EINTR;
  while (answer == -EINTR) {
    answer = Syscall(SYS_connect, socket.get(), Arg(&address), sizeof(address));
  }
  if (answer < 0) {
    Error error = sys::ErrnoError("isolation.tools", "cannot reach " + path, answer);
    error.hint = fmt::format(
        "{} is set, so this is taken for a command of `coffer run --tools`; "
        "outside of one, unset it",
        call::kToolsVariable);
    return error;
  }
  return socket;
}

std::string RequestLine(const std::string& tool, Json args) {
  const Json meta = {{gateway::kMcpVersionKey, gateway::kMcpModernVersion},
                     {"io.modelcontextprotocol/clientCapabilities", Json::object()}};
  return PrintJson(
             {{"jsonrpc", "2.0"},
              {"id", 1},
              {"method", "tools/call"},
              {"params", {{"name", tool}, {"arguments", std::move(args)}, {"_meta", meta}}}}) +
         "\n";
}

Result<std::string> ReadLine(int socket) {
  std::string line;
  std::array<char, 65536> buffer;
  while (line.size() < kMostAnswer) {
    const long got = Syscall(SYS_read, socket, Arg(buffer.data()), buffer.size());
    if (got == -EINTR) {
      continue;
    }
    if (got <= 0) {
      break;
    }
    line.append(buffer.data(), static_cast<size_t>(got));
    if (line.ends_with('\n')) {
      return line;
    }
  }
  return HostFault("isolation.tools", "the connection ended without an answer",
                   "the call may have run; the record of the run says so");
}

std::string TextOf(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::optional<int> NumberOf(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number_integer() ? std::optional(found->get<int>())
                                                             : std::nullopt;
}

// The answer as `coffer call` has it elsewhere.
call::ToolReply ReplyOf(const Json& structured) {
  call::ToolReply reply;
  reply.call_id = TextOf(structured, "call_id");
  reply.outcome = TextOf(structured, "outcome");
  reply.stdout_text = TextOf(structured, "stdout");
  reply.stderr_text = TextOf(structured, "stderr");
  reply.exit_code = NumberOf(structured, "exit_code");
  reply.exit_signal = NumberOf(structured, "signal");
  reply.truncated = structured.value("truncated", false);
  if (const auto error = structured.find("error"); error != structured.end()) {
    reply.error_class = error->is_object() ? TextOf(*error, "class") : "";
    reply.error_message = error->is_object() ? TextOf(*error, "message") : "";
    reply.hint = error->is_object() ? TextOf(*error, "hint") : "";
  }
  if (const auto denials = structured.find("denials");
      denials != structured.end() && denials->is_array()) {
    for (const Json& one : *denials) {
      reply.denials.push_back({TextOf(one, "surface"), TextOf(one, "operation"),
                               TextOf(one, "target"), "", TextOf(one, "reason"), TextOf(one, "fix"),
                               1});
    }
  }
  return reply;
}

Result<call::ToolReply> Ask(const std::string& socket, const std::string& tool,
                            const std::string& args_json) {
  Result<Json> args = ParseJson(args_json);
  if (!args.ok() || !args->is_object()) {
    return Refused("policy.args", "the arguments are not one JSON object",
                   "write them as {\"name\": value}");
  }
  TRY_ASSIGN(const UniqueFd connected, ConnectToTools(socket));
  TRY(sys::WriteAll(connected.get(), RequestLine(tool, std::move(*args))));
  TRY_ASSIGN(const std::string line, ReadLine(connected.get()));
  TRY_ASSIGN(const Json answer, ParseJson(line));
  if (const auto error = answer.find("error"); error != answer.end() && error->is_object()) {
    return Refused("policy.tools", TextOf(*error, "message"));
  }
  const auto result = answer.find("result");
  if (result == answer.end() || !result->is_object() || !result->contains("structuredContent") ||
      !result->at("structuredContent").is_object()) {
    return HostFault("isolation.tools", "the answer is not one that this program knows");
  }
  return ReplyOf(result->at("structuredContent"));
}

}  // namespace

std::string ToolsSocket() {
  const char* const named = ::getenv(call::kToolsVariable);
  return named == nullptr ? "" : named;
}

int CallFromInside(const std::string& socket, const call::VerbFlags& flags,
                   const std::string& args_json) {
  for (const char* const elsewhere :
       {"--session", "--idempotency-key", "--key", "--dry-run", "--receipt", "--config", "--state",
        "--tools", "--reason", "--traceparent", "--fail-on-cut"}) {
    if (flags.Has(elsewhere)) {
      PrintError(Refused("policy.usage", fmt::format("{} has no meaning inside a run", elsewhere),
                         "the run decides it: `coffer run --help`"));
      return kExitRefused;
    }
  }
  const Result<call::ToolReply> reply = Ask(socket, flags.words().front(), args_json);
  if (!reply.ok()) {
    PrintError(reply.error());
    return ExitOf(reply.error().kind);
  }
  if (!flags.json()) {
    PrintBytes(reply->stdout_text);
    (void)sys::WriteAll(STDERR_FILENO, reply->stderr_text);
  }
  PrintReply(*reply, {}, call::ToolShelf(std::vector<std::string>()), flags.json());
  return ExitStatus(*reply);
}

}  // namespace coffer::cli
