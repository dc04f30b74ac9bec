// SPDX-License-Identifier: Apache-2.0
#include "bench/gateway/evaluate.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "base/json.h"
#include "call/tool_shelf.h"
#include "policy/blast_radius.h"
#include "policy/tool.h"

namespace coffer::bench {

void WriteManifests(const std::string& directory, size_t count) {
  std::filesystem::create_directories(directory);
  for (size_t i = 0; i < count; ++i) {
    std::ofstream(fmt::format("{}/tool-{}.toml", directory, i)) << fmt::format(R"(
[tool]
name = "tool-{}"
version = "1.0.{}"
owner = "bench"
summary = "One of many."
effect = "reversible"
[input]
schema = {{ type = "object", additionalProperties = false, required = ["code", "count"], properties = {{ code = {{ type = "string", maxLength = 65536 }}, count = {{ type = "integer", minimum = 0, maximum = {} }}, tags = {{ type = "array", maxItems = 16, items = {{ type = "string", pattern = "^[a-z0-9-]+$" }} }} }} }}
[run]
runtime = "python3"
argv = ["python3", "-I", "-", "{{count}}"]
stdin = "{{code}}"
[limits]
cpu = "10s"
memory = "256MiB"
[rate]
calls = ["1000/s"]
)",
                                                                               i, i, 1000 + i);
  }
}

std::vector<double> MeasureEvaluation(const std::string& directory) {
  call::ToolShelf shelf({directory});
  if (const Status loaded = shelf.Reload(); !loaded.ok()) {
    std::fprintf(stderr, "%s\n", loaded.error().message.c_str());
    std::exit(1);
  }
  const size_t count = shelf.List().size();
  std::mt19937 random(1);
  std::vector<double> took;
  size_t allowed = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::string name = fmt::format("tool-{}", random() % (count - 10));
    const std::string text = fmt::format(R"({{"code": "{}", "count": {}, "tags": ["a-{}", "b"]}})",
                                         std::string(1000, 'x'), random() % 1200, i);
    const auto begin = std::chrono::steady_clock::now();
    const std::shared_ptr<const policy::Tool> tool = shelf.Find(name);
    const Result<Json> args = ParseJson(text);
    if (tool == nullptr || !args.ok()) {
      std::fprintf(stderr, "no tool %s\n", name.c_str());
      std::exit(1);
    }
    const Result<policy::ToolCall> made = policy::PrepareToolCall(*tool, *args, {});
    if (made.ok()) {
      (void)policy::Sentence(policy::ComputeBlastRadius(made->envelope, tool->manifest.network, {},
                                                        tool->manifest.tool.effect));
      (void)policy::EnvelopeId(made->envelope);
      ++allowed;
    }
    took.push_back(
        std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count());
  }
  if (allowed < 1000) {
    std::fprintf(stderr, "almost nothing was allowed\n");
    std::exit(1);
  }
  return took;
}

}  // namespace coffer::bench
