// SPDX-License-Identifier: Apache-2.0
#include "isolation/call_block.h"

#include <string.h>

namespace coffer::isolation {

size_t CallBytes(const Call& call) {
  size_t bytes = call.program.size() + call.cwd.size() + 2;
  for (const std::string& arg : call.argv) {
    bytes += arg.size() + 1;
  }
  for (const std::string& variable : call.env) {
    bytes += variable.size() + 1;
  }
  return bytes;
}

Status PackCall(const Call& call, size_t room, CallBlock* block) {
  const size_t bytes = CallBytes(call);
  if (bytes > room || call.argv.empty() || call.argv.size() > kMaxArguments ||
      call.env.size() > kMaxArguments) {
    return Refused("policy.arguments", "the command line and environment are too large",
                   "pass large data through stdin or --in");
  }
  char* const strings = reinterpret_cast<char*>(block + 1);
  char* at = strings;
  const auto put = [&at](const std::string& text) {
    char* const start = at;
    memcpy(at, text.c_str(), text.size() + 1);
    at += text.size() + 1;
    return start;
  };
  for (const std::string& arg : call.argv) {
    put(arg);
  }
  for (const std::string& variable : call.env) {
    put(variable);
  }
  block->program = static_cast<uint32_t>(put(call.program) - strings);
  block->cwd = static_cast<uint32_t>(put(call.cwd) - strings);
  block->argc = static_cast<uint32_t>(call.argv.size());
  block->envc = static_cast<uint32_t>(call.env.size());
  block->tty = call.tty ? 1 : 0;
  block->size = static_cast<uint32_t>(at - strings);
  block->magic = kCallMagic;
  return {};
}

}  // namespace coffer::isolation
