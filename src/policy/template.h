// SPDX-License-Identifier: Apache-2.0
//
// Templates: how a call's arguments become the argv, environment and stdin of a command, with nothing to escape.
//
//   "{name}"      this whole word is the value of the parameter `name`
//   "{name...}"   one word for each string of an array; in argv only
//   "{@args}"     all arguments as one line of JSON; in stdin only
//   "{{", "}}"    a brace, in a word that is otherwise literal
//
// A word is literal or a parameter, never a mixture: "--file={name}" is refused, so a value can never become part of
// something the author wrote. There is no shell, no splitting and no format string. A word whose parameter was not
// given is left out, and with it the rest of its group: ["grep", ["-m", "{max}"], "--", "{pattern}"].
//
// Option injection: a value that begins with "-" is refused in argv unless a literal "--" stands before it. The rule
// knows nothing about the program, so it also refuses what would be harmless ("-e", "{pattern}"); and programs that
// do not honour "--", or give a meaning to "@file" or "+x", need a schema pattern of their own, or stdin.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "policy/manifest/mistake.h"

namespace coffer::policy {

enum class WordKind : uint8_t { kLiteral, kParameter, kSpread, kAllArguments };

struct Word {
  WordKind kind = WordKind::kLiteral;
  std::string text;  // of a literal; otherwise the parameter's name
  Position at;
};

// One entry of argv: a single word, or a group that is there as a whole or not at all.
struct WordGroup {
  std::vector<Word> words;
  bool group = false;  // written as an array
};

// Linux's MAX_ARG_STRLEN: execve fails for one longer word.
inline constexpr size_t kMaxWordBytes = 128 << 10;

// Letters, digits, "_" and "-", beginning with a letter or "_", at most 64.
bool IsParameterName(std::string_view name);

// A template's text as a word, or why it is none. `at` is left to the caller.
Result<Word> ParseWord(std::string_view text);

// A JSON value as one word: strings as they are, numbers and booleans as JSON writes them. Refuses null, arrays,
// objects and NUL.
Result<std::string> RenderScalar(std::string_view name, const Json& value);

// `args` is an object. Refused: what RenderScalar refuses, an array of anything but strings, option injection, long
// words.
Result<std::vector<std::string>> RenderArgv(const std::vector<WordGroup>& argv, const Json& args);
// A variable whose parameter was not given is left out.
Result<std::vector<std::pair<std::string, std::string>>> RenderEnv(
    const std::vector<std::pair<std::string, Word>>& env, const Json& args);
// Arrays and objects become JSON. "" if the parameter was not given.
Result<std::string> RenderStdin(const Word& word, const Json& args);

}  // namespace coffer::policy
