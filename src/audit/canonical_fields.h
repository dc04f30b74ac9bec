// SPDX-License-Identifier: Apache-2.0
//
// Members of a canonical receipt (seal.h) as the text they are, found without making the document
// into values: a verifier asks for twenty of them in every receipt there is.
//
// The text must be one whose hash or signature was found good, or come from CanonicalReceipt: what
// is not well made gives members that are not there, never a wrong one. Views point into the text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace coffer::audit {

class CanonicalFields {
 public:
  explicit CanonicalFields(std::string_view object);

  // The JSON text of a member, "null" if it is not there; At("exit", "code") is of the object inside.
  std::string_view At(std::string_view name) const;
  std::string_view At(std::string_view name, std::string_view inner) const;
  // How many elements an array has; nothing if it is none.
  std::optional<uint64_t> CountOf(std::string_view name) const;

 private:
  std::vector<std::pair<std::string_view, std::string_view>> members_;
};

// Whether the JSON text says `value`; null and "" are the same, because a row of the store has no null.
bool Says(std::string_view json, std::string_view value);

}  // namespace coffer::audit
