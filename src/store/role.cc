// SPDX-License-Identifier: Apache-2.0
#include "store/role.h"

namespace coffer::store {

std::string_view RoleName(Role role) {
  switch (role) {
    case Role::kAgent:
      return "agent";
    case Role::kApprover:
      return "approver";
    case Role::kOperator:
      return "operator";
    case Role::kAuditor:
      return "auditor";
  }
  return "agent";
}

std::optional<Role> FindRole(std::string_view name) {
  for (const Role role : {Role::kAgent, Role::kApprover, Role::kOperator, Role::kAuditor}) {
    if (RoleName(role) == name) {
      return role;
    }
  }
  return std::nullopt;
}

}  // namespace coffer::store
