// SPDX-License-Identifier: Apache-2.0
#include "isolation/git_config.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/ascii.h"

namespace coffer::isolation {
namespace {

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool IsKey(char c) { return IsLetter(c) || (c >= '0' && c <= '9') || c == '-'; }
char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {
    if (text_.starts_with("\xef\xbb\xbf")) {
      at_ = 3;
    }
  }

  std::vector<GitSetting> Run() {
    for (char c = Next(); !end_; c = Next()) {
      if (c == '#' || c == ';') {
        SkipLine();
      } else if (c == '[') {
        if (!ReadSection()) {
          break;
        }
      } else if (!IsSpace(c) && (!IsLetter(c) || !ReadSetting(c))) {
        break;
      }
    }
    return std::move(settings_);
  }

 private:
  // '\n' at the end of the text, which also ends a line; "\r\n" is one '\n'.
  char Next() {
    if (at_ >= text_.size()) {
      end_ = true;
      return '\n';
    }
    if (text_[at_] == '\r' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n') {
      ++at_;
    }
    return text_[at_++];
  }

  void SkipLine() {
    while (!end_ && Next() != '\n') {
    }
  }

  // [name], [name.sub] or [name "sub"]
  bool ReadSection() {
    section_.clear();
    subsection_ = false;
    for (char c = Next(); !end_; c = Next()) {
      if (c == ']') {
        return true;
      }
      if (IsSpace(c)) {
        return c != '\n' && ReadSubsection();
      }
      if (c == '.') {
        subsection_ = true;
      } else if (!IsKey(c)) {
        return false;
      } else if (!subsection_) {
        section_ += Lower(c);
      }
    }
    return false;
  }

  bool ReadSubsection() {
    subsection_ = true;
    char c = ' ';
    while (IsSpace(c) && c != '\n') {
      c = Next();
    }
    if (c != '"') {
      return false;
    }
    for (c = Next(); c != '"'; c = Next()) {
      if (c == '\\') {
        c = Next();
      }
      if (c == '\n') {
        return false;
      }
    }
    return Next() == ']';
  }

  bool ReadSetting(char c) {
    std::string key;
    for (; IsKey(c); c = Next()) {
      key += Lower(c);
    }
    while (c == ' ' || c == '\t') {
      c = Next();
    }
    std::string value;
    if (c != '\n') {
      std::optional<std::string> read = c == '=' ? ReadValue() : std::nullopt;
      if (!read) {
        return false;
      }
      value = std::move(*read);
    }
    value.resize(std::min(value.find('\0'), value.size()));  // to git it is a string of C
    settings_.push_back({section_, subsection_, std::move(key), std::move(value)});
    return true;
  }

  std::optional<std::string> ReadValue() {
    std::string value;
    size_t spaces = 0;  // they count only if something follows
    bool quoted = false;
    for (;;) {
      char c = Next();
      if (c == '\n') {
        return quoted ? std::nullopt : std::optional<std::string>(std::move(value));
      }
      if (!quoted && (c == ';' || c == '#')) {
        SkipLine();
        return value;
      }
      if (!quoted && IsSpace(c)) {
        spaces += value.empty() ? 0 : 1;
        continue;
      }
      value.append(std::exchange(spaces, 0), ' ');
      if (c == '"') {
        quoted = !quoted;
        continue;
      }
      if (c == '\\') {
        c = Next();
        if (c == '\n') {
          continue;  // the end of the text then ends the value, as it does for git
        }
        constexpr std::string_view kEscapes = "tbn\\\"";
        constexpr std::string_view kMeant = "\t\b\n\\\"";
        const size_t which = kEscapes.find(c);
        if (which == std::string_view::npos) {
          return std::nullopt;
        }
        c = kMeant[which];
      }
      value += c;
    }
  }

  std::string_view text_;
  size_t at_ = 0;
  bool end_ = false;
  std::string section_;
  bool subsection_ = false;
  std::vector<GitSetting> settings_;
};

}  // namespace

std::vector<GitSetting> ReadGitConfig(std::string_view text) { return Reader(text).Run(); }

std::string GitConfigValue(std::string_view text, std::string_view section, std::string_view key) {
  const std::vector<GitSetting> settings = ReadGitConfig(text);
  const auto found = std::find_if(settings.rbegin(), settings.rend(), [&](const GitSetting& other) {
    return !other.subsection && other.section == section && other.key == key;
  });
  return found == settings.rend() ? "" : found->value;
}

}  // namespace coffer::isolation
