// SPDX-License-Identifier: Apache-2.0
//
// The row of a refusal, written before its receipt is in the log.
//
// A refused call was never admitted, so it has no row that recovery could end. A process that is killed when the receipt is
// in the log and the call (store/admission.h, AddRefusedCall) is not in the store would leave a record that no longer
// verifies. So the row is announced first: an open call that counts as no running one and claims no key. Recovery
// ends it like every call of a dead process, with a receipt of its own.
#pragma once

#include <string_view>

#include "base/result.h"
#include "store/admission.h"

namespace coffer::store {

// Committed, not flushed. AddRefusedCall with the same id makes it the refusal that it is.
Status AnnounceRefusedCall(Store& store, const AdmitRequest& request, std::string_view id);
// Instead, if the log did not take the receipt.
Status DropAnnounced(Store& store, const TenantId& tenant, std::string_view id);

}  // namespace coffer::store
