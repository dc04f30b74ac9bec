// SPDX-License-Identifier: Apache-2.0
#include "gateway/mcp/client.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "gateway/mcp/message.h"
#include "gateway/mcp/stranger_text.h"

namespace coffer::gateway {
namespace {

constexpr const char* kVersion = "2025-11-25";
constexpr size_t kMostPages = 64;
constexpr size_t kMostListBytes = size_t{4} << 20;
// Messages that nothing asked for, between two answers: one that sends more does nothing else.
constexpr uint64_t kMostStrays = 1000;
// The same for progress, of which an honest server may send a lot.
constexpr uint64_t kMostProgress = 100'000;
constexpr size_t kMostRefused = 32;
constexpr size_t kMostWords = 500;

const Json* Member(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

std::string TextOf(const Json* value) {
  return value != nullptr && value->is_string()
             ? VisibleText(value->get_ref<const std::string&>(), kMostWords)
             : "";
}

std::string Line(const Json& message) { return PrintJson(message) + "\n"; }

}  // namespace

void McpClient::Begin() {
  Ask(Asked::kInitialize, "initialize",
      {{"protocolVersion", kVersion},
       {"capabilities", Json::object()},
       {"clientInfo", {{"name", "cofferdam"}, {"version", COFFER_VERSION}}}});
}

uint64_t McpClient::Ask(Asked what, const std::string& method, const Json& params) {
  const uint64_t id = next_++;
  asked_[id] = what;
  send_(Line({{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", params}}));
  return id;
}

uint64_t McpClient::Call(const std::string& tool, const std::string& args_json) {
  const coffer::Result<Json> args = ParseJson(args_json);
  return Ask(Asked::kCall, "tools/call",
             {{"name", tool},
              {"arguments", args.ok() ? *args : Json::object()},
              {"_meta", {{"progressToken", next_}}}});
}

void McpClient::Cancel(uint64_t ask) {
  if (asked_.erase(ask) > 0) {
    send_(McpNotificationLine("notifications/cancelled", {{"requestId", ask}}));
  }
}

void McpClient::Receive(std::string_view line) {
  if (broken_) {
    return;
  }
  const coffer::Result<Json> message = ParseJson(line);
  if (!message.ok() || !message->is_object()) {
    Stray("what is no message of JSON-RPC");
    return;
  }
  const Json* const method = Member(*message, "method");
  const Json* const id = Member(*message, "id");
  if (method == nullptr) {
    ReceiveAnswer(*message);
  } else if (!method->is_string()) {
    Stray("a method that is no text");
  } else if (id == nullptr) {
    ReceiveNotification(method->get<std::string>(), *message);
  } else if (*method == "ping") {
    send_(Line({{"jsonrpc", "2.0"}, {"id", *id}, {"result", Json::object()}}));
    Stray("pings");
  } else {
    if (refused_.size() < kMostRefused) {
      refused_.insert(TextOf(method));
    }
    send_(Line({{"jsonrpc", "2.0"},
                {"id", *id},
                {"error",
                 {{"code", static_cast<int>(McpErrorCode::kNoMethod)},
                  {"message", "Cofferdam refuses what a wrapped server asks of its client"}}}}));
    Stray("requests");
  }
}

void McpClient::ReceiveAnswer(const Json& message) {
  const Json* const id = Member(message, "id");
  const auto found =
      id != nullptr && id->is_number_unsigned() ? asked_.find(id->get<uint64_t>()) : asked_.end();
  if (found == asked_.end()) {
    Stray("answers that nothing asked for");
    return;
  }
  const uint64_t ask = found->first;
  const Asked what = found->second;
  asked_.erase(found);
  const Json* const result = Member(message, "result");
  const Json* const error = Member(message, "error");
  const bool good = result != nullptr && result->is_object() && error == nullptr;
  std::string why = "the answer has neither a result nor an error";
  if (error != nullptr && error->is_object()) {
    why = TextOf(Member(*error, "message"));
  }
  if (what == Asked::kCall) {
    strays_ = 0;
    progress_ = 0;
    if (good) {
      host_.Result(ask, *result);
    } else {
      host_.Failed(ask, why);
    }
  } else if (!good) {
    broken_ = true;
    host_.Broken(what == Asked::kInitialize ? "it refused to begin: " + why
                                            : "it does not list its tools: " + why);
  } else if (what == Asked::kInitialize) {
    send_(McpNotificationLine("notifications/initialized", Json::object()));
    List("");
  } else {
    ReceiveList(*result);
  }
}

void McpClient::List(const std::string& cursor) {
  if (cursor.empty()) {
    tools_.clear();
    pages_ = 0;
    listing_ = true;
  }
  Ask(Asked::kList, "tools/list", cursor.empty() ? Json::object() : Json{{"cursor", cursor}});
}

void McpClient::ReceiveList(const Json& result) {
  const Json* const tools = Member(result, "tools");
  const Json* const next = Member(result, "nextCursor");
  if (tools == nullptr || !tools->is_array() || ++pages_ > kMostPages) {
    broken_ = true;
    host_.Broken("its list of tools has no end, or is none");
    return;
  }
  for (const Json& tool : *tools) {
    tools_ += (tools_.empty() ? "" : ",") + PrintJson(tool);
  }
  if (tools_.size() > kMostListBytes) {
    broken_ = true;
    host_.Broken("its list of tools is longer than 4 MiB");
    return;
  }
  if (next != nullptr && next->is_string() && !next->get_ref<const std::string&>().empty()) {
    List(next->get<std::string>());
    return;
  }
  listing_ = false;
  if (const coffer::Result<Json> all = ParseJson("[" + tools_ + "]"); all.ok()) {
    host_.Listed(*all);
  }
  if (std::exchange(changed_, false)) {
    List("");
  }
}

void McpClient::ReceiveNotification(const std::string& method, const Json& message) {
  const Json* const params = Member(message, "params");
  if (method == "notifications/tools/list_changed") {
    Stray("changes of its tools");
    if (listing_) {
      changed_ = true;
    } else if (!broken_) {
      List("");
    }
    return;
  }
  if (method == "notifications/progress" && params != nullptr && params->is_object()) {
    const Json* const token = Member(*params, "progressToken");
    const Json* const progress = Member(*params, "progress");
    if (token != nullptr && token->is_number_unsigned() &&
        asked_.contains(token->get<uint64_t>()) && progress != nullptr && progress->is_number()) {
      if (++progress_ > kMostProgress) {
        Stray("progress");
      }
      host_.Progressed(token->get<uint64_t>(), progress->get<double>(),
                       TextOf(Member(*params, "message")));
      return;
    }
  }
  Stray("notifications");
}

void McpClient::Stray(const std::string& what) {
  if (++strays_ > kMostStrays && !std::exchange(broken_, true)) {
    host_.Broken("it sends " + what + " without end");
  }
}

}  // namespace coffer::gateway
