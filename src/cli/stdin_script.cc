// SPDX-License-Identifier: Apache-2.0
#include "cli/stdin_script.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
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

std::string Parent() {
  const char* const wished = ::getenv("TMPDIR");
  return ::geteuid() == 0 || wished == nullptr || wished[0] != '/' ? "/tmp" : wished;
}

}  // namespace

Result<StdinScript> StdinScript::Read(call::RunRequest& request) {
  StdinScript script;
  if (!request.script || request.command.front() != "-") {
    return script;
  }
  const EndingSignalsLetThrough interruptible;
  Result<std::string> text = sys::ReadFd(STDIN_FILENO, kLongestScript);
  if (!text.ok()) {
    return Refused("policy.input.size",
                   fmt::format("the script on stdin cannot be read: {}", text.error().message),
                   fmt::format("it may have up to {}", FormatSize(kLongestScript)));
  }
  TRY_ASSIGN(const std::string_view name, NameFor(*text, request.envelope.runtimes));
  std::string directory = Parent() + "/coffer-stdin-XXXXXX";
  if (::mkdtemp(directory.data()) == nullptr) {
    return HostFault("isolation.scratch", fmt::format("cannot create a directory in {}", Parent()),
                     "make room there, or set TMPDIR to a directory you can write");
  }
  script.directory_ = directory;
  script.file_ = fmt::format("{}/{}", directory, name);
  TRY_ASSIGN(const UniqueFd file,
             sys::Open(script.file_, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
  TRY(sys::WriteAll(file.get(), *text));
  request.command.front() = script.file_;
  return script;
}

StdinScript::~StdinScript() {
  if (!directory_.empty()) {
    ::unlink(file_.c_str());
    ::rmdir(directory_.c_str());
  }
}

}  // namespace coffer::cli
