// SPDX-License-Identifier: Apache-2.0
//
// `coffer sessions`: workspaces that calls share, what runs in their background, and an end to them.
#pragma once

#include <span>
#include <string_view>

#include "isolation/boundary.h"

namespace coffer::cli {

int SessionsVerb(std::span<const std::string_view> words, isolation::OwnWords own);

}  // namespace coffer::cli
