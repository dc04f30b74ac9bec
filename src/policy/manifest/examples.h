// SPDX-License-Identifier: Apache-2.0
//
// The examples of a manifest are its tests: what must be accepted and what must be refused, checked whenever it is
// loaded.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "policy/manifest/manifest.h"

namespace coffer::policy {

// Everything between arguments and launch: schema, paths, templates. An error is a refusal.
using ArgsCheck = std::function<Status(const Json& args)>;

enum class ExamplesOf : uint8_t { kBoth, kAllow };

// One mistake for every [[examples.allow]] that `check` refuses and every [[examples.deny]] that it lets pass.
std::vector<Mistake> CheckExamples(const Manifest& manifest, const ArgsCheck& check,
                                   ExamplesOf which = ExamplesOf::kBoth);

}  // namespace coffer::policy
