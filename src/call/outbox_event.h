// SPDX-License-Identifier: Apache-2.0
//
// An event, left in the store's outbox for its receivers.
//
// On disk when it returns, and always before the log says the same: a crash between the two still delivers the event.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "audit/log/log.h"
#include "audit/log/records.h"
#include "base/result.h"
#include "store/store.h"

namespace coffer::call {

// The receivers of an event ("call.finished", "switch.on"), by their names in the outbox. Called from any thread.
using Receivers = std::function<std::vector<std::string>(std::string_view event)>;

// The receivers of this state directory's daemon (store/receivers.h); none if it never had a daemon.
Result<Receivers> KnownReceivers(store::Store& store);

// Details are words and numbers.
Status AddEventToOutbox(store::Store& store, const Receivers& receivers,
                        const audit::EventRecord& event);

// Opens the log of a state directory. If a crash left a torn batch, an event for the known receivers goes into the
// outbox before the batch is cut off; while that fails, the log cannot be opened. The store outlives it.
Result<audit::Log> OpenLog(store::Store& store, const std::string& directory,
                           audit::LogOptions options = {});

}  // namespace coffer::call
