// SPDX-License-Identifier: Apache-2.0
#include "policy/template.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace coffer::policy {
namespace {

constexpr std::string_view kAllArguments = "{@args}";

bool IsNameLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

// "{inner}" without further braces, or nothing.
std::optional<std::string_view> Inner(std::string_view text) {
  if (text.size() < 2 || text.front() != '{' || text.back() != '}') {
    return std::nullopt;
  }
  const std::string_view inner = text.substr(1, text.size() - 2);
  if (inner.find_first_of("{}") != std::string_view::npos) {
    return std::nullopt;
  }
  return inner;
}

Error BadBrace(std::string_view text) {
  const size_t open = text.find('{');
  const size_t close = text.find('}', open == std::string_view::npos ? 0 : open);
  if (open != std::string_view::npos && close != std::string_view::npos &&
      IsParameterName(text.substr(open + 1, close - open - 1))) {
    return Refused("policy.template",
                   fmt::format("\"{}\" puts a parameter inside a longer word", Printable(text)),
                   fmt::format("parameters are whole words: write \"{}\" as a word of its own",
                               text.substr(open, close - open + 1)));
  }
  return Refused("policy.template", fmt::format("a single brace in \"{}\"", Printable(text)),
                 "write {{ or }} for a brace, or \"{name}\" for a parameter");
}

Status CheckText(std::string_view name, std::string_view text) {
  if (text.find('\0') != std::string_view::npos) {
    return Refused("policy.args", fmt::format("the value of {} has a NUL character", name));
  }
  return {};
}

Status CheckArgument(std::string_view name, std::string_view value, bool after_separator) {
  if (value.size() >= kMaxWordBytes) {
    return Refused("policy.args", fmt::format("the value of {} is too long for an argument", name),
                   "the tool should take it through stdin");
  }
  if (!after_separator && value.starts_with('-')) {
    return Refused(
        "policy.args.option",
        fmt::format("the value of {} begins with \"-\" and would be taken for an option", name),
        "leave the dash out; or the tool's manifest puts \"--\" before the parameter");
  }
  return {};
}

// One word of a group: appends what it becomes. `missing` is set if its parameter was not given.
Status AddWord(const Word& word, const Json& args, bool after_separator,
               std::vector<std::string>& out, bool& missing) {
  if (word.kind == WordKind::kLiteral) {
    out.push_back(word.text);
    return {};
  }
  const auto found = args.find(word.text);
  if (found == args.end()) {
    missing = true;
    return {};
  }
  if (word.kind == WordKind::kParameter) {
    TRY_ASSIGN(std::string text, RenderScalar(word.text, *found));
    TRY(CheckArgument(word.text, text, after_separator));
    out.push_back(std::move(text));
    return {};
  }
  if (!found->is_array()) {
    return Refused("policy.args", fmt::format("{} is not an array", word.text));
  }
  for (const Json& item : *found) {
    if (!item.is_string()) {
      return Refused("policy.args", fmt::format("{} holds something else than strings", word.text));
    }
    TRY_ASSIGN(std::string text, RenderScalar(word.text, item));
    TRY(CheckArgument(word.text, text, after_separator));
    out.push_back(std::move(text));
  }
  return {};
}

}  // namespace

bool IsParameterName(std::string_view name) {
  return !name.empty() && name.size() <= 64 && IsNameLetter(name.front()) &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return IsNameLetter(c) || (c >= '0' && c <= '9') || c == '-'; });
}

Result<Word> ParseWord(std::string_view text) {
  if (text == kAllArguments) {
    return Word{WordKind::kAllArguments, "", {}};
  }
  if (const auto inner = Inner(text)) {
    std::string_view name = *inner;
    const bool spread = name.ends_with("...");
    name.remove_suffix(spread ? 3 : 0);
    if (!IsParameterName(name)) {
      return Refused("policy.template",
                     fmt::format("\"{}\" is not a parameter's name", Printable(name)),
                     "letters, digits, _ and -; write {{ and }} for braces that mean themselves");
    }
    return Word{spread ? WordKind::kSpread : WordKind::kParameter, std::string(name), {}};
  }
  Word word;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '{' || text[i] == '}') {
      if (i + 1 >= text.size() || text[i + 1] != text[i]) {
        return BadBrace(text);
      }
      ++i;
    }
    word.text += text[i];
  }
  return word;
}

Result<std::string> RenderScalar(std::string_view name, const Json& value) {
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    TRY(CheckText(name, text));
    return text;
  }
  if (value.is_number() || value.is_boolean()) {
    return PrintJson(value);
  }
  return Refused("policy.args", fmt::format("{} is not a string, number or boolean", name));
}

Result<std::vector<std::string>> RenderArgv(const std::vector<WordGroup>& argv, const Json& args) {
  std::vector<std::string> out;
  bool after_separator = false;
  for (const WordGroup& group : argv) {
    std::vector<std::string> words;
    bool missing = false;
    bool separator = after_separator;
    for (const Word& word : group.words) {
      TRY(AddWord(word, args, separator, words, missing));
      separator = separator || (word.kind == WordKind::kLiteral && word.text == "--");
    }
    if (missing) {
      continue;  // the group is left out, and so is a "--" that was part of it
    }
    after_separator = separator;
    std::move(words.begin(), words.end(), std::back_inserter(out));
  }
  return out;
}

Result<std::vector<std::pair<std::string, std::string>>> RenderEnv(
    const std::vector<std::pair<std::string, Word>>& env, const Json& args) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& [name, word] : env) {
    if (word.kind == WordKind::kLiteral) {
      out.emplace_back(name, word.text);
      continue;
    }
    const auto found = args.find(word.text);
    if (found == args.end()) {
      continue;
    }
    TRY_ASSIGN(std::string text, RenderScalar(word.text, *found));
    if (text.size() + name.size() + 1 >= kMaxWordBytes) {
      return Refused("policy.args",
                     fmt::format("the value of {} is too long for a variable", word.text),
                     "the tool should take it through stdin");
    }
    out.emplace_back(name, std::move(text));
  }
  return out;
}

Result<std::string> RenderStdin(const Word& word, const Json& args) {
  if (word.kind == WordKind::kLiteral) {
    return word.text;
  }
  if (word.kind == WordKind::kAllArguments) {
    return PrintJson(args) + "\n";
  }
  const auto found = args.find(word.text);
  if (found == args.end()) {
    return std::string();
  }
  if (found->is_structured()) {
    return PrintJson(*found) + "\n";
  }
  if (found->is_string()) {
    return found->get<std::string>();  // bytes on a pipe: a NUL is data there
  }
  return RenderScalar(word.text, *found);
}

}  // namespace coffer::policy
