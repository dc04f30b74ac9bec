// SPDX-License-Identifier: Apache-2.0
//
// The state directory as the verbs use it: its store, its log and its tools, opened together.
#pragma once

#include <memory>
#include <string>

#include "audit/log/log.h"
#include "call/ladder.h"
#include "call/recorder.h"
#include "call/tool_shelf.h"
#include "call/verb_flags.h"
#include "store/store.h"

namespace coffer::cli {

// The caller as records name it: "uid:" and the number.
std::string CallerName();

class State {
 public:
  // Makes the directory if it is not there, ends what a killed process left, reads the tools.
  static Result<State> Open(const call::VerbFlags& flags);
  // The same without the tools.
  static Result<State> OpenRecord(const std::string& directory);

  store::Store& store() { return *store_; }
  call::Recorder& recorder() { return *recorder_; }
  const call::ToolShelf& shelf() const { return *shelf_; }  // not of OpenRecord
  const std::string& directory() const { return directory_; }
  call::LadderOptions ladder_options() const;

 private:
  State() = default;
  std::string directory_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<audit::Log> log_;
  std::unique_ptr<call::Recorder> recorder_;
  std::unique_ptr<call::ToolShelf> shelf_;
};

}  // namespace coffer::cli
