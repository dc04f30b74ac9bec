// SPDX-License-Identifier: Apache-2.0
//
// The messages of an egress process and its call's supervisor about access that a program asks for (access_requests.h).
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace coffer::egress {

// A connection waits for an answer, or no longer does.
struct AccessNotice {
  enum class Kind : uint8_t {
    kAsked,
    kUnanswered,  // in time: it counts as denied
    kGone,        // what waited has ended
  };
  Kind kind = Kind::kAsked;
  uint32_t id = 0;  // of this call's requests, from 1
  // Of kAsked:
  std::string host;  // HostName::text()
  uint16_t port = 0;
  std::string opens;  // what a yes opens, as --allow would write it
};

enum class AccessChoice : uint8_t { kDeny, kForCall, kForMinutes };

struct AccessDecision {
  uint32_t id = 0;
  AccessChoice choice = AccessChoice::kDeny;
  uint32_t minutes = 0;  // of kForMinutes: 1 to kMostAccessMinutes
};

inline constexpr uint32_t kMostAccessMinutes = 24 * 60;
inline constexpr uint32_t kMostHoldSeconds = 60 * 60;
// How long a connection waits where nothing else is said.
inline constexpr uint32_t kUsualHoldSeconds = 120;

// False: the request could not be sent, so there will be no answer.
using AccessNotifier = std::function<bool(const AccessNotice&)>;

}  // namespace coffer::egress
