// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as the body of POST /v1/calls, down to the decision: no crash; what is accepted obeys its bounds and is
// accepted again, the same; a shipped tool that it names either makes a call inside its envelope, or a refusal that an
// agent may read.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/utf8.h"
#include "call/evaluate.h"
#include "gateway/http/json_body.h"
#include "gateway/http/names.h"
#include "policy/manifest/manifest.h"
#include "policy/tool.h"

namespace {

using namespace coffer;
using namespace coffer::gateway;

constexpr std::string_view kWorkspace = "/secret-place-of-the-host";

void Demand(bool holds, const char* what, std::string_view about) {
  if (!holds) {
    std::fprintf(stderr, "broken: %s: %.*s\n", what, static_cast<int>(about.size()), about.data());
    std::abort();
  }
}

const std::map<std::string, policy::Tool>& Tools() {
  static const auto* const tools = [] {
    constexpr std::pair<std::string_view, std::string_view> kShipped[] = {
#include "call/shipped_tools.inc"
    };
    auto* loaded = new std::map<std::string, policy::Tool>();
    for (const auto& [file, text] : kShipped) {
      policy::LoadedTool tool = policy::LoadTool(text, file, {});
      Demand(tool.tool.has_value(), "a shipped tool does not load", file);
      loaded->emplace(tool.tool->manifest.tool.name, std::move(*tool.tool));
    }
    return loaded;
  }();
  return *tools;
}

bool HoldsNul(const std::string& text) { return text.find('\0') != std::string::npos; }

void Decide(const CallRequest& request) {
  const auto tool = Tools().find(request.tool);
  if (tool == Tools().end()) {
    return;
  }
  const auto args = ParseJson(request.args_json);
  Demand(args.ok() && args->is_object(), "arguments that the ladder cannot read",
         request.args_json);
  for (const std::string& shown : call::RedactArgs(*args)) {
    Demand(IsUtf8(shown), "arguments that cannot be recorded", shown);
  }
  const std::string workspace(request.session_id ? kWorkspace : "");
  const auto made = call::Evaluate(tool->second, *args, {workspace});
  if (!made.ok()) {
    const Error& error = made.error();
    Demand(error.code.starts_with("policy."), "a refusal of another class", error.code);
    Demand(IsUtf8(error.message) && IsUtf8(error.hint), "words that are not text", error.message);
    Demand(error.message.find(kWorkspace) == std::string::npos &&
               error.hint.find(kWorkspace) == std::string::npos,
           "an agent is told a path of the host", error.message);
    return;
  }
  Demand(!made->run.command.empty(), "no command", request.args_json);
  for (const std::string& word : made->run.command) {
    Demand(!HoldsNul(word), "a word with a NUL", request.args_json);
  }
  for (const auto& mount : made->run.envelope.mounts) {
    Demand(!HoldsNul(mount.host) && !HoldsNul(mount.at), "a path with a NUL", request.args_json);
    Demand(mount.host.find("/../") == std::string::npos && !mount.host.ends_with("/.."),
           "a path that climbs", mount.host);
  }
  Demand(made->run.envelope.limits.memory > 0 && made->run.envelope.limits.wall.count() > 0,
         "a cap that is missing", request.args_json);
  Demand(!made->blast_radius.empty(), "no blast radius", request.args_json);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const HttpLimits limits;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)ParseSessionBody(text, limits).ok();
  (void)ParseKeyBody(text, limits).ok();
  (void)ParseSwitchBody(text, limits).ok();
  const auto first = ParseCallBody(text, limits);
  if (!first.ok()) {
    Demand(!first.refusal().code.empty() && IsUtf8(first.refusal().message), "a refusal",
           first.refusal().message);
    return 0;
  }
  const std::string again = R"({"tool":")" + first->tool + R"(","args":)" + first->args_json + "}";
  Demand(policy::IsToolName(first->tool) && IsUtf8(first->args_json) &&
             first->args_json.starts_with('{') &&
             (!first->session_id || IsId(*first->session_id)) &&
             (!first->parent_id || IsId(*first->parent_id)),
         "accepted", again);
  const auto second = ParseCallBody(again, limits);
  // The same arguments can be longer than they came: escapes are written out. Only that may stop the second time.
  Demand(second.ok() ? second->args_json == first->args_json
                     : second.refusal().code == "body.too_large",
         "not the same again", again);
  Decide(first.value());
  return 0;
}
