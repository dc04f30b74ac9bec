// SPDX-License-Identifier: Apache-2.0
//
// Compares the store's data of a call with its sealed receipt: the row, its stored result and its arguments follow from
// the receipt, and the receipt is in the log.
//
// Rows are there to be searched and filtered; a user who can write the database can write anything into them. So no
// reader is shown a row that was not compared with its receipt here: `audit list` and `show`, the API and exports ask
// ReadSealedCall, `audit verify` asks FindDifferences of every call. A call that has not ended has no receipt, and its
// row is not sealed: readers say so. Not compared, because no reader is shown them: the owner, the supervisor, the
// keyed hash of the arguments (they decide retries), `depth` and `decided_at`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "audit/log/log.h"
#include "audit/log/signer.h"
#include "audit/receipt.h"
#include "base/result.h"
#include "store/call.h"
#include "store/call_list.h"
#include "store/store.h"

namespace coffer::audit {

struct Differences {
  std::vector<std::string_view> columns;  // of the row, and "args"
  bool result = false;                    // the stored result is not the one that was sealed
  bool result_gone = false;               // there is none, and there was one
  bool transcript = false;                // the same of the transcript
  bool transcript_gone = false;
  std::string file;        // a stored file that is not one that was exported: its path
  bool file_gone = false;  // a file is not there that was
  bool none() const { return columns.empty() && !result && !transcript && file.empty(); }
};
// `canonical` was found good (its hash is the log's, or its signature holds); `ran` and `index` are
// of the log's record. A missing result, transcript or file is only told: retention removes them
// before the calls. Files are compared if they were read.
Differences FindDifferences(const store::StoredCall& stored, std::string_view canonical, bool ran,
                            uint64_t index);
// "agent, outcome"
std::string NamesOf(const Differences& differences);

enum class SealState : uint8_t {
  kOpen,    // the call has not ended and has no seal yet
  kGood,    // everything that is shown of it matches its seal
  kBroken,  // the stored data differs from the seal
};
std::string_view SealStateName(SealState state);  // "open", "good", "broken"

struct SealedCall {
  SealState state = SealState::kOpen;
  // What may be shown. Of a broken one only id, tenant and state are left.
  store::Call call;
  std::string receipt;                // sealed; only of a good one
  LogPosition log;                    // of a good one
  std::optional<std::string> result;  // of a good one, if it is still there
  std::optional<std::string> transcript;
  std::string problem;  // of a broken one, one sentence without a full stop
};
// An Error: the store could not be read.
Result<SealedCall> ReadSealedCall(store::Store& store, const store::Call& row,
                                  const PublicKey& key);

}  // namespace coffer::audit
