// SPDX-License-Identifier: Apache-2.0
//
// The part of the service that is about metrics.
#include "daemon/service.h"
#include "daemon/standing.h"

namespace coffer::daemon {

void DaemonService::GetMetrics(const gateway::Identity& who, gateway::Reply<std::string> reply) {
  AnswerIfStanding<std::string>(context_, who, std::move(reply),
                                [this, who] { return context_.meter.Print(who); });
}

}  // namespace coffer::daemon
