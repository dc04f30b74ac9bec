// SPDX-License-Identifier: Apache-2.0
//
// The first line is a pattern, the rest a text. No crash, no hang; and what is
// found in a text is found in it between any two others, unless the pattern looks at the edges.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/utf8.h"
#include "policy/schema/pattern.h"
#include "policy/schema/value.h"

namespace {

constexpr uint64_t kPlenty = 1'000'000'000;

void Must(bool holds, const std::string& what) {
  if (!holds) {
    std::fprintf(stderr, "%s\n", what.c_str());
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace coffer::policy;
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const size_t line = all.find('\n');
  if (line == all.npos) {
    return 0;
  }
  const std::string_view source = all.substr(0, line);
  const std::string text(all.substr(line + 1));
  const auto pattern = Pattern::Compile(source);
  if (!pattern.ok()) {
    Must(pattern.error().kind == coffer::ErrorKind::kRefused, pattern.error().message);
    return 0;
  }
  if (!coffer::IsUtf8(text) || !pattern->Find(text, kPlenty).found) {
    return 0;
  }
  if (source.find_first_of("^$") == source.npos && source.find("\\b") == source.npos &&
      source.find("\\B") == source.npos) {
    Must(pattern->Find("é" + text + "𝄞", kPlenty).found, "found alone, but not between others");
  }
  return 0;
}
