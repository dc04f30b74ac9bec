// SPDX-License-Identifier: Apache-2.0
//
// Scrubbing: what looks like a secret is taken out of a text before it is hashed, stored or shown.
//
// A secret is known by the name it is given (a member "password" of a JSON object), or by its own
// shape: keys of well-known services, bearer tokens, JSON Web Tokens, private keys, passwords in
// URLs, our own API keys. It is replaced by what kind it was, so that the text still reads. A
// secret without a name and without a shape is not recognised: the record therefore shows short
// plain values only, and sizes of everything else (call/evaluate.h).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace coffer::policy {

// "password", "api_key", "X-Auth-Token": whatever is kept under such a name is not shown.
bool IsSecretName(std::string_view name);

// The text with "<redacted: KIND>" in the place of every secret.
std::string ScrubText(std::string_view text);

// The same for the words of a command line, where a secret may also be the word after its name ("--token X").
std::vector<std::string> ScrubWords(std::span<const std::string> words);

// The same for every string of a document, names included; values under a secret name go whole.
Json ScrubJson(const Json& value);

}  // namespace coffer::policy
