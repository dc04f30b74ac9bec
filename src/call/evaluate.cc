// SPDX-License-Identifier: Apache-2.0
#include "call/evaluate.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "policy/blast_radius.h"
#include "policy/scrub.h"

namespace coffer::call {
namespace {

constexpr size_t kShownBytes = 64;

}  // namespace

Result<Evaluation> Evaluate(const policy::Tool& tool, const Json& args,
                            const policy::CallPlaces& places) {
  TRY_ASSIGN(policy::ToolCall made, policy::PrepareToolCall(tool, args, places));
  Evaluation evaluation;
  evaluation.blast_radius = policy::Sentence(policy::ComputeBlastRadius(
      made.envelope, tool.manifest.network, {}, tool.manifest.tool.effect));
  evaluation.run.envelope = std::move(made.envelope);
  evaluation.run.entry = tool.manifest.tool.name;
  evaluation.run.runtimes_only = true;
  if (tool.manifest.workspace != policy::Workspace::kFresh) {
    evaluation.run.project = places.project;
  }
  evaluation.run.tools = tool.manifest.calls.tools;
  evaluation.run.tool_calls = tool.manifest.calls.most;
  evaluation.run.command = std::move(made.command);
  evaluation.stdin_text = std::move(made.stdin_text);
  return evaluation;
}

std::vector<std::string> RedactArgs(const Json& args) {
  std::vector<std::string> shown;
  for (const auto& [name, value] : args.items()) {
    const std::string text = value.is_string() ? value.get<std::string>() : PrintJson(value);
    std::string words = fmt::format("<{} bytes>", text.size());
    if (policy::IsSecretName(name)) {
      words = "<redacted: value>";
    } else if (!value.is_string() && text.size() <= kShownBytes) {
      words = PrintJson(policy::ScrubJson(value));
    }
    shown.push_back(fmt::format("{}={}", Printable(policy::ScrubText(name)), words));
  }
  return shown;
}

}  // namespace coffer::call
