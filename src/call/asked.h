// SPDX-License-Identifier: Apache-2.0
//
// A request on its way up the ladder: the call that it becomes, and what only the rungs need. For
// ladder.cc and rungs.cc.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "base/json.h"
#include "call/evaluate.h"
#include "call/ladder.h"
#include "store/admission.h"
#include "store/session.h"

namespace coffer::call {

struct Ladder::Asked {
  ReadyCall call;
  Result<Json> args;
  store::AdmitRequest admit;
  std::optional<store::Session> session;
  std::string workspace;  // of the session
  Result<Evaluation> evaluation = Internal("internal", "not evaluated yet");
  std::string envelope;  // canonical form of the evaluated envelope

  bool readable() const { return args.ok() && args->is_object(); }
};

}  // namespace coffer::call
