// SPDX-License-Identifier: Apache-2.0
//
// The words of the API for the values of service.h, both ways.
#pragma once

#include <optional>
#include <string_view>

#include "gateway/service.h"

namespace coffer::gateway {

std::string_view StateName(CallProgress state);

std::string_view ScopeName(SwitchTarget::Scope scope);
std::optional<SwitchTarget::Scope> FindScope(std::string_view name);

}  // namespace coffer::gateway
