// SPDX-License-Identifier: Apache-2.0
//
// What must be true of a request's head before anything else looks at it.
//
// CheckRawHead is stricter than the parser: whatever two implementations could read in two ways
// (folded lines, bare line feeds, NUL, spaces before a colon) is refused, so that a proxy in front
// and we always agree where a request ends. CheckSite is the guard against web pages: a page that
// rebinds its name to our address shows its own name in Host, one that posts across sites shows its
// own in Origin. A client that is not a browser can send what it likes in both, and still needs a
// credential.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/http/limits.h"
#include "gateway/http/message.h"
#include "gateway/http/problem.h"

namespace coffer::gateway {

// `raw` is everything up to and with the empty line.
std::optional<Problem> CheckRawHead(std::string_view raw, const HttpLimits& limits);

// Body length and transfer coding: at most one of them, once, in the one form we read.
std::optional<Problem> CheckFraming(const Head& head);

struct SiteNames {
  std::vector<std::string>
      hosts;  // names that Host may show besides localhost and the address; no port
  std::vector<std::string>
      origins;  // "https://console.example.com": may send requests from a browser
};
std::optional<Problem> CheckSite(const Head& head, const Channel& channel, const SiteNames& names);

// The target as path and query. Nothing if it is in no form that we serve; the authority of an absolute target takes
// the place of Host (RFC 9112 section 3.2.2).
struct Target {
  std::string path;
  std::string query;
};
std::optional<Target> SplitTarget(Head* head);

}  // namespace coffer::gateway
