// SPDX-License-Identifier: Apache-2.0
//
// The ladder of declared tools without a daemon: the state directory, the configuration and the table that calls are
// checked against, opened together. For `coffer call` and `coffer mcp`.
#pragma once

#include <memory>

#include "call/config_file.h"
#include "call/ladder.h"
#include "call/verb_flags.h"
#include "call/warden/launcher.h"
#include "cli/state.h"
#include "cli/tools_process.h"

namespace coffer::cli {

class LocalLadder {
 public:
  // `flags` outlives nothing: what is needed of it is taken. `project` stands in for the files of
  // sessions; empty: none.
  static Result<std::unique_ptr<LocalLadder>> Open(const call::VerbFlags& flags,
                                                   const std::string& project = "");
  LocalLadder(const LocalLadder&) = delete;
  LocalLadder& operator=(const LocalLadder&) = delete;

  State& state() { return state_; }
  const call::FileConfig& config() const { return config_; }
  const call::Allowed& allowed() const { return allowed_; }
  call::Ladder& ladder() { return *ladder_; }
  const std::string& project() const { return allowed_.rules.project; }
  // For a launcher: what serves the tools of [calls] inside a call of this ladder.
  call::MakeToolsServer tools_maker() const;
  // What a ladder of this state directory is made with.
  call::LadderOptions Options() const;
  // Another one, for the tools of another shelf, which outlives it; so does this.
  std::unique_ptr<call::Ladder> MakeLadder(const call::ToolShelf& shelf);

 private:
  LocalLadder(State state, call::FileConfig config)
      : state_(std::move(state)), config_(std::move(config)) {}

  State state_;
  const call::FileConfig config_;
  call::Allowed allowed_;
  ToolsPlace tools_place_;
  std::unique_ptr<call::Ladder> ladder_;
};

}  // namespace coffer::cli
