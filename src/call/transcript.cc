// SPDX-License-Identifier: Apache-2.0
#include "call/transcript.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text.h"
#include "policy/scrub.h"

namespace coffer::call {
namespace {

constexpr size_t kShortestSecret = 4;
constexpr size_t kMostWords = 4096;
// Looking for each of them in each part takes time, and the caller decides how many there are.
constexpr size_t kMostSecrets = 100;
constexpr std::string_view kTooMany = "<not kept: the call has too many secret values>";

void AddSecret(const std::string& value, std::vector<std::string>& secrets) {
  if (value.size() < kShortestSecret) {
    return;
  }
  secrets.push_back(value);
  // As it stands inside a JSON text, without the quotes.
  const std::string quoted = PrintJson(Json(value));
  if (const std::string inside = quoted.substr(1, quoted.size() - 2); inside != value) {
    secrets.push_back(inside);
  }
}

void GatherSecrets(const Json& value, bool secret, int depth, std::vector<std::string>& secrets) {
  if (value.is_string() && secret) {
    AddSecret(value.get_ref<const std::string&>(), secrets);
  } else if (value.is_number() && secret) {
    AddSecret(PrintJson(value), secrets);
  } else if (value.is_structured() && depth <= kMaxJsonDepth) {
    for (const auto& [name, item] : value.items()) {
      GatherSecrets(item, secret || (value.is_object() && policy::IsSecretName(name)), depth + 1,
                    secrets);
    }
  }
}

// In one pass, the longest of those that begin at the same place. The replacement is not searched
// again, or a secret such as "reda" would make the text longer with each pass.
std::string TakeOutValues(const std::vector<std::string>& secrets, std::string_view text) {
  if (secrets.size() > kMostSecrets) {
    return std::string(text.empty() ? text : kTooMany);
  }
  std::vector<size_t> next(secrets.size(), 0);  // where each is found, at or after `from`
  std::string kept;
  for (size_t from = 0;;) {
    size_t at = std::string_view::npos, found = 0;
    for (size_t i = 0; i < secrets.size(); ++i) {
      if (next[i] != std::string_view::npos && (next[i] < from || from == 0)) {
        next[i] = text.find(secrets[i], from);
      }
      if (next[i] < at) {
        at = next[i];
        found = i;
      }
    }
    if (at == std::string_view::npos) {
      return kept.append(text.substr(from));
    }
    kept.append(text.substr(from, at - from)).append("<redacted: value>");
    from = at + secrets[found].size();
  }
}

// Scrubs before it cuts. The unread part may hold the rest of a secret, so the end of the read part is left out.
std::string Keep(std::string_view text, std::string_view name,
                 const std::vector<std::string>& secrets, Json& cut) {
  std::string kept = policy::ScrubText(TakeOutValues(secrets, text.substr(0, kTranscriptReads)));
  bool shorter = kept.size() > kMostTranscriptPart;
  size_t most = kMostTranscriptPart;
  if (text.size() >= kTranscriptReads) {
    constexpr size_t kMargin = kTranscriptReads - kMostTranscriptPart;
    shorter = true;
    most = std::min(most, kept.size() - std::min(kept.size(), kMargin));
  }
  kept.resize(std::min(kept.size(), most));
  if (shorter) {
    cut.push_back(name);
  }
  return kept;
}

std::string TextAt(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

std::vector<std::string> WordsAt(const Json& json, const char* name) {
  std::vector<std::string> words;
  const auto found = json.find(name);
  if (found != json.end() && found->is_array()) {
    for (const Json& word : *found) {
      words.push_back(word.is_string() ? word.get<std::string>() : "");
    }
  }
  return words;
}

}  // namespace

std::vector<std::string> SecretValuesOf(const Json& args, const policy::Envelope& envelope) {
  std::vector<std::string> secrets;
  GatherSecrets(args, false, 0, secrets);
  for (const auto& [name, value] : envelope.env) {
    if (policy::IsSecretName(name)) {
      AddSecret(value, secrets);
    }
  }
  // The longest first: one may be the beginning of another.
  std::sort(secrets.begin(), secrets.end(),
            [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
  return secrets;
}

std::string FormatTranscript(const Transcript& ran, const std::vector<std::string>& secrets) {
  Json cut = Json::array();
  Json command = Json::array();
  size_t room = kMostTranscriptPart;
  bool shorter = ran.command.size() > kMostWords;
  std::vector<std::string> words(
      ran.command.begin(),
      ran.command.begin() + static_cast<ptrdiff_t>(std::min(ran.command.size(), kMostWords)));
  for (std::string& word : words) {
    word = TakeOutValues(secrets, word);
  }
  for (const std::string& word : policy::ScrubWords(words)) {
    command.push_back(word.substr(0, room));
    shorter = shorter || word.size() > room;
    room -= std::min(room, word.size());
  }
  if (shorter) {
    cut.push_back("command");
  }
  Json json;
  json["command"] = std::move(command);
  json["code"] = Keep(ran.code, "code", secrets, cut);
  json["stdin"] = Keep(ran.stdin_text, "stdin", secrets, cut);
  json["stdout"] = Keep(ran.stdout_text, "stdout", secrets, cut);
  json["stderr"] = Keep(ran.stderr_text, "stderr", secrets, cut);
  json["cut"] = std::move(cut);
  return PrintJson(json);
}

Result<Transcript> ParseTranscript(std::string_view text) {
  TRY_ASSIGN(const Json json, ParseJson(text));
  if (!json.is_object() || !json.contains("command")) {
    return Internal("record.transcript", "a stored transcript cannot be read");
  }
  Transcript ran;
  ran.command = WordsAt(json, "command");
  ran.code = TextAt(json, "code");
  ran.stdin_text = TextAt(json, "stdin");
  ran.stdout_text = TextAt(json, "stdout");
  ran.stderr_text = TextAt(json, "stderr");
  ran.cut = WordsAt(json, "cut");
  return ran;
}

std::string TellTranscript(const Transcript& ran) {
  std::string text;
  const auto tell = [&](std::string_view name, std::string_view what) {
    if (what.empty()) {
      return;
    }
    text += fmt::format("\n  {}\n", name);
    for (size_t at = 0; at < what.size();) {
      const size_t end = std::min(what.find('\n', at), what.size());
      text += "  | " + Escaped(what.substr(at, end - at)) + "\n";
      at = end + 1;
    }
  };
  // One word a line: a word may have spaces in it.
  std::string words;
  for (const std::string& word : ran.command) {
    words += Escaped(word) + "\n";
  }
  tell("the command, one word a line", words);
  tell("its code", ran.code);
  tell("its stdin", ran.stdin_text);
  tell("its stdout", ran.stdout_text);
  tell("its stderr", ran.stderr_text);
  if (!ran.cut.empty()) {
    text += fmt::format("\n  only the first 64 KiB are kept of: {}\n",
                        Printable(fmt::format("{}", fmt::join(ran.cut, ", "))));
  }
  return text;
}

}  // namespace coffer::call
