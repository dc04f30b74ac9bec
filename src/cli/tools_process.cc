// SPDX-License-Identifier: Apache-2.0
#include "cli/tools_process.h"

#include "call/warden/protocol.h"
#include "call/warden/wire.h"
#include "cli/verb_inside_tools.h"

namespace coffer::cli {

std::vector<std::string> ToolsProcess::Words() const {
  std::vector<std::string> words = {
      "coffer",    kInsideVerb,      "--call",    call_id_,
      "--session", request_.session, "--project", request_.project,
      "--state",   place_.state,     "--calls",   std::to_string(request_.tool_calls)};
  for (const std::string& directory : place_.manifests) {
    words.insert(words.end(), {"--tools", directory});
  }
  if (!place_.config.empty()) {
    words.insert(words.end(), {"--config", place_.config});
  }
  words.emplace_back("--");
  words.insert(words.end(), request_.tools.begin(), request_.tools.end());
  return words;
}

Status ToolsProcess::Start() {
  call::RunRequest maker;
  maker.envelope = request_.envelope;
  maker.command = {"run"};
  TRY_ASSIGN(const UniqueFd envelope, call::SealedBytes(call::EncodeRun(maker)));
  return StartWith(Words(), envelope.get());
}

}  // namespace coffer::cli
