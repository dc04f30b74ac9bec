// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as the body of POST /v1/calls: no crash; what is accepted obeys its bounds and is accepted again, the same.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "gateway/http/json_body.h"
#include "gateway/http/names.h"
#include "policy/manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace coffer::gateway;
  const HttpLimits limits;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)ParseSessionBody(text, limits).ok();
  (void)ParseKeyBody(text, limits).ok();
  (void)ParseSwitchBody(text, limits).ok();
  const auto first = ParseCallBody(text, limits);
  if (!first.ok()) {
    if (first.refusal().code.empty() || !IsUtf8(first.refusal().message)) {
      std::abort();
    }
    return 0;
  }
  const bool sound = coffer::policy::IsToolName(first->tool) && IsUtf8(first->args_json) &&
                     first->args_json.starts_with('{') &&
                     (!first->session_id || IsId(*first->session_id)) &&
                     (!first->parent_id || IsId(*first->parent_id));
  const std::string again = R"({"tool":")" + first->tool + R"(","args":)" + first->args_json + "}";
  const auto second = ParseCallBody(again, limits);
  // The same arguments can be longer than they came: escapes are written out. Only that may stop the second time.
  const bool stable = second.ok() ? second->args_json == first->args_json
                                  : second.refusal().code == "body.too_large";
  if (!sound || !stable) {
    std::fprintf(stderr, "accepted: %s\n", again.c_str());
    std::abort();
  }
  return 0;
}
