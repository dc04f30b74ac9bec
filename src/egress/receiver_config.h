// SPDX-License-Identifier: Apache-2.0
//
// What the configuration file says about receivers of events and traces: [[webhook]] and [otlp], as written.
#pragma once

#include <string>
#include <vector>

namespace coffer::egress {

// One receiver of events: [[webhook]].
struct WebhookConfig {
  std::string url;                  // https://, or http:// to this host
  std::string secret_file;          // absolute; what the signature is made with; may be empty
  std::vector<std::string> events;  // "call.finished", "alert.*"; empty: all
  bool operator==(const WebhookConfig&) const = default;
};

// Where traces go: [otlp]. No endpoint: nowhere.
struct OtlpConfig {
  std::string endpoint;
  std::string headers_file;  // absolute; "Name: value" lines; may be empty
  bool operator==(const OtlpConfig&) const = default;
};

}  // namespace coffer::egress
