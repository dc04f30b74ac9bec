// SPDX-License-Identifier: Apache-2.0
//
// coffer: picks the verb. Everything before the verb is on the path of every call, so there is very little.
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/exit_codes.h"
#include "base/fault.h"
#include "base/print.h"
#include "base/text.h"
#include "cli/help_topics.h"
#include "cli/remote_bridge.h"
#include "cli/verb_audit.h"
#include "cli/verb_inside_relay.h"
#include "cli/verb_inside_tools.h"
#include "cli/verb_run.h"
#include "cli/verbs.h"
#include "policy/manifest/mistake.h"

namespace {

constexpr std::string_view kHelp =
    R"(coffer: a watertight wall around every tool call

Usage:
  coffer run [flags] FILE [ARG...]    run a script in a boundary: that one file comes in, read-only
  coffer run [flags] -- CMD ARG...    run a command in a boundary built from flags
  coffer run --project . -- CMD ARG   run it on the project here: writable, but for what the host runs later
  coffer shell [flags]                a shell for the project here, in the same boundary
  coffer cache list|clear             what --cache keeps for a project between calls
  coffer doctor [--json] [--sweep]    what this host can enforce, and how to fix what it cannot
  coffer runtimes [--json]            what can be made executable inside a boundary
  coffer call TOOL [--args JSON]      call a declared tool through the whole ladder
  coffer mcp [flags]                  the declared tools over MCP on stdin and stdout, for an agent; no daemon
  coffer mcp wrap [flags] -- CMD      the tools of a third-party MCP server, in a boundary
  coffer serve [flags]                the daemon: tools over HTTP, for tenants, with keys
  coffer audit list|show|verify|..    what was decided and done, and the proof that it was not edited
  coffer key new|list|revoke          API keys of the daemon
  coffer sessions new|list|start|..   sessions: a workspace that several calls share, with servers in the background
  coffer access list|grant|deny       hosts that calls of the daemon wait for, and the answer to them
  coffer switch list|on|off           stop a tool, an agent, a session or a tenant
  coffer tools list|show|check|new|..  the tools that agents may call, and their manifests
  coffer help VERB|manifest|config    the flags of a verb; every key of a manifest, and of coffer.toml
  coffer --version

Start with:  coffer run -- python3 -c 'print(2 + 2)'
)";

const std::vector<std::string_view>& Verbs() {
  static const std::vector<std::string_view> verbs = {
      "run",   "shell", "cache",    "doctor", "runtimes", "call", "mcp",     "serve",
      "audit", "key",   "sessions", "switch", "tools",    "help", "version", "access"};
  return verbs;
}

coffer::Error UnknownVerb(std::string_view word) {
  const std::string_view nearest = coffer::policy::NearestWord(word, Verbs());
  std::string hint = "`coffer --help` lists the verbs";
  if (word == "exec") {
    hint = "did you mean coffer run -- CMD ARG...?";
  } else if (!nearest.empty()) {
    hint = "did you mean coffer " + std::string(nearest) + "?";
  } else if (::access(std::string(word).c_str(), R_OK) == 0) {
    hint = "did you mean coffer run " + coffer::Printable(word) + "?";
  }
  return coffer::Refused("policy.usage", "there is no verb called " + coffer::Printable(word),
                         std::move(hint));
}

coffer::Error UnknownTopic(std::string_view word) {
  std::vector<std::string_view> known = coffer::cli::HelpTopicNames();
  known.insert(known.end(), Verbs().begin(), Verbs().end());
  const std::string_view nearest = coffer::policy::NearestWord(word, known);
  return coffer::Refused("policy.usage", "there is no help about " + coffer::Printable(word),
                         nearest.empty()
                             ? "coffer help manifest | config | a verb, such as run"
                             : "did you mean coffer help " + std::string(nearest) + "?");
}

// A closed stdin, stdout or stderr would be taken by the first descriptor we open, and then mistaken for it.
bool OpenMissingStdio() {
  for (int fd = 0; fd < 3; ++fd) {
    if (::fcntl(fd, F_GETFD) < 0 && ::open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY) != fd) {
      return false;
    }
  }
  return true;
}

// Mount sources are held open while a boundary is built; the boundary's own limit is set inside it.
void RaiseOpenFiles() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max < 65536 ? limit.rlim_max : 65536;
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
}

// The kernel lays the arguments and the environment out as one run of strings.
size_t WordBytes(char** argv, char** envp) {
  char* last = argv[0];
  for (char** list : {argv, envp}) {
    for (; *list != nullptr; ++list) {
      last = *list > last ? *list : last;
    }
  }
  return static_cast<size_t>(last + strlen(last) - argv[0]);
}

int Dispatch(std::span<const std::string_view> words, coffer::isolation::OwnWords own) {
  const std::span<const std::string_view> rest = words.subspan(1);
  if (words[0] == "run") {
    RaiseOpenFiles();
    return coffer::cli::RunVerb(rest, own);
  }
  if (words[0] == "shell") {
    RaiseOpenFiles();
    return coffer::cli::ShellVerb(rest, own);
  }
  if (words[0] == "cache") {
    return coffer::cli::CacheVerb(rest);
  }
  if (words[0] == "doctor") {
    return coffer::cli::DoctorVerb(rest);
  }
  if (words[0] == "runtimes") {
    return coffer::cli::RunRuntimesVerb(rest);
  }
  if (words[0] == "call") {
    RaiseOpenFiles();
    return coffer::cli::CallVerb(rest);
  }
  if (words[0] == "mcp") {
    RaiseOpenFiles();
    return coffer::cli::McpVerb(rest);
  }
  if (words[0] == "serve") {
    return coffer::cli::ServeVerb(rest);
  }
  if (words[0] == "warden") {
    RaiseOpenFiles();
    return coffer::cli::WardenVerb(rest);
  }
  if (words[0] == coffer::cli::kBridgeVerb) {
    return coffer::cli::BridgeVerb();
  }
  if (words[0] == coffer::cli::kInsideVerb) {
    RaiseOpenFiles();
    return coffer::cli::InsideToolsVerb(rest);
  }
  if (words[0] == coffer::cli::kRelayVerb) {
    return coffer::cli::InsideRelayVerb(rest);
  }
  if (words[0] == "audit") {
    return coffer::cli::AuditVerb(rest);
  }
  if (words[0] == "key") {
    return coffer::cli::KeyVerb(rest);
  }
  if (words[0] == "sessions") {
    RaiseOpenFiles();
    return coffer::cli::SessionsVerb(rest, own);
  }
  if (words[0] == "access") {
    return coffer::cli::AccessVerb(rest);
  }
  if (words[0] == "switch") {
    return coffer::cli::SwitchVerb(rest);
  }
  if (words[0] == "tools") {
    return coffer::cli::ToolsVerb(rest);
  }
  coffer::PrintError(UnknownVerb(words[0]));
  return coffer::kExitRefused;
}

}  // namespace

int main(int argc, char** argv, char** envp) {
  coffer::fault::Arm();
  if (!OpenMissingStdio()) {
    return coffer::kExitFailed;
  }
  const std::vector<std::string_view> words(argv + 1, argv + (argc > 0 ? argc : 1));
  if (words.empty() || words[0] == "--help" || words[0] == "-h" ||
      (words[0] == "help" && (words.size() == 1 || words[1] == "help" || words[1] == "version"))) {
    coffer::PrintOut(kHelp);
    return words.empty() ? coffer::kExitRefused : 0;
  }
  const coffer::isolation::OwnWords own = {argv[0], WordBytes(argv, envp)};
  if (words[0] == "help") {
    if (const std::string_view text = coffer::cli::FindHelpTopic(words[1]); !text.empty()) {
      coffer::PrintOut(text);
      return 0;
    }
    if (std::find(Verbs().begin(), Verbs().end(), words[1]) == Verbs().end()) {
      coffer::PrintError(UnknownTopic(words[1]));
      return coffer::kExitRefused;
    }
    const std::string_view asked[] = {words[1], "--help"};
    return Dispatch(asked, own);
  }
  if (words[0] == "--version" || words[0] == "-V" || words[0] == "version") {
    coffer::PrintOut("coffer " COFFER_VERSION "\n");
    return 0;
  }
  return Dispatch(words, own);
}
