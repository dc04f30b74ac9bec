// SPDX-License-Identifier: Apache-2.0
#include "isolation/runtime/trampoline.h"

namespace coffer::isolation {
namespace {

constexpr std::string_view kFirst = "#!/bin/sh\n'''exec' ";
constexpr std::string_view kArguments = R"( "$0" "$@")";
constexpr std::string_view kLast = "\n' '''\n";
constexpr std::string_view kBeside = R"x("$(dirname -- "$(realpath -- "$0")")"/)x";
// The shell would read these in another way than as part of a name.
constexpr std::string_view kSpecial = "\"'\\$`\n\t;&|<>()*?[]{}~!#";

// A word that the shell takes as it is: plain without spaces, or in quotes.
std::string_view Unquoted(std::string_view word) {
  const bool quoted = word.size() > 2 && word.front() == word.back() &&
                      (word.front() == '\'' || word.front() == '"');
  if (quoted) {
    word = word.substr(1, word.size() - 2);
  }
  const bool plain = word.find_first_of(kSpecial) == std::string_view::npos &&
                     (quoted || word.find(' ') == std::string_view::npos);
  return plain ? word : std::string_view();
}

}  // namespace

std::string TrampolineTarget(std::string_view head, std::string_view directory) {
  if (!head.starts_with(kFirst)) {
    return {};
  }
  head.remove_prefix(kFirst.size());
  const size_t end = head.find('\n');
  if (end == std::string_view::npos || !head.substr(end).starts_with(kLast)) {
    return {};
  }
  std::string_view line = head.substr(0, end);
  if (!line.ends_with(kArguments)) {
    return {};
  }
  line.remove_suffix(kArguments.size());
  if (line.starts_with(kBeside)) {
    line.remove_prefix(kBeside.size());
    const std::string_view name = Unquoted(line);
    return name.empty() || name.find('/') != std::string_view::npos
               ? std::string()
               : std::string(directory) + "/" + std::string(name);
  }
  const std::string_view path = Unquoted(line);
  return path.starts_with('/') ? std::string(path) : std::string();
}

}  // namespace coffer::isolation
