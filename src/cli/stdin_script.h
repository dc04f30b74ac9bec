// SPDX-License-Identifier: Apache-2.0
//
// `coffer run -`: the script is what stdin holds, up to its end. The command itself then reads an empty stdin.
//
// It goes through the same door as a script in a file: it is written to a scratch directory that only the caller can
// enter, named as the caller's own word, copied into the boundary, and removed; `coffer doctor --sweep` removes what a
// kill left. The first line says what runs it, or else the one runtime that was named.
#pragma once

#include "call/run/run_request.h"
#include "call/run/scratch.h"

namespace coffer::cli {

class StdinScript {
 public:
  // Reads stdin and puts the file's path in the place of "-".
  static Result<StdinScript> Read(call::RunRequest& request);

 private:
  call::Scratch scratch_;
};

}  // namespace coffer::cli
