// SPDX-License-Identifier: Apache-2.0
#include "cli/call_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "audit/receipt.h"
#include "base/exit_codes.h"
#include "base/json.h"
#include "base/print.h"
#include "call/run/refusal_note.h"

namespace coffer::cli {
namespace {

// The same names as the answer of POST /v1/calls.
std::string AnswerJson(const call::ToolReply& reply) {
  const auto number = [](const std::optional<int>& value) {
    return value ? Json(*value) : Json(nullptr);
  };
  Json json;
  json["call_id"] = reply.call_id.empty() ? Json(nullptr) : Json(reply.call_id);
  json["outcome"] = reply.outcome;
  json["result"] = nullptr;
  if (reply.outcome != "denied") {
    json["result"] = {
        {"stdout", reply.stdout_text},
        {"stderr", reply.stderr_text},
        {"truncated", reply.truncated},
        {"exit", {{"code", number(reply.exit_code)}, {"signal", number(reply.exit_signal)}}},
        {"structured", nullptr}};
  }
  json["error"] = nullptr;
  if (!reply.error_class.empty()) {
    json["error"] = {{"class", reply.error_class}, {"message", reply.error_message}};
  }
  json["denials"] = Json::array();
  for (const audit::Denial& denial : reply.denials) {
    json["denials"].push_back({{"surface", denial.surface},
                               {"operation", denial.operation},
                               {"target", denial.target},
                               {"rule", denial.rule},
                               {"reason", denial.reason},
                               {"fix", denial.fix.empty() ? Json(nullptr) : Json(denial.fix)}});
  }
  json["log"] = call::LogJson(reply.log);
  json["replayed"] = reply.replayed;
  return PrintJson(json);
}

// A tool that is there to write a file, in a workspace that ended with the call.
bool WroteForNothing(const call::ToolShelf& shelf, const call::ToolRequest& request,
                     const call::ToolReply& reply) {
  const std::shared_ptr<const policy::Tool> tool = shelf.Find(request.identity.tool);
  if (tool == nullptr || reply.outcome != "success" || request.dry_run ||
      !request.identity.session_id.empty()) {
    return false;
  }
  const auto& paths = tool->manifest.run.paths;
  return std::any_of(paths.begin(), paths.end(), [](const policy::PathParameter& path) {
    return path.access == policy::Access::kWrite && path.mount == "/workspace";
  });
}

// How many files were kept. The receipt names them.
size_t Exported(const call::ToolReply& reply) {
  const Result<audit::Receipt> receipt = audit::ParseReceipt(reply.receipt);
  return receipt.ok() ? receipt->exported.size() : 0;
}

// What the network refused. A call that was refused as a whole has said why already.
void PrintRefusals(const call::ToolReply& reply) {
  size_t refused = 0;
  for (const audit::Denial& denial : reply.denials) {
    if (denial.surface == "egress" && reply.outcome != "denied" &&
        ++refused <= call::kMostRefusalNotes) {
      PrintError("coffer: note: " + call::RefusalNote(denial));
    }
  }
  if (refused > call::kMostRefusalNotes) {
    PrintError(fmt::format("coffer: note: refused: {} more; `coffer audit show {}` has them",
                           refused - call::kMostRefusalNotes, reply.call_id));
  }
}

// The whole sentences: stderr is read by the owner of the command line.
Error OperatorError(const call::ToolReply& reply) {
  Error error{ErrorKind::kRefused, reply.error_class, reply.error_message, reply.hint, 0};
  if (!reply.operator_message.empty()) {
    error.message = reply.operator_message;
    error.hint = reply.operator_hint;
  }
  return error;
}

}  // namespace

int ExitStatus(const call::ToolReply& reply) {
  if (reply.outcome == "success") {
    return reply.exit_code.value_or(0);
  }
  if (reply.error_class.starts_with("limit.")) {
    return kExitLimit;
  }
  if (reply.refusal == call::ToolRefusal::kFailed) {
    return kExitFailed;
  }
  if (reply.exit_code) {
    return *reply.exit_code;
  }
  if (reply.exit_signal) {
    return kExitSignalled + *reply.exit_signal;
  }
  return reply.outcome == "denied" ? kExitRefused : kExitFailed;
}

void PrintReply(const call::ToolReply& reply, const call::ToolRequest& request,
                const call::ToolShelf& shelf, bool json) {
  Error error = OperatorError(reply);
  if (json) {
    PrintOut(AnswerJson(reply) + "\n");
    // The document may be handed on to an agent, so it names no path of the host.
    if (!reply.error_class.empty() && error.message != reply.error_message) {
      PrintError(error);
    }
  } else if (!reply.error_class.empty()) {
    if (reply.error_class == "limit.output") {
      error.hint = "limits.output of the manifest allows more";
    } else if (reply.error_class == "policy.session" && error.hint.empty()) {
      error.hint =
          "`coffer sessions list` names those that are open; `coffer sessions new` makes one";
    }
    PrintError(error);
  }
  if (reply.truncated && reply.error_class != "limit.output") {
    PrintError(
        "coffer: warning: the output was truncated; limits.output of the manifest allows more");
  }
  if (!json) {
    PrintRefusals(reply);
  }
  if (const size_t kept = json ? 0 : Exported(reply); kept > 0) {
    PrintError(
        fmt::format("coffer: note: {} of this call {} kept; `coffer audit files {}` lists {}",
                    kept == 1 ? "a file" : fmt::format("{} files", kept), kept == 1 ? "is" : "are",
                    reply.call_id, kept == 1 ? "it" : "them"));
  }
  if (WroteForNothing(shelf, request, reply)) {
    PrintError(fmt::format(
        "coffer: note: the workspace of {} ended with this call, and the file in it is gone; "
        "`coffer sessions new` makes one that stays, for --session ID",
        request.identity.tool));
  }
}

}  // namespace coffer::cli
