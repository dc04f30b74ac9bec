// SPDX-License-Identifier: Apache-2.0
#include "cli/stdin_script.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/ending_signals.h"
#include "base/quantity.h"
#include "base/sys.h"

namespace coffer::cli {
namespace {

constexpr size_t kLongestScript = 64 << 20;

struct ScriptName {
  std::string_view runtime;
  std::string_view name;
};
constexpr std::array kScriptNames = {
    ScriptName{"python3", "stdin.py"}, ScriptName{"node", "stdin.mjs"},
    ScriptName{"bash", "stdin.bash"}, ScriptName{"sh", "stdin.sh"}, ScriptName{"perl", "stdin.pl"}};

// What the file is called decides what runs it, unless its first line does.
Result<std::string_view> NameFor(std::string_view script,
                                 const std::vector<std::string>& runtimes) {
  if (script.starts_with("#!")) {
    return std::string_view("stdin");
  }
  std::string_view name;
  for (const std::string& runtime : runtimes) {
    const auto* const known =
        std::find_if(kScriptNames.begin(), kScriptNames.end(),
                     [&](const ScriptName& one) { return one.runtime == runtime; });
    if (known != kScriptNames.end() && !name.empty()) {
      name = "";
      break;
    }
    name = known != kScriptNames.end() ? known->name : name;
  }
  if (name.empty()) {
    return Refused("policy.usage", "cannot tell what runs the script on stdin",
                   "begin it with a line such as #!/usr/bin/env python3, or name one runtime: "
                   "coffer run --runtime python3 -");
  }
  return name;
}

// Only here can a signal end coffer at once: nothing is made yet.
Result<std::string> ReadStdin() {
  const EndingSignalsLetThrough interruptible;
  return sys::ReadFd(STDIN_FILENO, kLongestScript);
}

}  // namespace

Result<StdinScript> StdinScript::Read(call::RunRequest& request) {
  StdinScript script;
  if (!request.script || request.command.front() != "-") {
    return script;
  }
  Result<std::string> text = ReadStdin();
  if (!text.ok()) {
    return Refused("policy.input.size",
                   fmt::format("the script on stdin cannot be read: {}", text.error().message),
                   fmt::format("it may have up to {}", FormatSize(kLongestScript)));
  }
  TRY_ASSIGN(const std::string_view name, NameFor(*text, request.envelope.runtimes));
  TRY_ASSIGN(script.scratch_,
             call::Scratch::Make({isolation::Input{std::string(name), std::move(*text)}}));
  request.command.front() = fmt::format("{}/in/{}", script.scratch_.path(), name);
  return script;
}

}  // namespace coffer::cli
