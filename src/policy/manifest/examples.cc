// SPDX-License-Identifier: Apache-2.0
#include "policy/manifest/examples.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/text.h"

namespace coffer::policy {

std::vector<Mistake> CheckExamples(const Manifest& manifest, const ArgsCheck& check,
                                   ExamplesOf which) {
  MistakeList list;
  for (const Example& example : manifest.allow_examples) {
    Result<Json> args = ParseJson(example.args);
    const Status status = args.ok() ? check(*args) : Status(args.error());
    if (!status.ok()) {
      list.Add(example.position,
               fmt::format("examples.allow \"{}\" is refused: {}", Printable(example.why),
                           Printable(status.error().message)),
               "change the example, or what refuses it");
    }
  }
  if (which == ExamplesOf::kAllow) {
    return list.Take();
  }
  for (const Example& example : manifest.deny_examples) {
    Result<Json> args = ParseJson(example.args);
    if (!args.ok()) {
      list.Add(example.position, "examples.deny: " + Printable(args.error().message));
    } else if (check(*args).ok()) {
      list.Add(example.position,
               fmt::format("examples.deny \"{}\" is accepted", Printable(example.why)),
               "tighten the schema or the paths, or move the example to examples.allow");
    }
  }
  return list.Take();
}

}  // namespace coffer::policy
