// SPDX-License-Identifier: Apache-2.0
//
// Any line as a line of the audit log: no crash, and what is accepted has one spelling. A leaf that the fast scanner
// accepts is what a JSON library prints after reading it; a checkpoint is what it says of itself; a note too.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "audit/log/checkpoint.h"
#include "audit/log/records_scan.h"

namespace {

[[noreturn]] void Fail(const char* what, std::string_view text) {
  std::fprintf(stderr, "%s: %.*s\n", what, static_cast<int>(text.size()), text.data());
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace coffer::audit;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  LeafFacts facts;
  if (text.find('\n') == std::string_view::npos && ScanLeaf(text, facts) == nullptr) {
    const nlohmann::json leaf = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (leaf.is_discarded() || leaf.dump() != text) {
      Fail("not one spelling", text);
    }
    if (leaf["seq"] != facts.seq || leaf["at"] != facts.at) {
      Fail("misread", text);
    }
  }
  if (const auto checkpoint = ParseCheckpointLine(text); checkpoint && checkpoint->Line() != text) {
    Fail("not one spelling of a checkpoint", text);
  }
  if (const auto origin = ParseHeader(text);
      origin && std::string(kHeaderPrefix) + *origin != text) {
    Fail("not one spelling of a header", text);
  }
  if (const auto note = ParseNote(text); note.ok()) {
    const std::string again = note->checkpoint.Note(note->origin);
    const auto second = ParseNote(again);
    if (!second.ok() || second->checkpoint.Line() != note->checkpoint.Line()) {
      Fail("a note that is not read again", text);
    }
  }
  return 0;
}
