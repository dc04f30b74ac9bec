// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/print.h"
#include "base/quantity.h"
#include "base/text.h"
#include "cli/run_flags.h"
#include "cli/run_paths.h"
#include "cli/text_verb.h"
#include "cli/verbs.h"
#include "cli/wrap_manifest.h"
#include "cli/wrap_remote.h"
#include "cli/wrapped_calls.h"
#include "policy/egress_rule.h"

namespace coffer::cli {
namespace {

constexpr std::string_view kWrapUsage =
    R"(Put a third-party MCP server into a boundary, and serve its tools, prompts and resources on stdin and stdout.

Usage: coffer mcp wrap [flags] [flags of coffer run] -- CMD ARG...
       coffer mcp wrap [flags] --url URL

  --name NAME         what its tools are called: NAME-tool (default: from the command)
  --manifest FILE     the boundary from [isolation], [limits], [files] and the runtimes of a manifest; flags count last
  --url URL           a server elsewhere, which speaks Streamable HTTP; what talks to it reaches nothing but that URL
  --header-file FILE  with --url: lines such as "Authorization: Bearer TOKEN", in a file that only you can read
  --token-env NAME    with --url: the variable that has a bearer token
  --timeout TIME      of one call; a server that takes longer is ended and started again (60s)
  --config FILE, --state DIR   as in `coffer mcp --help`
  --ro P, --rw P, --env K=V, --memory SIZE, ...   what the server may see and use, as in `coffer run --help`
  --resolve, --upstream-ca, --upstream-proxy, --dangerously-allow-address   with --url: how it is reached

Without flags the server sees no file of yours and no network: 512 MiB, 128 processes, a day. Every call of one of its tools is
checked against the tool's schema, climbs the ladder and has a receipt; so does every read of a prompt or a resource, whose
address has NAME+ before it. A tool, prompt or template whose definition changes after it was first seen is blocked until you
have looked at it: `coffer mcp review NAME`. What the server was denied is said at the end, with the flags that would allow it.
What the server asks of its client (sampling, roots, elicitation) is refused, and so are completions, its log and subscriptions.

In an agent's configuration:

  {"mcpServers": {"files": {"command": "coffer", "args": ["mcp", "wrap", "--ro", "/data", "--", "node", "server.js", "/data"]}}}

Exit status: 0 when the client has left; 120 refused, 125 the server did not start.
)";

struct SortedWords {
  std::vector<std::string_view> own;  // for VerbFlags
  std::vector<std::string_view> run;  // for `coffer run`, without the command
  std::vector<std::string_view> command;
};

// A flag of ours and its value go to `own`; all others are those of `coffer run`.
SortedWords Sort(std::span<const std::string_view> words) {
  constexpr std::string_view kOwn[] = {"--name",  "--timeout", "--manifest",    "--config",
                                       "--state", "--url",     "--header-file", "--token-env"};
  SortedWords sorted;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word == "--") {
      sorted.command.assign(words.begin() + static_cast<std::ptrdiff_t>(i) + 1, words.end());
      break;
    }
    const std::string_view flag = word.substr(0, word.find('='));
    const bool own = std::find(std::begin(kOwn), std::end(kOwn), flag) != std::end(kOwn);
    std::vector<std::string_view>& list =
        own || word == "--help" || word == "-h" ? sorted.own : sorted.run;
    list.push_back(word);
    if (own && flag == word && i + 1 < words.size() && words[i + 1] != "--") {
      list.push_back(words[++i]);
    }
  }
  return sorted;
}

// The last part of a path that says something: "a/server-files/dist/index.js" is server-files.
std::string_view TellingPart(std::string_view path) {
  constexpr std::string_view kSayNothing[] = {"index", "main", "cli", "dist", "build",
                                              "lib",   "src",  "bin", "stdio"};
  std::string_view part = path;
  for (std::string_view rest = path; !rest.empty();) {
    const size_t slash = rest.rfind('/');
    const std::string_view last = slash == std::string_view::npos ? rest : rest.substr(slash + 1);
    const std::string_view stem = last.substr(0, last.find_first_of(".@", 1));
    rest = slash == std::string_view::npos ? std::string_view() : rest.substr(0, slash);
    if (part == path) {
      part = stem;
    }
    if (!stem.empty() &&
        std::find(std::begin(kSayNothing), std::end(kSayNothing), stem) == std::end(kSayNothing)) {
      return stem;
    }
  }
  return part;
}

// "npx -y @scope/server-files" is server-files, "node dist/index.js" is index, "./server" is server.
std::string NameFrom(const std::vector<std::string_view>& command) {
  constexpr std::string_view kRunners[] = {"npx",  "node",    "uvx",    "uv", "bunx",
                                           "deno", "python3", "python", "env"};
  std::string_view word = TellingPart(command.front());
  if (std::find(std::begin(kRunners), std::end(kRunners), word) != std::end(kRunners)) {
    const auto next = std::find_if(command.begin() + 1, command.end(), [](std::string_view one) {
      return !one.starts_with('-') && one != "run";
    });
    word = next == command.end() ? word : TellingPart(*next);
  }
  std::string name;
  for (const char c : word) {
    const bool upper = c >= 'A' && c <= 'Z';
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    name += upper ? static_cast<char>(c - 'A' + 'a') : plain ? c : '-';
  }
  name = name.substr(0, 24);
  while (name.ends_with('-')) {
    name.pop_back();
  }
  return name;
}

// For what is said of the tools: where they reach.
std::vector<policy::NetworkRule> NetworkOf(const std::vector<std::string>& allowed) {
  std::vector<policy::NetworkRule> rules;
  for (const std::string& text : allowed) {
    const Result<policy::EgressRule> rule = policy::ParseAllow(text);
    if (rule.ok()) {
      policy::NetworkRule made;
      made.host = rule->host.text();
      made.ports = rule->ports;
      made.tls = rule->tls;
      made.methods = rule->methods;
      made.paths = rule->paths.empty() ? std::vector<std::string>{"/**"} : rule->paths;
      rules.push_back(std::move(made));
    }
  }
  return rules;
}

policy::Manifest DescribeServer(const std::string& name, const call::RunRequest& request) {
  policy::Manifest server;
  server.tool.name = name;
  server.tool.version = "1";
  server.tool.owner = "mcp wrap";
  server.tool.needs_key = false;  // MCP has no key for a retry, and a client sends no request twice
  server.run.runtime =
      request.envelope.runtimes.empty() ? "host-usr" : request.envelope.runtimes.front();
  server.isolation.level = request.envelope.level;
  server.limits = request.envelope.limits;
  server.exec = request.envelope.exec;
  server.overlay = request.envelope.overlay;
  for (const policy::Mount& mount : request.envelope.mounts) {
    server.mounts.push_back({mount.host,
                             mount.at,
                             mount.access == policy::Access::kWrite ? policy::MountMode::kWrite
                                                                    : policy::MountMode::kRead,
                             mount.dangerous,
                             {}});
  }
  server.network = NetworkOf(request.egress.allow);
  // A result is one message; what the server may write in its whole life is another matter.
  server.limits.output = uint64_t{1} << 20;
  return server;
}

Result<WrapRequest> MakeRequest(const call::VerbFlags& flags, const SortedWords& words,
                                const std::string& state) {
  const bool remote = flags.Has("--url");
  if (words.command.empty() != remote) {
    return Refused("policy.usage", "coffer mcp wrap wants a command after --, or --url",
                   "coffer mcp wrap -- npx some-mcp-server");
  }
  if (!remote && (flags.Has("--header-file") || flags.Has("--token-env"))) {
    return Refused("policy.usage", "--header-file and --token-env belong to --url");
  }
  RemoteServer at_url;
  if (remote) {
    TRY_ASSIGN(at_url, ReadRemoteServer(flags, words.run));
  }
  const std::string name = flags.Has("--name") ? flags.Value("--name")
                           : remote            ? at_url.name
                                               : NameFrom(words.command);
  if (!policy::IsToolName(name) || name.size() > 24) {
    return Refused("policy.usage",
                   "the server needs a name of lower-case letters, digits and -, at most 24",
                   "--name files");
  }
  for (const std::string_view word : words.run) {
    const std::string_view flag = word.substr(0, word.find('='));
    if (flag == "--tty" || flag == "--receipt" || flag == "--session" || flag == "--trace") {
      return Refused("policy.usage", fmt::format("{} cannot be used with mcp wrap", flag));
    }
  }
  WrapRequest made;
  TRY_ASSIGN(made.timeout, ParseDuration(flags.Value("--timeout", "60s")));
  made.receipt = fmt::format("{}/mcp/{}.{}.receipt", state, name, ::getpid());
  // A long life; a flag that is given again counts last.
  made.run_words = {"run",         "--quiet", "--wall",       "24h",
                    "--cpu",       "24h",     "--memory",     "512MiB",
                    "--output",    "1TiB",    "--open-files", "1024",
                    "--processes", "128",     "--receipt",    made.receipt,
                    "--state",     state,     "--reason",     "coffer mcp wrap " + name};
  if (flags.Has("--manifest")) {
    TRY_ASSIGN(const std::vector<std::string> boundary, BoundaryWords(flags.Value("--manifest")));
    made.run_words.insert(made.run_words.end(), boundary.begin(), boundary.end());
  }
  if (remote) {
    made.first_line = at_url.place.Line();
    made.run_words.insert(made.run_words.end(), at_url.flags.begin(), at_url.flags.end());
  } else {
    made.run_words.insert(made.run_words.end(), words.run.begin(), words.run.end());
  }
  made.run_words.emplace_back("--");
  if (remote) {
    made.run_words.insert(made.run_words.end(), at_url.command.begin(), at_url.command.end());
  } else {
    made.run_words.insert(made.run_words.end(), words.command.begin(), words.command.end());
  }

  std::vector<std::string_view> read(made.run_words.begin() + 1, made.run_words.end());
  TRY_ASSIGN(call::RunRequest request, ParseRunFlags(read));
  request.quiet = true;
  TRY(ResolvePaths(request));
  made.server = DescribeServer(name, request);
  return made;
}

}  // namespace

int WrapVerb(std::span<const std::string_view> words) {
  constexpr call::FlagSpec kFlags[] = {
      {"--name", true}, {"--timeout", true},     {"--manifest", true}, {"--config", true},
      {"--url", true},  {"--header-file", true}, {"--token-env", true}};
  const SortedWords sorted = Sort(words);
  const Result<call::VerbFlags> flags = call::VerbFlags::Parse("mcp wrap", sorted.own, kFlags);
  if (!flags.ok()) {
    return FailVerb(flags.error());
  }
  if (flags->help()) {
    PrintOut(kWrapUsage);
    return 0;
  }
  const Result<std::string> state = flags->StateDir();
  if (!state.ok()) {
    return FailVerb(state.error());
  }
  Result<WrapRequest> request = MakeRequest(*flags, sorted, *state);
  if (!request.ok()) {
    return FailVerb(request.error());
  }
  Result<std::unique_ptr<LocalLadder>> ladder = LocalLadder::Open(*flags);
  if (!ladder.ok()) {
    return FailVerb(ladder.error());
  }
  const UniqueFd signals = CatchEndingSignals();
  Result<std::unique_ptr<WrappedCalls>> calls =
      WrappedCalls::Open(**ladder, std::move(request).value());
  if (!calls.ok()) {
    return FailVerb(calls.error());
  }
  Converse(**calls, signals.get());
  (*calls)->End();
  return 0;
}

}  // namespace coffer::cli
