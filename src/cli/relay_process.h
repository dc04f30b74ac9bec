// SPDX-License-Identifier: Apache-2.0
//
// The relay of a call with [calls] in the daemon, as the call's runner has it (verb_inside_relay.h).
#pragma once

#include "cli/serving_process.h"

namespace coffer::cli {

class RelayProcess : public ServingProcess {
 public:
  // `channel` leads to the gateway, which hears of the relay's end by it. As root the relay becomes `uid`.
  RelayProcess(UniqueFd channel, uint32_t uid) : channel_(std::move(channel)), uid_(uid) {}

  Status Start() override;
  Status Open(UniqueFd listener) override;

 private:
  UniqueFd channel_;
  const uint32_t uid_;
};

}  // namespace coffer::cli
