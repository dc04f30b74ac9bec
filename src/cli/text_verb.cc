// SPDX-License-Identifier: Apache-2.0
#include "cli/text_verb.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/exit_codes.h"
#include "base/print.h"
#include "base/text.h"
#include "policy/manifest/mistake.h"

namespace coffer::cli {

int FailVerb(const Error& error) {
  PrintError(error);
  return error.kind == ErrorKind::kRefused ? kExitRefused : kExitFailed;
}

int RunTextVerb(std::string_view verb, std::string_view usage,
                std::span<const call::FlagSpec> specs, std::span<const std::string_view> words,
                const std::function<Result<std::string>(const call::VerbFlags&)>& act) {
  const Result<call::VerbFlags> flags = call::VerbFlags::Parse(verb, words, specs);
  if (!flags.ok()) {
    PrintError(flags.error());
    return kExitRefused;
  }
  if (flags->help() || flags->words().empty()) {
    PrintOut(usage);
    return flags->help() ? 0 : kExitRefused;
  }
  const Result<std::string> said = act(*flags);
  if (!said.ok()) {
    return FailVerb(said.error());
  }
  PrintOut(*said);
  return 0;
}

Error UnknownAction(std::string_view verb, std::string_view word,
                    const std::vector<std::string_view>& known) {
  const std::string_view nearest = policy::NearestWord(word, known);
  std::string all;
  for (const std::string_view name : known) {
    all += (all.empty() ? "" : " | ") + std::string(name);
  }
  const bool itself = std::find(known.begin(), known.end(), word) != known.end();
  return Refused("policy.usage",
                 itself ? fmt::format("coffer {} {} does not take this many words", verb, word)
                        : fmt::format("coffer {} does not know \"{}\"", verb, Printable(word)),
                 nearest.empty() || itself
                     ? fmt::format("coffer {} {}; see `coffer {} --help`", verb, all, verb)
                     : fmt::format("did you mean coffer {} {}?", verb, nearest));
}

}  // namespace coffer::cli
