// SPDX-License-Identifier: Apache-2.0
//
// `coffer run -`: the script is what stdin holds, up to its end. The command itself then reads an empty stdin.
//
// It goes through the same door as a script in a file: it is written to a directory of its own that only the caller can
// enter, named as the caller's own word, copied into the boundary, and removed. The first line says what runs it, or
// else the one runtime that was named.
#pragma once

#include <string>
#include <utility>

#include "call/run/run_request.h"

namespace coffer::cli {

class StdinScript {
 public:
  // Reads stdin and puts the file's path in the place of "-".
  static Result<StdinScript> Read(call::RunRequest& request);

  StdinScript() = default;
  StdinScript(StdinScript&& other) noexcept
      : directory_(std::exchange(other.directory_, {})), file_(std::move(other.file_)) {}
  StdinScript& operator=(StdinScript&&) = delete;
  StdinScript(const StdinScript&) = delete;
  StdinScript& operator=(const StdinScript&) = delete;
  ~StdinScript();

 private:
  std::string directory_;
  std::string file_;
};

}  // namespace coffer::cli
