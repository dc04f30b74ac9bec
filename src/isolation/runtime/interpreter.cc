// SPDX-License-Identifier: Apache-2.0
#include "isolation/runtime/interpreter.h"

#include "base/path_words.h"
#include "isolation/runtime/relocate.h"

namespace coffer::isolation {

namespace {

constexpr int kMaxScripts =
    4;  // a script whose interpreter is a script ...; the kernel stops at 4 as well

std::vector<std::string> SplitWords(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const size_t end = text.find_first_of(" \t");
    if (end != 0) {
      words.emplace_back(text.substr(0, end));
    }
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return words;
}

// The interpreter's path on the host. "python" means python3 where there is no python. A name without a slash is looked
// up on the caller's PATH too, and what is found there counts as named by the caller.
Result<std::string> FindInterpreter(const std::string& name, const std::string& script) {
  Result<std::string> path =
      name.find('/') == std::string::npos ? FindProgram(name) : Result<std::string>(name);
  if (!path.ok() && name == "python") {
    path = FindProgram("python3");
  }
  if (path.ok() && !path->starts_with('/')) {
    return Error{
        ErrorKind::kNotExecutable,
        "runtime.script.relative",
        PathInWords(script) + ": its interpreter " + InQuotes(name) + " is not an absolute path",
        {},
        0};
  }
  if (!path.ok()) {
    path.error().message =
        PathInWords(script) + ": its interpreter " + InQuotes(name) + " was not found";
  }
  return path;
}

}  // namespace

Result<std::vector<std::string>> InterpreterOf(const Shebang& shebang, const std::string& script) {
  if (BaseName(shebang.interpreter) != "env") {
    std::vector<std::string> words = {shebang.interpreter};
    if (!shebang.argument.empty()) {
      words.push_back(shebang.argument);
    }
    return words;
  }
  std::string_view argument = shebang.argument;
  const bool split = argument.starts_with("-S");
  if (split) {
    argument.remove_prefix(2);
  }
  std::vector<std::string> words =
      split ? SplitWords(argument) : std::vector<std::string>{std::string(argument)};
  if (words.empty() || words.front().empty() || words.front().starts_with('-') ||
      words.front().find('=') != std::string::npos) {
    return Error{
        ErrorKind::kNotExecutable, "runtime.script.env",
        PathInWords(script) + ": the first line asks env for more than running an interpreter",
        "write #!/usr/bin/env python3, or name the interpreter on the command line", 0};
  }
  return words;
}

Result<Chain> FollowInterpreter(RealPaths& paths, std::vector<std::string> words,
                                const std::string& script) {
  Chain chain;
  for (int depth = 0; depth < kMaxScripts; ++depth) {
    chain.named_by =
        words.front().find('/') == std::string::npos ? NamedBy::kCaller : NamedBy::kFile;
    TRY_ASSIGN(chain.path, FindInterpreter(words.front(), script));
    Result<Program> program = OpenProgram(paths, chain.path);
    if (!program.ok()) {
      program.error().message =
          PathInWords(script) + ": its interpreter cannot be used: " + program.error().message;
      return std::move(program.error());
    }
    chain.program = std::move(program).value();
    chain.program.named_by_caller = chain.named_by == NamedBy::kCaller;
    if (!chain.program.is_script) {
      chain.before = std::move(words);
      return chain;
    }
    if (chain.program.shebang.interpreter.empty()) {
      break;
    }
    TRY_ASSIGN(std::vector<std::string> outer, InterpreterOf(chain.program.shebang, chain.path));
    words.front() = Relocated(chain.path);
    chain.scripts.insert(chain.scripts.begin(), chain.path);
    words.insert(words.begin(), outer.begin(), outer.end());
  }
  return Error{ErrorKind::kNotExecutable,
               "runtime.script.chain",
               PathInWords(script) + ": its interpreter is a script that leads to no program",
               {},
               0};
}

}  // namespace coffer::isolation
