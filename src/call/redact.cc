// SPDX-License-Identifier: Apache-2.0
#include "call/redact.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/hash.h"
#include "base/text.h"
#include "isolation/runtime/recipes.h"

namespace coffer::call {
namespace {

constexpr size_t kShortest = 8;

void GatherWords(const Json& value, std::vector<GivenWord>& words) {
  if (value.is_string()) {
    const std::string& text = value.get_ref<const std::string&>();
    words.push_back({text, fmt::format("<{} bytes>", text.size())});
  }
  if (value.is_structured()) {
    for (const Json& item : value) {
      GatherWords(item, words);
    }
  }
}

// The longest first: one may be the beginning of another.
std::vector<GivenWord> InOrder(std::vector<GivenWord> words) {
  std::stable_sort(words.begin(), words.end(), [](const GivenWord& a, const GivenWord& b) {
    return a.text.size() > b.text.size();
  });
  return words;
}

bool GoesOn(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
         c == '-';
}

void Replace(std::string& text, const std::string& word, const std::string& shown, bool whole) {
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at)) {
    const size_t end = at + word.size();
    const bool longer = (at > 0 && GoesOn(text[at - 1]) && GoesOn(word.front())) ||
                        (end < text.size() && GoesOn(text[end]) && GoesOn(word.back()));
    if (whole && longer) {
      at = end;
      continue;
    }
    text.replace(at, word.size(), shown);
    at += shown.size();
  }
}

// `word`, with a hash in the place of the path that it is between quotes, brackets and stops.
std::string WithoutPath(std::string_view word) {
  constexpr std::string_view kAround = "\"'(),;:";
  constexpr std::string_view kOwn = "~/.config/coffer/";
  const size_t first = word.find_first_not_of(kAround);
  if (first == std::string_view::npos) {
    return std::string(word);
  }
  const size_t last = word.find_last_not_of(kAround);
  const std::string path(word.substr(first, last - first + 1));
  if (path.size() < 2 || path.starts_with(kOwn) || path.find('/') == std::string::npos) {
    return std::string(word);
  }
  return std::string(word.substr(0, first)) + HashOf(path) + std::string(word.substr(last + 1));
}

// What stands in quotes behind `before`: a name that a file gave. Values of TOML (`toolchains = ["DIRECTORY"]`) are
// what a hint says to write.
std::string WithoutName(std::string_view before, std::string_view name) {
  const bool value = before.ends_with("[\"") || before.ends_with("= \"");
  const bool hash = name.starts_with("sha256:") && name.size() == HashOf({}).size();
  if (name.empty() || name == ".." || hash || (value && name.find('/') == std::string_view::npos)) {
    return std::string(name);
  }
  return HashOf(name);
}

}  // namespace

std::vector<GivenWord> WordsOf(const Json& args) {
  std::vector<GivenWord> words;
  GatherWords(args, words);
  return InOrder(std::move(words));
}

std::vector<GivenWord> WordsOf(const RunRequest& request) {
  std::vector<std::string> given;
  if (!request.command.empty()) {
    given.assign(request.command.begin() + 1, request.command.end());
  }
  for (const policy::Mount& mount : request.envelope.mounts) {
    given.push_back(mount.host);
  }
  for (const std::string& input : request.envelope.inputs) {
    given.push_back(input);
    given.push_back(input.substr(input.rfind('/') + 1));  // its name inside
  }
  for (const policy::Mount& mount : request.envelope.mounts) {
    given.push_back(mount.at);
  }
  given.insert(given.end(), request.tool_dirs.begin(), request.tool_dirs.end());
  given.insert(given.end(), request.tools.begin(), request.tools.end());
  for (const std::string& runtime : request.envelope.runtimes) {
    if (isolation::FindRecipe(runtime) == nullptr) {
      given.push_back(runtime);
    }
  }
  for (const std::string& place :
       {request.out_dir, request.receipt_path, request.envelope.cwd, request.state}) {
    given.push_back(place);
  }
  std::vector<GivenWord> words;
  for (std::string& word : given) {
    words.push_back({word, HashOf(word)});
  }
  return InOrder(std::move(words));
}

std::string TakeOut(const std::vector<GivenWord>& words, std::string text) {
  for (const GivenWord& word : words) {
    if (word.text.empty()) {
      continue;
    }
    for (const std::string& form : {word.text, Printable(word.text)}) {
      Replace(text, '"' + form + '"', word.shown, /*whole=*/false);
      if (form.size() >= kShortest || (form.size() > 1 && form.front() == '/')) {
        Replace(text, form, word.shown, /*whole=*/true);
      }
    }
  }
  return text;
}

std::string TakeOutPaths(const std::string& text) {
  std::string kept;
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    if (text[at] == '"') {
      end = std::min(text.find('"', end), text.size());
      kept += '"' + WithoutName(std::string_view(text).substr(0, at + 1),
                                std::string_view(text).substr(at + 1, end - at - 1));
      at = std::min(end + 1, text.size());
      kept += end < text.size() ? "\"" : "";
      continue;
    }
    if (text[at] != ' ') {
      end = std::min(text.find_first_of(" \"", end), text.size());
    }
    kept += WithoutPath(std::string_view(text).substr(at, end - at));
    at = end;
  }
  return kept;
}

void RedactRefusal(const std::vector<GivenWord>& words, audit::Receipt& receipt) {
  receipt.blast_radius = TakeOut(words, std::move(receipt.blast_radius));
  receipt.error_message = TakeOutPaths(TakeOut(words, std::move(receipt.error_message)));
  for (audit::Denial& denial : receipt.denials) {
    denial.target = TakeOut(words, std::move(denial.target));
    denial.reason = TakeOutPaths(TakeOut(words, std::move(denial.reason)));
    denial.fix = TakeOutPaths(TakeOut(words, std::move(denial.fix)));
  }
}

}  // namespace coffer::call
