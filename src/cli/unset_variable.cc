// SPDX-License-Identifier: Apache-2.0
#include "cli/unset_variable.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>

#include "cli/script_text.h"

namespace coffer::cli {
namespace {

// Commands have these of their own, or do without.
constexpr std::string_view kUsual[] = {"HOME",  "HOSTNAME", "LANG",       "LANGUAGE", "LOGNAME",
                                       "MAIL",  "OLDPWD",   "PATH",       "PWD",      "SHELL",
                                       "SHLVL", "TERM",     "TMPDIR",     "USER",     "EDITOR",
                                       "PAGER", "DISPLAY",  "VIRTUAL_ENV"};

bool IsOfPrograms(std::string_view name) {
  return name.size() >= 3 && !name.starts_with("LC_") && !name.starts_with("COFFER_") &&
         std::find(std::begin(kUsual), std::end(kUsual), name) == std::end(kUsual) &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
         });
}

// Those with a value, in order.
std::set<std::string_view> OwnVariables() {
  std::set<std::string_view> names;
  for (char* const* one = environ; one != nullptr && *one != nullptr; ++one) {
    const std::string_view variable = *one;
    const size_t equals = variable.find('=');
    if (equals != std::string_view::npos && equals + 1 < variable.size()) {
      names.insert(variable.substr(0, equals));
    }
  }
  return names;
}

}  // namespace

std::string UnsetVariableNote(const call::RunRequest& request) {
  std::string text = ScriptText(request);
  for (const std::string& word : request.command) {
    text += "\n" + word;
  }
  const auto& given = request.envelope.env;
  for (const std::string_view name : OwnVariables()) {
    const bool set = std::any_of(given.begin(), given.end(),
                                 [&](const auto& variable) { return variable.first == name; });
    if (!set && IsOfPrograms(name) && NamesWord(text, name)) {
      return fmt::format(
          "{0} is set here and not inside, where the environment begins empty; --env "
          "\"{0}=${0}\" passes it on",
          name);
    }
  }
  return {};
}

}  // namespace coffer::cli
