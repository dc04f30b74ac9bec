// SPDX-License-Identifier: Apache-2.0
//
// Which names a boundary's resolver knows (egress/resolver.h). What may be done with one is judged
// when a program connects.
#pragma once

#include <span>

#include "policy/egress_rule.h"

namespace coffer::policy {

// Allowed if a rule allows at least one port of that host, and no rule denies it.
EgressVerdict JudgeName(std::span<const EgressRule> rules, const HostName& name);

}  // namespace coffer::policy
