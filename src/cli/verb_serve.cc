// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "base/exit_codes.h"
#include "base/print.h"
#include "base/sys.h"
#include "call/run/daemon_program.h"
#include "call/verb_flags.h"
#include "call/warden/warden.h"
#include "cli/relay_process.h"
#include "cli/verbs.h"

namespace coffer::cli {
namespace {

constexpr call::WardenSockets kSockets = {3, 4, 5};  // where cofferd puts them

}  // namespace

int ServeVerb(std::span<const std::string_view> words) {
  const Result<std::string> self = sys::ReadLinkAt(AT_FDCWD, "/proc/self/exe");
  if (!self.ok()) {
    PrintError(self.error());
    return kExitFailed;
  }
  std::vector<std::string> texts = {"cofferd", "--warden", *self};
  texts.insert(texts.end(), words.begin(), words.end());
  std::vector<char*> argv;
  argv.reserve(texts.size() + 1);
  for (std::string& text : texts) {
    argv.push_back(text.data());
  }
  argv.push_back(nullptr);
  const Result<std::vector<std::string>> places = call::DaemonPlaces();
  if (!places.ok()) {
    PrintError(places.error());
    return kExitFailed;
  }
  for (const std::string& place : *places) {
    ::execv(place.c_str(), argv.data());
  }
  PrintError(HostFault("daemon.missing", "cofferd is not beside coffer",
                       "install both; `make all` builds them"));
  return kExitFailed;
}

int WardenVerb(std::span<const std::string_view> words) {
  constexpr call::FlagSpec kFlags[] = {
      {"--sessions", true}, {"--closed", true}, {"--relied", true}, {"--allow-dangerous", false}};
  const Result<call::VerbFlags> flags = call::VerbFlags::Parse("warden", words, kFlags);
  if (!flags.ok()) {
    PrintError(flags.error());
    return kExitRefused;
  }
  call::WardenRules rules;
  rules.sessions = flags->Value("--sessions");
  rules.closed = flags->Values("--closed");
  rules.relied = flags->Values("--relied");
  rules.allow_broad = flags->Has("--allow-dangerous");
  const auto make_tools = [](const call::RunRequest& request, const std::string& /*call_id*/) {
    return std::make_unique<RelayProcess>(UniqueFd(request.tools_channel), request.uids.first);
  };
  if (const Status ended = call::RunWarden(kSockets, rules, make_tools); !ended.ok()) {
    PrintError(ended.error());
    return kExitFailed;
  }
  return 0;
}

}  // namespace coffer::cli
