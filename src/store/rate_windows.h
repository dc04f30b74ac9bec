// SPDX-License-Identifier: Apache-2.0
//
// Sliding windows as bytes in a row, so that rates hold across processes and restarts.
//
// They are kept as they are in memory: the file is read by the machine that wrote it. A new layout of
// policy::SlidingWindow needs a new tag in rate_windows.cc. Bytes with another tag or size, and rules that are not in
// them, start from zero. Only files of this folder include this header.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "policy/rate.h"

namespace coffer::store {

std::string PackWindows(const std::vector<policy::SlidingWindow>& windows);

// The window with this rule.
policy::SlidingWindow UnpackWindow(std::string_view bytes, const policy::RateRule& rule);

}  // namespace coffer::store
