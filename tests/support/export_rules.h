// SPDX-License-Identifier: Apache-2.0
//
// What the formats of others demand, written down as rules, so that a document can be checked against them: OTLP 1.x in
// JSON (opentelemetry-proto, trace/v1), OCSF 1.5 (required attributes of classes 6003 and 2004), CloudEvents 1.0.
//
// Each check returns what is wrong, one sentence each; nothing: it is good. None of it shares code with the exporters.
#pragma once

#include <string>
#include <vector>

#include "tests/support/run.h"

namespace coffer::test {

std::vector<std::string> CheckOtlp(const Json& request);
std::vector<std::string> CheckOcsf(const Json& event);
std::vector<std::string> CheckCloudEvent(const Json& event);

// All spans of a request.
std::vector<Json> SpansOf(const Json& request);
// The value of an attribute of a span: a string for strings and integers, "true" for flags; "" if there is none.
std::string AttributeOf(const Json& span, const std::string& key);

}  // namespace coffer::test
