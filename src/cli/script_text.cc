// SPDX-License-Identifier: Apache-2.0
#include "cli/script_text.h"

#include <cctype>

#include "base/regular_file.h"

namespace coffer::cli {
namespace {

constexpr size_t kMaxScript = 256 << 10;

bool IsWordPart(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

}  // namespace

std::string ScriptText(const call::RunRequest& request) {
  if (!request.script || !request.project.empty() || !request.envelope.mounts.empty()) {
    return {};
  }
  Result<std::string> text = sys::ReadRegular(request.command.front(), kMaxScript);
  return text.ok() ? std::move(text).value() : std::string();
}

bool NamesWord(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || !IsWordPart(text[at - 1])) && (end == text.size() || !IsWordPart(text[end]))) {
      return true;
    }
  }
  return false;
}

}  // namespace coffer::cli
