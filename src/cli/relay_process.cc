// SPDX-License-Identifier: Apache-2.0
#include "cli/relay_process.h"

#include "cli/verb_inside_relay.h"

namespace coffer::cli {

Status RelayProcess::Start() {
  return StartWith({"coffer", kRelayVerb, std::to_string(uid_)}, channel_.get());
}

Status RelayProcess::Open(UniqueFd listener) {
  const Status opened = ServingProcess::Open(std::move(listener));
  channel_.Reset();
  return opened;
}

}  // namespace coffer::cli
