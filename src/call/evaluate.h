// SPDX-License-Identifier: Apache-2.0
//
// The rung "evaluate": a tool and its arguments become the boundary and the command that would run,
// and words about both.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "call/run/run_request.h"
#include "policy/tool.h"

namespace coffer::call {

struct Evaluation {
  RunRequest run;
  std::string stdin_text;
  std::string blast_radius;  // a sentence
};

Result<Evaluation> Evaluate(const policy::Tool& tool, const Json& args,
                            const policy::CallPlaces& places);

// Arguments as the record shows them: "name=value". Only short values that are not text are shown; text is named by its
// size, and what has a secret's name or shape by that.
std::vector<std::string> RedactArgs(const Json& args);

}  // namespace coffer::call
