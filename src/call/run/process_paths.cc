// SPDX-License-Identifier: Apache-2.0
#include "call/run/process_paths.h"

#include "isolation/runtime/relocate.h"

namespace coffer::call {

void MoveToScratch(const std::string& scratch, isolation::Call& call) {
  const auto moved = [&](const std::string& path) {
    for (const std::string_view place : {"/workspace", "/tmp", "/in"}) {
      if (path == place || path.starts_with(std::string(place) + "/")) {
        return scratch + path;
      }
    }
    return path;
  };
  if (call.cwd == "/workspace" || call.cwd == "/tmp" || call.cwd.starts_with("/workspace/")) {
    call.cwd = scratch + call.cwd;  // anything else is the place of a mount
  }
  for (std::string& arg : call.argv) {
    if (arg.starts_with("/in/")) {
      arg = moved(arg);
    }
  }
  for (std::string& variable : call.env) {
    if (variable == "HOME=/workspace" || variable == "TMPDIR=/tmp") {
      const size_t equals = variable.find('=') + 1;
      variable = variable.substr(0, equals) + moved(variable.substr(equals));
    }
  }
}

void UseHostPath(const isolation::RuntimeSet& runtime, isolation::Call& call) {
  for (const isolation::RuntimeFile& file : runtime.files) {
    if (!file.directory && file.inside == call.program) {
      if (call.argv.front() == call.program) {
        call.argv.front() = file.host;
      }
      call.program = file.host;
      break;
    }
  }
  // A link to the program, and the scripts in its arguments, have no entry of their own.
  call.program = isolation::NotRelocated(call.program);
  for (std::string& word : call.argv) {
    word = isolation::NotRelocated(word);
  }
}

}  // namespace coffer::call
