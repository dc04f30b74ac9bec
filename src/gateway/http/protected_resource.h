// SPDX-License-Identifier: Apache-2.0
//
// Where a client gets a token for /mcp: protected-resource metadata (RFC 9728), and the challenge that points to it.
//
// The daemon checks tokens and issues none. `resource` is the audience that tokens must have, if it
// is a URL, and otherwise the URL that the client has used; its name was checked against the
// configuration (head_checks.h).
#pragma once

#include <string>

#include "gateway/http/exchange.h"

namespace coffer::gateway {

// Only with a verifier of tokens.
std::string FormatProtectedResource(const Exchange& exchange);

// Adds resource_metadata to a 401 of /mcp, if tokens are taken.
void AddResourceMetadata(const Exchange& exchange, Problem* problem);

}  // namespace coffer::gateway
