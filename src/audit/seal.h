// SPDX-License-Identifier: Apache-2.0
//
// A sealed receipt can be checked with the log's public key alone.
//
// It carries its place in the log (index, size, root), the log's line about it, the proof that the
// line is under the root, and a signature over all of that and the receipt. The line names the hash
// of the receipt's canonical form: the document with `log` and `signature` null, keys sorted, no
// spaces. So one changed byte of meaning is found. That the log was not rewritten since, a receipt
// alone cannot show: compare its root with a checkpoint (VerifyLog).
#pragma once

#include <string>
#include <string_view>

#include "audit/log/log.h"
#include "audit/log/signer.h"
#include "base/result.h"

namespace coffer::audit {

// Refuses what is not one JSON object.
Result<std::string> CanonicalReceipt(std::string_view text);

// A receipt on its way into the log.
struct ReceiptBody {
  std::string text;       // as FormatReceipt wrote it
  std::string canonical;  // what is hashed and signed
  std::string hash;       // "sha256:<hex>" of the canonical form: ReceiptRecord::body
};
Result<ReceiptBody> MakeBody(std::string text);

// `at` is what Append answered for the ReceiptRecord with this body's hash. The result is laid out
// as FormatReceipt does it.
Result<std::string> SealReceipt(const ReceiptBody& body, const Appended& at, const Log& log);

// Not an Error with kRefused: every word of the receipt is as it was when it was sealed, and the log held it.
Status VerifyReceipt(std::string_view text, const PublicKey& key);

}  // namespace coffer::audit
