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
Status Tell(store::Store& store, const Receivers& receivers, const audit::EventRecord& event);

// The log of a state directory, which tells the known receivers of what a crash left in it before it cuts that off. While
// they cannot be told, it cannot be used. The store outlives it.
Result<audit::Log> OpenLog(store::Store& store, const std::string& directory,
                           audit::LogOptions options = {});

}  // namespace coffer::call
