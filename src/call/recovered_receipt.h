// SPDX-License-Identifier: Apache-2.0
//
// The receipt of a call whose process died.
//
// The row tells who asked, and may have been edited. So the log decides whether the call ran and how it ended, if it has
// an end of the call. Where it has none, the end is what recovery says of every such call, whatever the row says by now.
// The words that nothing in the log vouches for are left out of the receipt of a call that did not run. The caller
// compares what is left with the log (audit/log/call_records.h) before it seals.
#pragma once

#include "audit/log/call_records.h"
#include "audit/receipt.h"
#include "base/result.h"
#include "store/call.h"
#include "store/store.h"

namespace coffer::call {

struct RecoveredReceipt {
  audit::Receipt receipt;
  bool ran = false;
};
// `before` is what the log has of the call. An Error: the store could not be read.
Result<RecoveredReceipt> RecoverReceipt(store::Store& store, const store::Call& call,
                                        const audit::CallRecords& before);

}  // namespace coffer::call
