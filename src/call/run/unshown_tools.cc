// SPDX-License-Identifier: Apache-2.0
#include "call/run/unshown_tools.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>

#include "base/ascii.h"
#include "base/text.h"
#include "call/run/project_around.h"
#include "isolation/runtime/real_path.h"
#include "isolation/runtime/relocate.h"

namespace coffer::call {
namespace {

// The value of a variable of the caller's that is an absolute path, or "".
std::string CallersPath(const char* variable) {
  const char* const value = ::getenv(variable);
  return value != nullptr && value[0] == '/' ? isolation::Normalize(value) : "";
}

bool CallHas(const std::string& path, const Prepared& prepared) {
  const std::string moved = isolation::Relocated(path);
  const std::vector<isolation::RuntimeFile>& files = prepared.runtime.set.files;
  return IsShownInPlace(path, prepared.mounts) ||
         std::any_of(files.begin(), files.end(), [&](const isolation::RuntimeFile& file) {
           return isolation::IsAtOrBelow(file.inside, moved);
         });
}

// The activated environment (venv, virtualenv, poetry, pipenv, conda).
std::string ActivatedEnvironment(const Prepared& prepared) {
  for (const char* const variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const std::string path = CallersPath(variable);
    const bool has_python = !path.empty() && ::access((path + "/bin/python").c_str(), X_OK) == 0;
    if (has_python && !isolation::IsAtOrBelow(path, "/usr") && !CallHas(path, prepared)) {
      return path;
    }
  }
  return {};
}

// Where rustup has its toolchains, if the command names one of its programs and none was shown.
std::string RustupToolchains(const RunRequest& request, const Prepared& prepared) {
  std::string home = CallersPath("RUSTUP_HOME");
  if (home.empty() && !CallersPath("HOME").empty()) {
    home = CallersPath("HOME") + "/.rustup";
  }
  const bool named =
      NamesProgram(request.command, "cargo") || NamesProgram(request.command, "rustc");
  const bool shown = std::any_of(prepared.mounts.begin(), prepared.mounts.end(),
                                 [&](const isolation::OpenedMount& mount) {
                                   return isolation::IsAtOrBelow(mount.path.path, home) ||
                                          isolation::IsAtOrBelow(home, mount.path.path);
                                 });
  return named && !home.empty() && !shown && ::access(home.c_str(), F_OK) == 0
             ? home + "/toolchains"
             : "";
}

}  // namespace

bool NamesProgram(const std::vector<std::string>& command, std::string_view program) {
  const auto in_name = [](char c) { return IsAlphanumeric(c) || c == '_' || c == '-' || c == '.'; };
  for (const std::string& word : command) {
    for (size_t at = word.find(program); at != std::string::npos; at = word.find(program, at + 1)) {
      const size_t end = at + program.size();
      if ((at == 0 || !in_name(word[at - 1])) && (end == word.size() || !in_name(word[end]))) {
        return true;
      }
    }
  }
  return false;
}

std::vector<std::string> UnshownTools(const RunRequest& request, const Prepared& prepared) {
  std::vector<std::string> notes;
  if (const std::string path = ActivatedEnvironment(prepared); !path.empty()) {
    notes.push_back(
        fmt::format("the activated environment {0} is not shown to this command; if it "
                    "needs that: --ro {0}",
                    Printable(path)));
  }
  if (const std::string path = RustupToolchains(request, prepared); !path.empty()) {
    notes.push_back(fmt::format(
        "rustup finds no toolchain in the private HOME; show one: --ro {}/NAME:/rust --env "
        "PATH=/rust/bin:/usr/bin:/bin -- sh -c 'cargo build'",
        Printable(path)));
  }
  return notes;
}

}  // namespace coffer::call
