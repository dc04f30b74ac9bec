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
constexpr size_t kMostItems = 10'000;
// Messages that nothing asked for, between two answers: one that sends more does nothing else. Each
// second forgives a few, so that a server that writes to its log while no client calls it is not
// ended for that. A long one counts as many.
constexpr uint64_t kMostStrays = 1000;
constexpr int64_t kForgivenEachSecond = 5;
constexpr size_t kStrayBytes = size_t{64} << 10;
// Each change of a list makes us read all of it.
constexpr size_t kMostChanges = 30;
constexpr std::chrono::minutes kChangesWithin{1};
// The same for progress, of which an honest server may send a lot.
constexpr uint64_t kMostProgress = 100'000;
constexpr size_t kMostRefused = 32;
constexpr size_t kMostWords = 500;
constexpr size_t kMostMethod = 100;

const Json* MemberOf(const Json& object, const char* name) {
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
  Ask(Kind::kInitialize, "initialize",
      {{"protocolVersion", kVersion},
       {"capabilities", Json::object()},
       {"clientInfo", {{"name", "cofferdam"}, {"version", COFFER_VERSION}}}});
}

uint64_t McpClient::Ask(Kind what, const std::string& method, const Json& params) {
  const uint64_t id = next_++;
  asked_[id] = what;
  send_(Line({{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", params}}));
  return id;
}

uint64_t McpClient::Call(const std::string& tool, const std::string& args_json) {
  const coffer::Result<Json> args = ParseJson(args_json);
  return Ask(Kind::kCall, "tools/call",
             {{"name", tool},
              {"arguments", args.ok() ? *args : Json::object()},
              {"_meta", {{"progressToken", next_}}}});
}

uint64_t McpClient::Request(const std::string& method, const std::string& params_json) {
  const coffer::Result<Json> params = ParseJson(params_json);
  return Ask(Kind::kCall, method, params.ok() ? *params : Json::object());
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
  weight_ = 1 + line.size() / kStrayBytes;
  const coffer::Result<Json> message = ParseJson(line);
  if (!message.ok() || !message->is_object()) {
    Stray("lines that are not JSON-RPC");
    return;
  }
  const Json* const method = MemberOf(*message, "method");
  const Json* const id = MemberOf(*message, "id");
  if (method == nullptr) {
    ReceiveAnswer(*message);
  } else if (!method->is_string()) {
    Stray("messages whose method is not a string");
  } else if (id == nullptr) {
    ReceiveNotification(method->get<std::string>(), *message);
  } else {
    ReceiveRequest(method->get<std::string>(), *id);
  }
}

void McpClient::ReceiveRequest(const std::string& method, const Json& id) {
  if (!id.is_number_integer() && !id.is_string()) {
    Stray("requests whose id is not a number or string");
    return;
  }
  if (method == "ping") {
    send_(Line({{"jsonrpc", "2.0"}, {"id", id}, {"result", Json::object()}}));
    Stray("pings");
    return;
  }
  // A client that has not declared a capability does not have its methods.
  send_(Line({{"jsonrpc", "2.0"},
              {"id", id},
              {"error",
               {{"code", static_cast<int>(McpErrorCode::kNoMethod)},
                {"message", "Cofferdam refuses what a wrapped server asks of its client"}}}}));
  const std::string said = VisibleText(method, kMostMethod);
  if (refused_.size() < kMostRefused && refused_.insert(said).second) {
    host_.Asked(said);
  }
  Stray("requests");
}

void McpClient::ReceiveAnswer(const Json& message) {
  const Json* const id = MemberOf(message, "id");
  const auto found =
      id != nullptr && id->is_number_unsigned() ? asked_.find(id->get<uint64_t>()) : asked_.end();
  if (found == asked_.end()) {
    Stray("answers that nothing asked for");
    return;
  }
  const uint64_t ask = found->first;
  const Kind what = found->second;
  asked_.erase(found);
  const Json* const result = MemberOf(message, "result");
  const Json* const error = MemberOf(message, "error");
  const bool good = result != nullptr && result->is_object() && error == nullptr;
  std::string why = "the answer has neither a result nor an error";
  int64_t code = 0;
  if (error != nullptr && error->is_object()) {
    why = TextOf(MemberOf(*error, "message"));
    const Json* const given = MemberOf(*error, "code");
    code = given != nullptr && given->is_number_integer() ? given->get<int64_t>() : 0;
  }
  if (what == Kind::kCall) {
    strays_ = 0;
    progress_ = 0;
    if (good) {
      host_.Result(ask, *result);
    } else {
      host_.Failed(ask, code, why);
    }
  } else if (what == Kind::kInitialize) {
    good ? ReceiveStart(*result) : Break("it refused to begin: " + why);
  } else if (good) {
    ReceiveList(what, *result);
  } else if (ListOf(what).optional) {
    ListOf(what).items.clear();
    EndList(what);
  } else {
    Break("it does not list its tools: " + why);
  }
}

void McpClient::ReceiveStart(const Json& result) {
  const Json* const offered = MemberOf(result, "capabilities");
  const auto offers = [&](const char* kind) {
    return offered != nullptr && offered->is_object() && offered->contains(kind);
  };
  has_prompts_ = offers("prompts");
  has_resources_ = offers("resources");
  tools_.optional =
      !offers("tools");  // asked for nevertheless: some serve what they do not declare
  send_(McpNotificationLine("notifications/initialized", Json::object()));
  tools_.under_way = true;
  prompts_.under_way = has_prompts_;
  templates_.under_way = has_resources_;
  for (const Kind kind : {Kind::kTools, Kind::kPrompts, Kind::kTemplates}) {
    if (ListOf(kind).under_way) {
      BeginList(kind, "");
    }
  }
}

McpClient::List& McpClient::ListOf(Kind kind) {
  return kind == Kind::kPrompts ? prompts_ : kind == Kind::kTemplates ? templates_ : tools_;
}

void McpClient::BeginList(Kind kind, const std::string& cursor) {
  List& list = ListOf(kind);
  if (cursor.empty()) {
    list.items.clear();
    list.pages = 0;
    list.count = 0;
    list.under_way = true;
    list.changed = false;
  }
  Ask(kind, list.method, cursor.empty() ? Json::object() : Json{{"cursor", cursor}});
}

void McpClient::ReceiveList(Kind kind, const Json& result) {
  List& list = ListOf(kind);
  const Json* const items = MemberOf(result, list.member);
  const Json* const next = MemberOf(result, "nextCursor");
  if (items == nullptr || !items->is_array() || ++list.pages > kMostPages) {
    Break(std::string("its answers to ") + list.method + " have no end, or are not a list");
    return;
  }
  list.count += items->size();
  if (list.count > kMostItems) {
    Break(std::string("its answers to ") + list.method + " have more than 10,000 items");
    return;
  }
  for (const Json& item : *items) {
    list.items += (list.items.empty() ? "" : ",") + PrintJson(item);
  }
  if (list.items.size() > kMostListBytes) {
    Break(std::string("its answers to ") + list.method + " are longer than 4 MiB");
    return;
  }
  if (next != nullptr && next->is_string() && !next->get_ref<const std::string&>().empty()) {
    BeginList(kind, next->get<std::string>());
    return;
  }
  EndList(kind);
}

void McpClient::EndList(Kind kind) {
  List& list = ListOf(kind);
  list.under_way = false;
  if (list.changed) {
    BeginList(kind, "");
    return;
  }
  if (tools_.under_way || prompts_.under_way || templates_.under_way) {
    return;  // the others are on their way
  }
  const coffer::Result<Json> tools = ParseJson("[" + tools_.items + "]");
  const coffer::Result<Json> prompts = ParseJson("[" + prompts_.items + "]");
  const coffer::Result<Json> templates = ParseJson("[" + templates_.items + "]");
  if (tools.ok() && prompts.ok() && templates.ok()) {
    host_.Listed(*tools, *prompts, *templates);
  } else {
    Break("its lists are nested too deep");
  }
}

void McpClient::Changed(Kind kind) {
  const Clock::time_point now = Clock::now();
  while (!changes_.empty() && now - changes_.front() > kChangesWithin) {
    changes_.pop_front();
  }
  changes_.push_back(now);
  if (changes_.size() > kMostChanges) {
    Break("its lists change without end");
  }
  if (ListOf(kind).under_way) {
    ListOf(kind).changed = true;
  } else if (!broken_) {
    BeginList(kind, "");
  }
}

void McpClient::ReceiveNotification(const std::string& method, const Json& message) {
  const Json* const params = MemberOf(message, "params");
  if (method == "notifications/tools/list_changed") {
    Stray("changes of its tools");
    Changed(Kind::kTools);
    return;
  }
  if (method == "notifications/prompts/list_changed" && has_prompts_) {
    Stray("changes of its prompts");
    Changed(Kind::kPrompts);
    return;
  }
  if (method == "notifications/resources/list_changed" && has_resources_) {
    Stray("changes of its resources");
    Changed(Kind::kTemplates);
    return;
  }
  if (method == "notifications/message" && params != nullptr && params->is_object()) {
    Stray("messages of its log");
    const Json* const data = MemberOf(*params, "data");
    host_.Logged(data == nullptr || data->is_string() ? TextOf(data)
                                                      : VisibleText(PrintJson(*data), kMostWords));
    return;
  }
  if (method == "notifications/progress" && params != nullptr && params->is_object()) {
    const Json* const token = MemberOf(*params, "progressToken");
    const Json* const progress = MemberOf(*params, "progress");
    const auto found = token != nullptr && token->is_number_unsigned()
                           ? asked_.find(token->get<uint64_t>())
                           : asked_.end();
    if (found != asked_.end() && found->second == Kind::kCall && progress != nullptr &&
        progress->is_number()) {
      if (++progress_ > kMostProgress) {
        Stray("progress");
      }
      host_.Progressed(token->get<uint64_t>(), progress->get<double>(),
                       TextOf(MemberOf(*params, "message")));
      return;
    }
  }
  Stray("notifications");
}

void McpClient::Stray(const std::string& what) {
  const Clock::time_point now = Clock::now();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - strayed_).count();
  if (seconds > 0) {
    strays_ -= std::min(strays_, static_cast<uint64_t>(seconds * kForgivenEachSecond));
    strayed_ = now;
  }
  strays_ += weight_;
  if (strays_ > kMostStrays) {
    Break("it sends " + what + " without end");
  }
}

void McpClient::Break(const std::string& why) {
  if (!std::exchange(broken_, true)) {
    host_.Broken(why);
  }
}

}  // namespace coffer::gateway
