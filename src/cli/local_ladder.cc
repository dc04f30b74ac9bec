// SPDX-License-Identifier: Apache-2.0
#include "cli/local_ladder.h"

#include <utility>

#include "call/make_table.h"

namespace coffer::cli {

call::LadderOptions LocalLadder::Options() const {
  call::LadderOptions options = state_.ladder_options();
  options.project = project();
  options.offers_tools = true;
  options.quotas = [config = &config_](const store::TenantId& tenant) {
    return config->QuotasOf(tenant);
  };
  options.keeps_transcripts = [config = &config_](const store::TenantId& tenant) {
    return config->RulesOf(tenant).keeps_transcripts;
  };
  return options;
}

call::MakeToolsServer LocalLadder::tools_maker() const {
  return [place = tools_place_](const call::RunRequest& request, const std::string& call_id) {
    return std::make_unique<ToolsProcess>(request, call_id, place);
  };
}

std::unique_ptr<call::Ladder> LocalLadder::MakeLadder(const call::ToolShelf& shelf) {
  return std::make_unique<call::Ladder>(state_.recorder(), shelf, Options());
}

Result<std::unique_ptr<LocalLadder>> LocalLadder::Open(const call::VerbFlags& flags,
                                                       const std::string& project) {
  TRY_ASSIGN(State state, State::Open(flags));
  TRY_ASSIGN(const std::string config_file, flags.ConfigFile());
  TRY_ASSIGN(call::FileConfig config,
             call::LoadConfigFile(config_file, /*may_be_missing=*/!flags.Has("--config")));
  std::unique_ptr<LocalLadder> made(new LocalLadder(std::move(state), std::move(config)));

  TRY_ASSIGN(made->tools_place_.state, flags.StateDir());
  if (flags.Has("--tools")) {
    TRY_ASSIGN(made->tools_place_.manifests, flags.ToolDirs());
  }
  if (flags.Has("--config")) {
    made->tools_place_.config = config_file;
  }

  call::Allowed& allowed = made->allowed_;
  allowed.rules.project = project;
  allowed.rules.sessions = made->state_.ladder_options().sessions;
  if (Result<std::vector<std::string>> tools = flags.ToolDirs(); tools.ok()) {
    allowed.rules.relied = std::move(tools).value();
  }
  if (!config_file.empty()) {
    allowed.rules.relied.push_back(config_file);
  }
  allowed.rules.allow_broad = true;  // broad mounts are the caller's own to give
  TRY_ASSIGN(allowed.table, call::MakeTable(made->state_.shelf(), made->config_.ceilings, {}));
  TRY_ASSIGN(allowed.table.egress, call::LoadEgressConfig(made->config_.egress, std::nullopt));
  TRY_ASSIGN(allowed.table.egress.never_send,
             call::LoadNeverSend(made->config_.egress, std::nullopt));
  made->state_.recorder().SetBreaker({[config = &made->config_](const store::TenantId& tenant) {
                                        return config->RulesOf(tenant).breaker;
                                      },
                                      {}});
  made->ladder_ = made->MakeLadder(made->state_.shelf());
  return made;
}

}  // namespace coffer::cli
