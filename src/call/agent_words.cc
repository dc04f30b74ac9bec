// SPDX-License-Identifier: Apache-2.0
#include "call/agent_words.h"

#include <algorithm>
#include <tuple>

namespace coffer::call {
namespace {

constexpr std::string_view kQuotes = "\"'`";
constexpr std::string_view kEnds = " \t\n\"'`,:;()[]{}<>=";

std::string_view LastPart(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) {
    path.remove_suffix(1);
  }
  const size_t slash = path.rfind('/');
  return path.size() == 1 || slash == std::string_view::npos ? path : path.substr(slash + 1);
}

bool HasLongerName(std::string_view text, size_t at) {
  return at < text.size() && text[at] != '/' && kEnds.find(text[at]) == std::string_view::npos &&
         text[at] != '.';
}

// Nothing is added that is no path of its own, such as "/".
void Add(const std::string& path, const std::string& shown, std::vector<HostWord>& words,
         bool of_command = false) {
  if (path.size() > 1 && path.front() == '/') {
    words.push_back({path, shown.empty() ? std::string(LastPart(path)) : shown, of_command});
  }
}

// What is shown at its own place has no other name inside.
template <class AnyMount>
std::string NameInside(const AnyMount& mount) {
  return mount.at == mount.host ? "" : mount.at;
}

std::vector<HostWord> LongestFirst(std::vector<HostWord> words) {
  // A mount goes before a word of the command with the same path.
  std::sort(words.begin(), words.end(), [](const HostWord& a, const HostWord& b) {
    return std::tuple(b.path.size(), std::string_view(a.path), a.of_command,
                      std::string_view(a.shown)) <
           std::tuple(a.path.size(), std::string_view(b.path), b.of_command,
                      std::string_view(b.shown));
  });
  return words;
}

// The word that `text` has at `at`, as a whole path or the beginning of one.
const HostWord* FindWord(const std::vector<HostWord>& words, std::string_view text, size_t at) {
  const auto found = std::find_if(words.begin(), words.end(), [&](const HostWord& word) {
    return text.substr(at).starts_with(word.path) && !HasLongerName(text, at + word.path.size());
  });
  return found == words.end() ? nullptr : &*found;
}

bool IsInside(const std::vector<HostWord>& words, std::string_view path) {
  return path == "/workspace" || path == "/tmp" ||
         std::any_of(words.begin(), words.end(),
                     [&](const HostWord& word) { return word.shown == path; });
}

// Where the path ends that begins at `at`.
size_t EndOfPath(std::string_view text, size_t at, size_t from) {
  const bool quoted = at > 0 && kQuotes.find(text[at - 1]) != std::string_view::npos;
  const size_t end = quoted ? text.find(text[at - 1], from) : std::string_view::npos;
  return end != std::string_view::npos ? end
                                       : std::min(text.find_first_of(kEnds, from), text.size());
}

std::string Hide(const std::vector<HostWord>& words, Mentions mentions, std::string_view text) {
  std::string hidden;
  for (size_t at = 0; at < text.size();) {
    const bool starts =
        text[at] == '/' && (at == 0 || kEnds.find(text[at - 1]) != std::string_view::npos);
    if (!starts) {
      hidden += text[at++];
      continue;
    }
    if (const HostWord* const word = FindWord(words, text, at); word != nullptr) {
      const size_t end = EndOfPath(text, at, at + word->path.size());
      const std::string_view rest =
          text.substr(at + word->path.size(), end - at - word->path.size());
      hidden +=
          word->of_command && rest.size() > 1 ? LastPart(text.substr(at, end - at)) : word->shown;
      hidden += word->of_command ? "" : rest;
      at = end;
      continue;
    }
    const std::string_view before = text.substr(0, at);
    const bool url = before.ends_with("https:") || before.ends_with("http:");
    if (mentions == Mentions::kNamed || url) {
      hidden += text[at++];
      continue;
    }
    const size_t end = EndOfPath(text, at, at);
    const std::string_view path = text.substr(at, end - at);
    hidden += IsInside(words, path) ? path : LastPart(path);
    at = end;
  }
  return hidden;
}

}  // namespace

std::vector<HostWord> HostWordsOf(const RunRequest& request) {
  std::vector<HostWord> words;
  Add(request.envelope.workspace, "/workspace", words);
  for (const policy::Mount& mount : request.envelope.mounts) {
    Add(mount.host, NameInside(mount), words);
  }
  for (const std::string& word : request.command) {
    Add(word, "", words, /*of_command=*/true);
  }
  return LongestFirst(std::move(words));
}

std::vector<HostWord> HostWordsOf(const policy::Tool& tool, const std::string& workspace) {
  std::vector<HostWord> words;
  Add(workspace, "/workspace", words);
  for (const policy::FileMount& mount : tool.manifest.mounts) {
    Add(mount.host, NameInside(mount), words);
  }
  return LongestFirst(std::move(words));
}

std::string HideHostWords(const std::vector<HostWord>& words, std::string_view text) {
  return Hide(words, Mentions::kNamed, text);
}

std::string HideHostPaths(const std::vector<HostWord>& words, std::string_view text) {
  return Hide(words, Mentions::kAny, text);
}

void SayToAgent(const std::vector<HostWord>& words, Mentions mentions, ToolReply& reply) {
  const auto hide = [&](const std::string& text) { return Hide(words, mentions, text); };
  if (reply.operator_message.empty()) {
    reply.operator_message = reply.error_message;
    reply.operator_hint = reply.hint;
  }
  reply.error_message = hide(reply.error_message);
  reply.hint = hide(reply.hint);
  for (audit::Denial& denial : reply.denials) {
    denial.reason = hide(denial.reason);
    denial.fix = hide(denial.fix);
  }
}

}  // namespace coffer::call
