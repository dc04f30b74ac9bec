// SPDX-License-Identifier: Apache-2.0
//
// What a key or token may do. The words are those of the command line, the API and the table of keys.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace coffer::store {

enum class Role : uint8_t { kAgent, kApprover, kOperator, kAuditor };
std::string_view RoleName(Role role);
std::optional<Role> FindRole(std::string_view name);

}  // namespace coffer::store
