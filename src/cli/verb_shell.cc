// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "base/print.h"
#include "cli/verb_run.h"
#include "cli/verbs.h"

namespace coffer::cli {
namespace {

constexpr std::string_view kShellUsage =
    R"(A shell in a boundary, for the project in the current directory.

Usage:
  coffer shell [flags]                bash, or sh where there is none
  coffer shell [flags] -- CMD ARG...  another interactive program

The project is at its own path and writable; what runs code on the host later (.git/hooks, .vscode, ...) is read-only.
HOME is private and gone afterwards. There is no network. It may take 12 hours and 4 hours of CPU time, otherwise it has
the limits of a project. The flags are those of `coffer run`, and --no-project: an empty boundary instead.
)";

bool Has(std::span<const std::string_view> flags, std::string_view name) {
  return std::any_of(flags.begin(), flags.end(), [&](std::string_view word) {
    return word == name || (word.starts_with(name) && word.substr(name.size()).starts_with('='));
  });
}

}  // namespace

int ShellVerb(std::span<const std::string_view> words, isolation::OwnWords own) {
  const auto separator = std::find(words.begin(), words.end(), "--");
  const std::span<const std::string_view> flags(words.begin(), separator);
  if (Has(flags, "--help") || Has(flags, "-h")) {
    PrintOut(kShellUsage);
    return 0;
  }
  // The defaults come first: what the caller says counts.
  std::vector<std::string_view> run = {"--wall=12h", "--cpu=4h"};
  if (!Has(flags, "--no-project") && !Has(flags, "--project")) {
    run.push_back("--project=.");
  }
  if (Has(flags, "--no-project") && !Has(flags, "--runtime")) {
    run.push_back("--runtime=host-usr");
  }
  if (::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1) {
    run.push_back("--tty");
  }
  std::copy_if(flags.begin(), flags.end(), std::back_inserter(run),
               [](std::string_view word) { return word != "--no-project"; });
  if (separator != words.end()) {
    run.insert(run.end(), separator, words.end());
  } else {
    run.push_back("--");
    run.push_back(::access("/bin/bash", X_OK) == 0 ? "bash" : "sh");
  }
  return RunVerb(run, own);
}

}  // namespace coffer::cli
