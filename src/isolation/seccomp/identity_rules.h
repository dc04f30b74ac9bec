// SPDX-License-Identifier: Apache-2.0
//
// setuid and its kin answer as they do for every ordinary user.
//
// Without capabilities a process can only become what it already is. For an id that its user
// namespace does not have the kernel answers EINVAL, which programs take for a mistake of their
// own; outside it is EPERM. Nothing is widened: what these rules let through the kernel judges as
// before.
#pragma once

#include "isolation/seccomp/argument_rules.h"

namespace coffer::isolation {

void AddIdentityRules(Tier tier, FilterOptions options, Profile* profile);

}  // namespace coffer::isolation
