// SPDX-License-Identifier: Apache-2.0
#include "call/tool_call.h"

#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "base/hex.h"
#include "base/json.h"
#include "base/json_text.h"

namespace coffer::call {
namespace {

// Output is any bytes; JSON is not. What is not UTF-8 is replaced on the way out anyway (base/json.h).
Json Optional(const std::optional<int>& value) { return value ? Json(*value) : Json(nullptr); }

std::optional<int> ReadOptional(const Json& value) {
  return value.is_number_integer() ? std::optional<int>(value.get<int>()) : std::nullopt;
}

ToolReply FromJson(const Json& json) {
  ToolReply reply;
  reply.call_id = json.at("call_id").get<std::string>();
  reply.outcome = json.at("outcome").get<std::string>();
  const auto refusal = json.at("refusal").get<uint8_t>();
  reply.refusal = refusal <= static_cast<uint8_t>(ToolRefusal::kFailed)
                      ? static_cast<ToolRefusal>(refusal)
                      : ToolRefusal::kFailed;
  reply.error_class = json.at("error_class").get<std::string>();
  reply.error_message = json.at("error_message").get<std::string>();
  reply.hint = json.at("hint").get<std::string>();
  reply.stdout_text = json.at("stdout").get<std::string>();
  reply.stderr_text = json.at("stderr").get<std::string>();
  reply.truncated = json.value("truncated", false);  // replies of earlier versions have none
  reply.exit_code = ReadOptional(json.at("exit_code"));
  reply.exit_signal = ReadOptional(json.at("exit_signal"));
  for (const Json& denial : json.at("denials")) {
    reply.denials.push_back(
        {denial.at("surface").get<std::string>(), denial.at("operation").get<std::string>(),
         denial.at("target").get<std::string>(), denial.at("rule").get<std::string>(),
         denial.at("reason").get<std::string>(), denial.at("fix").get<std::string>(),
         denial.at("count").get<uint64_t>()});
  }
  reply.admitted = true;
  return reply;
}

}  // namespace

std::string FormatReply(const ToolReply& reply) {
  Json denials = Json::array();
  for (const audit::Denial& denial : reply.denials) {
    denials.push_back({{"surface", denial.surface},
                       {"operation", denial.operation},
                       {"target", denial.target},
                       {"rule", denial.rule},
                       {"reason", denial.reason},
                       {"fix", denial.fix},
                       {"count", denial.count}});
  }
  std::string text = PrintJson({{"call_id", reply.call_id},
                                {"outcome", reply.outcome},
                                {"refusal", static_cast<uint8_t>(reply.refusal)},
                                {"error_class", reply.error_class},
                                {"error_message", reply.error_message},
                                {"hint", reply.hint},
                                {"truncated", reply.truncated},
                                {"exit_code", Optional(reply.exit_code)},
                                {"exit_signal", Optional(reply.exit_signal)},
                                {"denials", std::move(denials)}});
  text.pop_back();  // the brace
  text += R"(,"stdout":)";
  AppendJsonText(reply.stdout_text, &text);
  text += R"(,"stderr":)";
  AppendJsonText(reply.stderr_text, &text);
  return text + "}";
}

Json LogJson(const std::optional<audit::LogPosition>& log) {
  return log ? Json{{"index", log->index}, {"size", log->size}, {"root", log->root}}
             : Json(nullptr);
}

void TakeOutcome(const audit::Receipt& receipt, ToolReply& reply) {
  reply.outcome = receipt.outcome;
  reply.error_class = receipt.error_class;
  reply.error_message = receipt.error_message;
  reply.truncated = receipt.output_truncated;
  reply.exit_code = receipt.exit_code;
  reply.exit_signal = receipt.exit_signal;
  reply.denials = receipt.denials;
  for (const std::string& path : receipt.planted) {
    reply.denials.push_back({"isolation", "plant", path, "project.protected",
                             "a program on the host would run this file later, so it was set aside",
                             "ask the person whose project it is to make the file"});
  }
}

void TakeTrace(std::string_view traceparent, store::CallIdentity& identity) {
  const auto hex = [](std::string_view part) {
    return IsHex(part) && part.find_first_not_of('0') != std::string_view::npos;
  };
  if (traceparent.size() < 55 || traceparent[2] != '-' || traceparent[35] != '-' ||
      traceparent[52] != '-' || traceparent.starts_with("ff") || !hex(traceparent.substr(3, 32)) ||
      !hex(traceparent.substr(36, 16))) {
    return;
  }
  identity.trace_id = traceparent.substr(3, 32);
  identity.parent_span = traceparent.substr(36, 16);
}

void UseRequestId(std::string_view request_id, ToolRequest& request) {
  if (request.idempotency_key.empty() && !request.identity.session_id.empty() &&
      !request_id.empty()) {
    request.idempotency_key =
        "request:" + HashOf(request.identity.session_id + "\n" + std::string(request_id));
  }
}

Result<ToolReply> ParseReply(std::string_view text) {
  TRY_ASSIGN(const Json json, ParseJson(text));
  try {
    return FromJson(json);
  } catch (const nlohmann::json::exception&) {
    return Internal("internal.store", "a stored reply makes no sense");
  }
}

}  // namespace coffer::call
