// SPDX-License-Identifier: Apache-2.0
//
// The part of McpServiceHost that is about background processes: the tools of
// gateway/mcp/process_tools.h, for the processes of the request's session. Whose session it is, and
// what may run, is the service's to say.
#include <signal.h>

#include <nlohmann/json.hpp>

#include "gateway/http/mcp_host.h"
#include "gateway/http/mcp_made.h"
#include "gateway/mcp/process_tools.h"
#include "gateway/mcp/tool_json.h"

namespace coffer::gateway {
namespace {

constexpr uint64_t kTail = uint64_t{16} << 10;  // of the output, without an offset
constexpr size_t kPiece = size_t{64} << 10;     // of the output, in one answer

ProcessState StateOf(const ProcessView& view) {
  return {view.process_id,
          "",  // the service does not keep it; the record of its call has it
          view.ports,
          view.state == "running",
          view.outcome,
          view.exit_code,
          view.exit_signal,
          view.error_class,
          view.error_message};
}

Json NoProcess() {
  return ProcessErrorJson(Refused("policy.process", "there is no such process",
                                  "list-processes names those there are"));
}

}  // namespace

void McpServiceHost::BeginProcess(const McpCall& call) {
  // A manifest of that name takes its place.
  const auto found = [weak = weak_from_this(), call](const Answer<ToolView>& tool) {
    const auto host = weak.lock();
    if (host == nullptr) {
      return;
    }
    if (tool.ok()) {
      host->Submit(call);
      return;
    }
    const ProcessTool kind = *FindProcessTool(call.tool);
    const Result<ProcessAsk> ask = ReadProcessAsk(kind, call.args_json);
    if (!ask.ok()) {
      host->server().Answer(call.id, ProcessErrorJson(ask.error()));
    } else if (kind == ProcessTool::kStart) {
      host->StartProcess(call, *ask);
    } else if (kind == ProcessTool::kList) {
      host->ListProcesses(call.id);
    } else {
      host->FindProcess(call.id, kind, *ask);
    }
  };
  client_.api->service.GetTool(client_.who, call.tool, Reply<ToolView>(found, client_.asker));
}

void McpServiceHost::StartProcess(const McpCall& call, const ProcessAsk& ask) {
  CallRequest request = RequestOf(call);
  request.tool = kProcessRunner;
  request.args_json = PrintJson({{"command", ask.command}});
  request.background = true;
  request.wait = false;
  request.ports = ask.ports;
  client_.api->service.Submit(
      client_.who, std::move(request), Answering<CallView>(call.id, [ask](CallView& view) -> Made {
        if (view.state == CallProgress::kFinished) {
          return McpToolResult(McpReplyOf(std::move(view)));
        }
        return ProcessResultJson({{view.identity.call_id, ask.command, ask.ports, true}},
                                 "started");
      }));
}

void McpServiceHost::ListProcesses(const McpId& id) {
  using Views = std::vector<ProcessView>;
  client_.api->service.ListProcesses(
      client_.who, client_.session_id, Answering<Views>(id, [](Views& views) -> Made {
        std::vector<ProcessState> states;
        for (const ProcessView& view : views) {
          states.push_back(StateOf(view));
        }
        return ProcessResultJson(states, states.empty() ? "no process was started" : "");
      }));
}

void McpServiceHost::FindProcess(const McpId& id, ProcessTool kind, const ProcessAsk& ask) {
  const auto found = [weak = weak_from_this(), id, kind, ask](const Answer<ProcessView>& view) {
    const auto host = weak.lock();
    if (host == nullptr) {
      return;
    }
    if (!view.ok()) {
      host->server().Answer(id, NoProcess());
    } else if (kind == ProcessTool::kRead) {
      host->ReadProcess(id, StateOf(view.value()), ask);
    } else if (view->state != "running") {
      host->server().Answer(id, ProcessResultJson({StateOf(view.value())}, ""));
    } else {
      host->StopProcess(id, StateOf(view.value()));
    }
  };
  client_.api->service.GetProcess(client_.who, {client_.session_id, ask.process_id},
                                  Reply<ProcessView>(found, client_.asker));
}

// Without an offset the last piece: where that begins is asked for first.
void McpServiceHost::ReadProcess(const McpId& id, const ProcessState& state,
                                 const ProcessAsk& ask) {
  const ProcessName name{client_.session_id, state.id};
  if (ask.offset) {
    client_.api->service.ReadProcessLog(
        client_.who, name, {*ask.offset, kPiece, std::chrono::seconds(0)},
        Answering<ProcessLogView>(id, [state](ProcessLogView& log) -> Made {
          return ProcessOutput(state, std::move(log.text), log.next);
        }));
    return;
  }
  const auto sized = [weak = weak_from_this(), id, state, ask](const Answer<ProcessLogView>& log) {
    if (const auto host = weak.lock()) {
      ProcessAsk from = ask;
      from.offset = log.ok() && log->next > kTail ? log->next - kTail : 0;
      host->ReadProcess(id, state, from);
    }
  };
  client_.api->service.ReadProcessLog(client_.who, name, {INT64_MAX, 1, std::chrono::seconds(0)},
                                      Reply<ProcessLogView>(sized, client_.asker));
}

void McpServiceHost::StopProcess(const McpId& id, const ProcessState& state) {
  client_.api->service.SignalProcess(client_.who, {client_.session_id, state.id}, SIGTERM,
                                     Answering<ProcessView>(id, [state](ProcessView&) -> Made {
                                       return ProcessResultJson({state}, "asked to end");
                                     }));
}

}  // namespace coffer::gateway
