// SPDX-License-Identifier: Apache-2.0
//
// A file of the service read as a whole, for answers that have it inside.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "gateway/http/exchange.h"

namespace coffer::gateway {

// Refused if the file is larger than `most`, or ends before its size.
void ReadWholeFile(const std::shared_ptr<const Api>& api, const Identity& who,
                   const FileOwner& owner, const std::string& path, uint64_t most,
                   Reply<std::string> reply);

}  // namespace coffer::gateway
