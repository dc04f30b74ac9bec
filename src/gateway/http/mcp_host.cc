// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/mcp_host.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "gateway/http/handlers.h"
#include "gateway/http/mcp_file_reader.h"
#include "gateway/http/mcp_made.h"
#include "gateway/http/names.h"
#include "gateway/mcp/file_uri.h"
#include "gateway/mcp/process_tools.h"
#include "gateway/mcp/tool_json.h"
#include "policy/manifest/manifest.h"

namespace coffer::gateway {
namespace {

constexpr std::chrono::seconds kProgressEvery{1};

McpError UnknownTool(std::string_view tool) {
  return {
      McpErrorCode::kBadParams,
      "there is no tool " + Printable(tool.substr(0, 200)) + "; tools/list names those there are",
      {}};
}

bool HasTool(const Json& tools, const std::string& name) {
  return std::any_of(tools.begin(), tools.end(),
                     [&](const Json& tool) { return tool.at("name") == name; });
}

// Where the tool that they call can be called, and go on. A manifest with one of their names takes its place.
void AddProcessTools(Json& tools) {
  if (std::any_of(tools.begin(), tools.end(), [](const Json& tool) {
        return tool.at("name") == kProcessRunner && tool.contains(kRunsInBackground);
      })) {
    for (Json& tool : ProcessToolsJson("this session")) {
      if (!HasTool(tools, tool.at("name").get<std::string>())) {
        tools.push_back(std::move(tool));
      }
    }
  }
}

}  // namespace

McpError McpErrorOf(const Refusal& refusal, McpErrorCode not_found) {
  const McpErrorCode code = refusal.kind == RefusalKind::kNotFound  ? not_found
                            : refusal.kind == RefusalKind::kInvalid ? McpErrorCode::kBadParams
                                                                    : McpErrorCode::kInternal;
  Json data = {{"code", refusal.code}};
  if (!refusal.hint.empty()) {
    data["hint"] = refusal.hint;
  }
  if (refusal.retry_after.has_value()) {
    data["retry_after"] = FromRefusal(refusal).retry_after.value_or(1);
  }
  return {code, refusal.message, PrintJson(data)};
}

call::ToolReply McpReplyOf(CallView&& view) {
  call::ToolReply reply;
  reply.call_id = view.identity.call_id;
  reply.outcome = std::move(view.outcome);
  reply.denials = std::move(view.denials);
  if (view.error) {
    reply.error_class = std::move(view.error->error_class);
    reply.error_message = std::move(view.error->message);
    reply.hint = reply.denials.empty() ? "" : reply.denials.front().fix;
  }
  if (view.result) {
    reply.stdout_text = std::move(view.result->stdout_text);
    reply.stderr_text = std::move(view.result->stderr_text);
    reply.exit_code = view.result->exit_code;
    reply.exit_signal = view.result->exit_signal;
    reply.truncated = view.result->truncated;
  }
  return reply;
}

McpServiceHost::Made::Made(Json made) : result(std::make_shared<Json>(std::move(made))) {}
McpServiceHost::Made::Made(JsonPieces made) : members(std::move(made)) {}
McpServiceHost::Made::Made(McpError made) : error(std::move(made)) {}

void McpServiceHost::Made::Prepare(const McpResultForm& form) {
  if (members) {
    JsonPieces message = form.Message(*std::exchange(members, std::nullopt));
    if (message.source_bytes() >= kCountedBytes) {
      text = std::move(message);
    } else {
      line = message.Rest() + "\n";
    }
  } else if (result != nullptr) {
    line = form.Line(*result);
    result.reset();
    if (line.size() >= kCountedBytes) {
      line.pop_back();
      text.emplace().RawWhole(std::exchange(line, {}));
    }
  }
}

void McpServiceHost::Deliver(const McpId& id, Made made, std::shared_ptr<void> room) {
  timer_.reset();
  room_ = std::move(room);
  if (made.error) {
    server().Answer(id, std::move(*made.error));
  } else if (made.text) {
    const auto counted = std::move(room_);  // from here on the stream counts it
    server().AnswerText(id, std::move(*made.text));
  } else {
    server().AnswerLine(id, std::move(made.line));
  }
}

Json McpServiceHost::Capabilities() const {
  return {{"tools", Json::object()}, {"resources", Json::object()}};
}

void McpServiceHost::ListTools(const McpId& id) {
  using List = std::shared_ptr<const Json>;
  client_.api->service.ListToolDefinitions(
      client_.who,
      Answering<List>(id, [in_session = !client_.session_id.empty()](List& tools) -> Made {
        Json all = *tools;
        if (in_session) {
          AddProcessTools(all);
        }
        for (Json& tool : all) {
          tool.erase(kRunsInBackground);
        }
        return Json{{"tools", std::move(all)}};
      }));
}

void McpServiceHost::Begin(const McpCall& call) {
  if (!policy::IsToolName(call.tool)) {
    server().Answer(call.id, UnknownTool(call.tool));
  } else if (!client_.session_id.empty() && FindProcessTool(call.tool)) {
    BeginProcess(call);
  } else {
    Submit(call);
  }
}

CallRequest McpServiceHost::RequestOf(const McpCall& call) const {
  CallRequest request;
  request.tool = call.tool;
  request.args_json = call.args_json;
  if (!client_.session_id.empty()) {
    request.session_id = client_.session_id;
  }
  request.idempotency_key = client_.idempotency_key;
  request.request_id = client_.ids_are_keys ? call.id : "";
  request.traceparent =
      call.traceparent.empty() ? client_.traceparent : std::optional(call.traceparent);
  return request;
}

void McpServiceHost::Submit(const McpCall& call) {
  flight_ = std::make_shared<McpFlight>(
      [api = client_.api, who = client_.who, asker = client_.asker](const std::string& call_id) {
        const auto ignored = [](const Answer<CallView>&) {};  // it may have ended by itself
        api->service.CancelCall(who, call_id, Reply<CallView>(ignored, asker));
      });
  if (client_.can_be_cancelled &&
      !client_.api->mcp_flights->Add(client_.session_id, call.id, flight_)) {
    flight_ = nullptr;
    server().Answer(
        call.id,
        McpError{McpErrorCode::kBadMessage, "a request with this id has no answer yet", {}});
    return;
  }
  flight_->SetCancelled(client_.cancelled);
  CallRequest request = RequestOf(call);
  request.watch = flight_->MakeWatch();
  begun_ = std::chrono::steady_clock::now();
  TellProgress(call.id);
  client_.api->service.Submit(
      client_.who, std::move(request),
      Answering<CallView>(call.id, [tool = call.tool](CallView& view) -> Made {
        if (view.error && view.error->error_class == "policy.tool" && !view.result) {
          return UnknownTool(tool);
        }
        const std::vector<audit::ExportedFile> exported = std::move(view.exported);
        return McpToolResult(McpReplyOf(std::move(view)), exported);
      }));
}

void McpServiceHost::TellProgress(const McpId& id) {
  timer_ = client_.api->loop.After(kProgressEvery, [weak = weak_from_this(), id] {
    if (const auto host = weak.lock(); host != nullptr && host->server().Waits(id)) {
      const auto running = std::chrono::steady_clock::now() - host->begun_;
      const double seconds = std::chrono::duration<double>(running).count();
      const auto keep = std::move(host->timer_);  // we run inside it
      host->server().Progress(id, seconds, fmt::format("under way for {:.0f} s", seconds));
      host->TellProgress(id);
    }
  });
}

void McpServiceHost::Cancel(const McpId& /*id*/, const std::string& /*reason*/) {
  timer_.reset();
  if (flight_ != nullptr) {
    flight_->Cancel();
  }
}

bool McpServiceHost::HandleOther(const McpRequest& request) {
  if (request.method == "resources/list") {
    ListFiles(request);
  } else if (request.method == "resources/read") {
    ReadFile(request);
  } else if (request.method == "resources/templates/list") {
    server().Answer(request.id, McpFileTemplates());
  } else {
    return false;
  }
  return true;
}

void McpServiceHost::ListFiles(const McpRequest& request) {
  PageRequest page;
  if (const auto cursor = request.params->find("cursor"); cursor != request.params->end()) {
    if (!cursor->is_string() || !IsCursor(cursor->get_ref<const std::string&>())) {
      server().Answer(
          request.id,
          McpError{McpErrorCode::kBadParams, "cursor is not one that was given out", {}});
      return;
    }
    page.cursor = cursor->get<std::string>();
  }
  if (client_.session_id.empty()) {
    server().Answer(request.id, Json{{"resources", Json::array()}});
    return;
  }
  const std::string session = client_.session_id;
  client_.api->service.ListFiles(
      client_.who, {FileOwner::Kind::kSession, session}, "", std::move(page),
      Answering<Page<FileView>>(
          request.id,
          [session](Page<FileView>& files) -> Made {
            Json result = {{"resources", Json::array()}};
            for (const FileView& file : files.items) {
              result["resources"].push_back(McpFileJson({false, session, file.path}, file.size));
            }
            if (!files.next.empty()) {
              result["nextCursor"] = files.next;
            }
            return result;
          },
          McpErrorCode::kNoResource));
}

void McpServiceHost::ReadFile(const McpRequest& request) {
  const auto uri = request.params->find("uri");
  if (uri == request.params->end() || !uri->is_string()) {
    server().Answer(request.id, McpError{McpErrorCode::kBadParams, "uri must be a string", {}});
    return;
  }
  const auto file = ReadMcpFileUri(uri->get_ref<const std::string&>());
  if (!file || !IsId(file->id) || !IsFilePath(file->path)) {
    server().Answer(request.id,
                    McpError{McpErrorCode::kNoResource,
                             "there is no such resource; its URI is "
                             "coffer://sessions/ID/files/PATH or coffer://calls/ID/files/PATH",
                             PrintJson({{"uri", *uri}})});
    return;
  }
  const FileOwner owner{file->of_call ? FileOwner::Kind::kCall : FileOwner::Kind::kSession,
                        file->id};
  ReadWholeFile(client_.api, client_.who, owner, file->path, kMaxMcpFile,
                Answering<std::string>(
                    request.id,
                    [file = *file](std::string& bytes) -> Made {
                      return McpFileContents(file, std::move(bytes));
                    },
                    McpErrorCode::kNoResource));
}

}  // namespace coffer::gateway
