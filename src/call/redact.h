// SPDX-License-Identifier: Apache-2.0
//
// Removes arguments and paths of a request from the sentences that refuse it, before they are recorded or answered.
//
// A refusal names what it refuses ("../x leaves its directory"), and a path or an argument may be anything, a secret
// included. The record shows arguments redacted (`args_redacted`), so it must not show them in the reason either, nor a
// path that a file named: a first line, a link, an ELF header. The person at the terminal sees the whole sentence, and
// no copy of it is kept.
#pragma once

#include <string>
#include <vector>

#include "audit/receipt.h"
#include "base/json.h"
#include "base/result.h"
#include "call/run/run_request.h"

namespace coffer::call {

struct GivenWord {
  std::string text;
  std::string shown;  // its replacement, as in args_redacted
};

// Every string in the arguments of a tool; "<12 bytes>" stands in its place.
std::vector<GivenWord> WordsOf(const Json& args);
// The paths and words of a command line, but for the program's name; a hash stands in the place of each.
std::vector<GivenWord> WordsOf(const RunRequest& request);

// In quotes a word is found whatever it is; without them if it is a path or has eight bytes or
// more, and is no part of a longer word.
std::string TakeOut(const std::vector<GivenWord>& words, std::string text);

// A hash in the place of every word that is a path and of every name in quotes; a path with a space stands in quotes
// (base/path_words.h). Paths below "~/.config/coffer" are Cofferdam's own and stay.
std::string TakeOutPaths(const std::string& text);

// The receipt of a call that was not granted: nothing that was given stays in its sentences.
void RedactRefusal(const std::vector<GivenWord>& words, audit::Receipt& receipt);

}  // namespace coffer::call
