// SPDX-License-Identifier: Apache-2.0
//
// Policy evaluation among many manifests, in this process: from a tool's name and JSON arguments to its envelope.
#pragma once

#include <string>
#include <vector>

namespace coffer::bench {

void WriteManifests(const std::string& directory, size_t count);
// Nanoseconds of each of some ten thousand evaluations, of tools in no order, also of arguments that are refused.
std::vector<double> MeasureEvaluation(const std::string& directory);

}  // namespace coffer::bench
