// SPDX-License-Identifier: Apache-2.0
//
// The part of the service that is about tools.
#include <map>
#include <nlohmann/json.hpp>

#include "daemon/service.h"
#include "daemon/standing.h"
#include "daemon/views.h"
#include "gateway/mcp/process_tools.h"
#include "gateway/mcp/tool_json.h"
#include "store/switches.h"

namespace coffer::daemon {
namespace {

template <typename T>
using Made = gateway::Answer<T>;

// The tools that a switch of the tenant or of the host stops, and why.
Result<std::map<std::string, std::string>> StoppedTools(store::Store& store,
                                                        const gateway::Identity& who) {
  TRY_ASSIGN(const std::vector<store::Switch> switches, store::ListSwitches(store, who.tenant));
  std::map<std::string, std::string> stopped;
  for (const store::Switch& found : switches) {
    if (found.on && (found.kind == store::SwitchKind::kTool ||
                     found.kind == store::SwitchKind::kDisabledTool)) {
      stopped[found.name] = found.why;
    }
  }
  return stopped;
}

void MarkStopped(const std::map<std::string, std::string>& stopped, gateway::ToolView& view) {
  if (const auto found = stopped.find(view.name); found != stopped.end()) {
    view.state = "disabled";
    view.problem = found->second.empty() ? "an operator disabled it" : "disabled: " + found->second;
  }
}

}  // namespace

void DaemonService::ListTools(const gateway::Identity& who,
                              gateway::Reply<std::vector<gateway::ToolView>> reply) {
  using Views = std::vector<gateway::ToolView>;
  AnswerIfStanding<Views>(context_, who, std::move(reply), [this, who]() -> Made<Views> {
    const Result<std::map<std::string, std::string>> stopped = StoppedTools(context_.store(), who);
    if (!stopped.ok()) {
      return RefusalOf(stopped.error());
    }
    Views views;
    for (const call::ShelfEntry& entry : context_.shelf().List()) {
      views.push_back(ViewOf(entry, ToolDetail::kShort, who.role));
      MarkStopped(*stopped, views.back());
    }
    return views;
  });
}

void DaemonService::GetTool(const gateway::Identity& who, const std::string& name,
                            gateway::Reply<gateway::ToolView> reply) {
  AnswerIfStanding<gateway::ToolView>(
      context_, who, std::move(reply), [this, who, name]() -> Made<gateway::ToolView> {
        const Result<std::map<std::string, std::string>> stopped =
            StoppedTools(context_.store(), who);
        if (!stopped.ok()) {
          return RefusalOf(stopped.error());
        }
        for (const call::ShelfEntry& entry : context_.shelf().List()) {
          if (entry.name == name && entry.tool != nullptr) {
            gateway::ToolView view = ViewOf(entry, ToolDetail::kWhole, who.role);
            MarkStopped(*stopped, view);
            return view;
          }
        }
        return gateway::Refusal{gateway::RefusalKind::kNotFound,
                                "tool.unknown",
                                "there is no such tool",
                                "GET /v1/tools lists them",
                                {},
                                "",
                                {}};
      });
}

void DaemonService::ListToolDefinitions(const gateway::Identity& who,
                                        gateway::Reply<std::shared_ptr<const Json>> reply) {
  using List = std::shared_ptr<const Json>;
  AnswerIfStanding<List>(context_, who, std::move(reply), [this, who]() -> Made<List> {
    const Result<std::map<std::string, std::string>> stopped = StoppedTools(context_.store(), who);
    if (!stopped.ok()) {
      return RefusalOf(stopped.error());
    }
    Json tools = Json::array();
    for (const call::ShelfEntry& entry : context_.shelf().List()) {
      if (entry.tool != nullptr && !stopped->contains(entry.name)) {
        tools.push_back(gateway::McpToolJson(entry.tool->manifest));
        if (entry.tool->manifest.background) {
          tools.back()[gateway::kRunsInBackground] = true;
        }
      }
    }
    return std::make_shared<const Json>(std::move(tools));
  });
}

}  // namespace coffer::daemon
