// SPDX-License-Identifier: Apache-2.0
#include "cli/text_verb.h"

#include "base/print.h"

namespace coffer::cli {

int RunTextVerb(std::string_view verb, std::string_view usage,
                std::span<const call::FlagSpec> specs, std::span<const std::string_view> words,
                const std::function<Result<std::string>(const call::VerbFlags&)>& act) {
  constexpr int kRefused = 120;
  constexpr int kFailed = 125;
  const Result<call::VerbFlags> flags = call::VerbFlags::Parse(verb, words, specs);
  if (!flags.ok()) {
    PrintError(flags.error());
    return kRefused;
  }
  if (flags->help() || flags->words().empty()) {
    PrintOut(usage);
    return flags->help() ? 0 : kRefused;
  }
  const Result<std::string> said = act(*flags);
  if (!said.ok()) {
    PrintError(said.error());
    return said.error().kind == ErrorKind::kRefused ? kRefused : kFailed;
  }
  PrintOut(*said);
  return 0;
}

}  // namespace coffer::cli
