// SPDX-License-Identifier: Apache-2.0
//
// A transcript: the commands, code, input and output of a call, as the record keeps them.
//
// Before anything is kept, secrets are taken out of every part: values of arguments and variables
// whose names say that they are secrets (wherever they turn up, also in output), and what has the
// name or the shape of a secret (policy/scrub.h). Each part is looked at as a whole, however many
// writes it came in. A secret without such a name and without such a shape stays in, and so does
// one that the program prints in another encoding: a tool or tenant whose text must not be kept
// says record = "hashes". Of each part the first kMostTranscriptPart bytes are kept. The hash of
// the text is in the sealed receipt, so it cannot be edited, and can be forgotten before its call.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "policy/envelope.h"

namespace coffer::call {

inline constexpr size_t kMostTranscriptPart = 64 << 10;
// As much of a part is read, so that a secret at its cut is still seen whole.
inline constexpr size_t kTranscriptReads = kMostTranscriptPart + (16 << 10);

struct Transcript {
  std::vector<std::string> command;
  std::string code;  // of a script that was brought in
  std::string stdin_text;
  std::string stdout_text;
  std::string stderr_text;
  std::vector<std::string> cut;  // the parts of which only the beginning is kept: "stdout"
};

// Values that are secrets because of their names. Those of fewer than four bytes are not: they are everywhere.
std::vector<std::string> SecretValuesOf(const Json& args, const policy::Envelope& envelope);

// One line of JSON, scrubbed and cut. Bytes that are not UTF-8 are replaced.
std::string FormatTranscript(const Transcript& ran, const std::vector<std::string>& secrets);
Result<Transcript> ParseTranscript(std::string_view text);

// For a terminal: a heading for each part, its lines indented and escaped. Nothing in it can begin a line of its own.
std::string TellTranscript(const Transcript& ran);

}  // namespace coffer::call
