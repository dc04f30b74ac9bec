// SPDX-License-Identifier: Apache-2.0
//
// What the parts of McpServiceHost share: an answer of the service as MCP has it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/json.h"
#include "call/tool_call.h"
#include "gateway/http/handlers.h"
#include "gateway/http/mcp_host.h"

namespace coffer::gateway {

// A result, as a value or as its members, or an error.
struct McpServiceHost::Made {
  Made(Json made);        // NOLINT(google-explicit-constructor)
  Made(JsonPieces made);  // NOLINT(google-explicit-constructor)
  Made(McpError made);    // NOLINT(google-explicit-constructor)
  // Turns the result into what is sent: a large one into a text that is made, or at least compressed,
  // while it is sent, every other into a line.
  void Prepare(const McpResultForm& form);
  size_t bytes() const { return text ? text->source_bytes() : line.size(); }

  std::shared_ptr<Json> result;
  std::optional<JsonPieces> members;
  std::optional<McpError> error;
  // After Prepare, one of them:
  std::string line;
  std::optional<JsonPieces> text;
};

// A failure that is not a tool's. `code` and `retry_after` in its data are those of the HTTP API.
McpError McpErrorOf(const Refusal& refusal, McpErrorCode not_found);
call::ToolReply McpReplyOf(CallView&& view);

template <typename T>
Reply<T> McpServiceHost::Answering(const McpId& id, std::function<Made(T&)> make,
                                   McpErrorCode not_found) {
  return Reply<T>::Prepared(
      [weak = weak_from_this(), id, form = server().FormOf(id), api = client_.api,
       asker = client_.asker, flight = flight_, not_found,
       make = std::move(make)](Answer<T> answer) -> std::function<void()> {
        auto made = std::make_shared<Made>(
            asker->gone   ? Made(McpError{McpErrorCode::kInternal, "the client has left", {}})
            : answer.ok() ? make(answer.value())
                          : Made(McpErrorOf(answer.refusal(), not_found)));
        std::shared_ptr<void> room;
        made->Prepare(form);
        if (made->bytes() >= kCountedBytes) {
          room = api->service.HoldAnyway(*asker, made->bytes());
        }
        return [weak, id, made, room, flight] {
          if (flight != nullptr) {
            flight->End();
          }
          if (const auto host = weak.lock()) {
            host->Deliver(id, std::move(*made), room);
          }
        };
      },
      client_.asker);
}

}  // namespace coffer::gateway
