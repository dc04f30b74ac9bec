// SPDX-License-Identifier: Apache-2.0
//
// What is too broad to be granted, and what is not well formed. An objection says what is wrong and what to write
// instead.
//
// A broad grant can be made with a dangerously_ key and a reason; what is malformed, or would undo the boundary or
// reach the host's own network, cannot be granted at all. By name only: that a path is a link, or an alias of
// another, is seen where it is opened.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace coffer::policy {

struct Objection {
  std::string message;
  std::string hint;
  bool final = false;  // no dangerously_ key helps
};

// A path of the host that would be mounted.
std::optional<Objection> ObjectToHostPath(std::string_view path);
// A place inside the boundary where something would be mounted.
std::optional<Objection> ObjectToMountPoint(std::string_view path);
// Absolute, without ".", "..", "//", a trailing "/" or control characters.
bool IsCleanPath(std::string_view path);

// A host pattern: "api.example.com", "*.example.com", "**.example.com", an address.
std::optional<Objection> ObjectToHost(std::string_view host);
// An HTTP path pattern: "/v1/x", "/v1/*/y", "/v1/**".
std::optional<Objection> ObjectToUrlPath(std::string_view path);

// A variable that changes which code runs: a parameter must not decide its value.
bool IsCodeVariable(std::string_view name);

// True if `allowed` (exact, "*.d", "**.d") covers everything that `wanted` covers.
bool HostCovers(std::string_view allowed, std::string_view wanted);

}  // namespace coffer::policy
