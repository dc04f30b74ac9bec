// SPDX-License-Identifier: Apache-2.0
//
// The machine in words that mean something elsewhere: no host name, no path, no address.
#pragma once

#include "results.h"

namespace coffer::bench {

Host DescribeHost();

}  // namespace coffer::bench
