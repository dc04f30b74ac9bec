// SPDX-License-Identifier: Apache-2.0
//
// The files that a call exported, as an identity may have them: only what the call's sealed receipt
// names, and only while the stored bytes are those that were sealed.
#pragma once

#include <string>
#include <vector>

#include "call/recorder.h"
#include "daemon/service_context.h"
#include "gateway/service.h"

namespace coffer::daemon {

// On a worker. Paths that begin with `prefix`, in order.
gateway::Answer<std::vector<gateway::FileView>> ListExported(call::Recorder& recorder,
                                                             const gateway::Identity& who,
                                                             const std::string& call_id,
                                                             const std::string& prefix);

// On a worker. Every byte is compared with the receipt before the first is given out, and again on the way.
gateway::Answer<std::shared_ptr<gateway::Download>> OpenExported(ServiceContext& context,
                                                                 const gateway::Identity& who,
                                                                 const std::string& call_id,
                                                                 const std::string& path);

}  // namespace coffer::daemon
