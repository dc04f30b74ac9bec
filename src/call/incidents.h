// SPDX-License-Identifier: Apache-2.0
//
// What of a call's denials is an incident (watch/incident.h), as its receipt and the metrics have it.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "audit/receipt.h"

namespace coffer::call {

// Sentences, from the denials that are in the receipt.
std::vector<std::string> IncidentsOf(const audit::Receipt& receipt);
// Their kinds, each once.
std::set<std::string_view> IncidentKindsOf(const audit::Receipt& receipt);

}  // namespace coffer::call
