// SPDX-License-Identifier: Apache-2.0
//
// A checkpoint is the log's signature over its first `size` records, on one line of the log:
//
//   = <size> <root, base64> <prev, hex> <base64 of key id and signature>
//
// `prev` is the SHA-256 of the checkpoint line before it (of the header line, for the first), so
// the last signature holds all checkpoints, and its root holds all records. The signature is over
// the text of a C2SP signed note, which is how a checkpoint leaves the log:
// "<origin>\n<size>\n<root>\nprev <prev>\n".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "audit/log/encoding.h"
#include "audit/log/merkle.h"
#include "audit/log/signer.h"
#include "base/result.h"

namespace coffer::audit {

inline constexpr std::string_view kHeaderPrefix = "# coffer log 1 ";
inline constexpr std::string_view kOriginPrefix = "coffer.log/";  // then 16 hex digits

struct Checkpoint {
  uint64_t size = 0;
  Hash root{};
  Hash prev{};
  std::string key_id;     // 4 bytes
  std::string signature;  // 64 bytes

  std::string Line() const;  // without a newline
  std::string Note(std::string_view origin) const;
  // By this key, for this log.
  bool SignedBy(const PublicKey& key, std::string_view origin) const;
};

Checkpoint SignCheckpoint(const Signer& signer, std::string_view origin, uint64_t size,
                          const Hash& root, const Hash& prev);

// Nothing if any byte is not as Line() would write it.
std::optional<Checkpoint> ParseCheckpointLine(std::string_view line);

struct Note {
  std::string origin;
  Checkpoint checkpoint;
};
// Takes the signature of a key named coffer-log; there may be others beside it. Does not verify it.
Result<Note> ParseNote(std::string_view text);

// The origin, if it is the header of a log.
std::optional<std::string> ParseHeader(std::string_view line);

// What the next checkpoint calls `prev`.
inline Hash LineHash(std::string_view line) { return Sha256Of(line); }

}  // namespace coffer::audit
