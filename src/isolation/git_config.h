// SPDX-License-Identifier: Apache-2.0
//
// A git configuration as git reads it (git-config(1), "Syntax"): sections and subsections, quotes, escapes, comments,
// values that go on in the next line.
//
// Used to find what a configuration makes git run. A reading that differs from git's would leave a program unprotected,
// so this is git's own grammar, not an approximation. A mistake in the text ends the reading, as it does for git; what
// came before it counts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace coffer::isolation {

struct GitSetting {
  std::string section;  // lower case, without the subsection: "filter"
  bool subsection = false;
  std::string key;  // lower case
  std::string value;
};

std::vector<GitSetting> ReadGitConfig(std::string_view text);

// The last value of a key in a section without a subsection; "" if there is none.
std::string GitConfigValue(std::string_view text, std::string_view section, std::string_view key);

}  // namespace coffer::isolation
