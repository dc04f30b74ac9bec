// SPDX-License-Identifier: Apache-2.0
//
// The call that a boundary is given, and the block in which init reads it: the end of the plan's
// second half (pack_plan.h). child/report.h says how it is laid out; init believes none of it
// before ValidCallBlock.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"
#include "isolation/child/report.h"

namespace coffer::isolation {

struct Call {
  std::string program;  // absolute path inside
  std::vector<std::string> argv;
  std::vector<std::string> env;  // "K=V"
  std::string cwd = "/workspace";
  bool tty = false;
};

// The room its strings take.
size_t CallBytes(const Call& call);

// Writes the call into `block`, behind which there is `room` for strings.
Status PackCall(const Call& call, size_t room, CallBlock* block);

}  // namespace coffer::isolation
