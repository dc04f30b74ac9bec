// SPDX-License-Identifier: Apache-2.0
//
// `coffer mcp review`: what has changed in the tools of a wrapped server, and accepting it.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/print.h"
#include "base/text.h"
#include "call/verb_flags.h"
#include "cli/text_verb.h"
#include "cli/tool_pins.h"
#include "cli/verbs.h"

namespace coffer::cli {
namespace {

constexpr std::string_view kReviewUsage =
    R"(What has changed in the tools, prompts and templates of a wrapped MCP server since they were accepted.

Usage: coffer mcp review                       the servers that were wrapped, and how much of each waits
       coffer mcp review NAME [--json]         each changed or new one, before and now
       coffer mcp review NAME --accept DIGEST  allow exactly the tools shown under that digest

  --state DIR   as in `coffer mcp --help`

Exit status: 0; 1 if something waits to be reviewed; 120 refused, 125 Cofferdam failed.
)";

// One line for each member, so that a reader sees which of them has changed. JSON escapes what would break a line.
std::string Lines(const std::string& definition, const char* mark, const Json& other) {
  const Result<Json> json = ParseJson(definition);
  std::string lines;
  if (!json.ok() || !json->is_object()) {
    return mark + Escaped(definition) + "\n";
  }
  for (const auto& [name, value] : json->items()) {
    if (!other.is_object() || !other.contains(name) || other.at(name) != value) {
      lines += fmt::format("{}{}: {}\n", mark, Escaped(name), Escaped(PrintJson(value)));
    }
  }
  return lines;
}

int ListPins(const ToolPins& pins, bool json) {
  const Result<std::vector<std::string>> names = pins.Names();
  if (!names.ok()) {
    return FailVerb(names.error());
  }
  Json listed = Json::array();
  size_t waiting = 0;
  for (const std::string& name : *names) {
    const Result<std::optional<ServerPins>> known = pins.Read(name);
    if (!known.ok()) {
      return FailVerb(known.error());
    }
    if (!*known) {
      continue;  // removed meanwhile
    }
    const size_t changes = ChangesOf(**known).size();
    waiting += changes;
    listed.push_back({{"server", name}, {"tools", (*known)->seen.size()}, {"waiting", changes}});
    if (!json) {
      PrintOut(fmt::format("{:<24} {} definitions, {}\n", Printable(name), (*known)->seen.size(),
                           changes == 0 ? "all accepted" : fmt::format("{} to review", changes)));
    }
  }
  if (json) {
    PrintOut(PrintJson(listed, 2) + "\n");
  } else if (names->empty()) {
    PrintOut("no MCP server was wrapped yet\n");
  }
  return waiting == 0 ? 0 : 1;
}

int ShowPins(const std::string& name, const ServerPins& pins, bool json) {
  const std::vector<PinChange> changes = ChangesOf(pins);
  Json listed = Json::array();
  for (const PinChange& change : changes) {
    const Result<Json> before = ParseJson(change.before.value_or("null"));
    const Result<Json> now = ParseJson(change.now);
    const Json nothing;
    listed.push_back({{"tool", change.tool},
                      {"before", before.ok() ? *before : nothing},
                      {"now", now.ok() ? *now : nothing}});
    if (!json) {
      PrintOut(
          fmt::format("{} {}\n", Printable(change.tool), change.before ? "has changed" : "is new"));
      if (change.before) {
        PrintOut(Lines(*change.before, "- ", now.ok() ? *now : nothing));
      }
      PrintOut(Lines(change.now, "+ ", before.ok() ? *before : nothing));
    }
  }
  if (json) {
    PrintOut(PrintJson({{"server", name}, {"digest", DigestOf(pins)}, {"changes", listed}}, 2) +
             "\n");
  } else if (changes.empty()) {
    PrintOut("nothing to review: everything is as it was accepted\n");
  } else {
    PrintOut(
        fmt::format("\nTo allow these: coffer mcp review {} --accept {}\n", name, DigestOf(pins)));
  }
  return changes.empty() ? 0 : 1;
}

}  // namespace

int ReviewVerb(std::span<const std::string_view> words) {
  constexpr call::FlagSpec kFlags[] = {{"--accept", true}};
  const Result<call::VerbFlags> flags = call::VerbFlags::Parse("mcp review", words, kFlags);
  if (!flags.ok()) {
    return FailVerb(flags.error());
  }
  if (flags->help()) {
    PrintOut(kReviewUsage);
    return 0;
  }
  if (flags->words().size() > 1 || !flags->rest().empty() ||
      (flags->Has("--accept") && flags->words().empty())) {
    return FailVerb(Refused("policy.usage", "coffer mcp review wants the name of one server",
                            "`coffer mcp review` names those that were wrapped"));
  }
  const Result<std::string> state = flags->StateDir();
  const Result<ToolPins> pins =
      state.ok() ? ToolPins::Open(*state) : Result<ToolPins>(state.error());
  if (!pins.ok()) {
    return FailVerb(pins.error());
  }
  if (flags->words().empty()) {
    return ListPins(*pins, flags->json());
  }
  const std::string& name = flags->words().front();
  if (flags->Has("--accept")) {
    const Status accepted = pins->Accept(name, flags->Value("--accept"));
    if (!accepted.ok()) {
      return FailVerb(accepted.error());
    }
    PrintOut(fmt::format("accepted; agents see what {} offers when it is wrapped again\n", name));
    return 0;
  }
  const Result<std::optional<ServerPins>> known = pins->Read(name);
  if (!known.ok()) {
    return FailVerb(known.error());
  }
  if (!*known) {
    return FailVerb(Refused("policy.usage", "no server called " + Printable(name) + " was wrapped",
                            "`coffer mcp review` names those that were"));
  }
  return ShowPins(name, **known, flags->json());
}

}  // namespace coffer::cli
