// SPDX-License-Identifier: Apache-2.0
//
// From a first line to the program that runs the script: interpreters that are scripts themselves, and env, included.
//
// A first line may have been written by an earlier payload. A name without a slash is looked up on
// the caller's PATH, and what is found there counts as named by the caller; a path is what a file
// says (opened_runtime.h).
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "isolation/runtime/cached_recipe.h"
#include "isolation/runtime/program.h"

namespace coffer::isolation {

// What a shebang runs, as words: {"/bin/sh", "-e"}; "env" is taken out of the way: {"python3", "-u"}.
Result<std::vector<std::string>> InterpreterOf(const Shebang& shebang, const std::string& script);

// What is run in the end, before its set is known.
struct Chain {
  Program program;   // the ELF program
  std::string path;  // as it was found on the host
  NamedBy named_by = NamedBy::kFile;
  std::vector<std::string> before;  // argv of the program up to the first script: {"/bin/sh", "-e"}
  std::vector<std::string>
      scripts;  // host paths of scripts that must be brought in, in the order of argv
};

// Follows shebangs from the interpreter words to an ELF program.
Result<Chain> FollowInterpreter(RealPaths& paths, std::vector<std::string> words,
                                const std::string& script);

}  // namespace coffer::isolation
