// SPDX-License-Identifier: Apache-2.0
//
// The URL of a remote MCP server and its credential headers: the first line of the bridge's stdin.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace coffer::cli {

using RemoteHeaders = std::vector<std::pair<std::string, std::string>>;

struct RemotePlace {
  std::string url;   // "https://host[:port]/path?query"
  std::string host;  // for the Host field
  RemoteHeaders headers;

  std::string Line() const;
  static Result<RemotePlace> Read(std::string_view line);
};

// What of the headers must not be seen: each value, and the credential behind its scheme. A server
// that wants to give it away can change it so that nothing finds it; this is for one that repeats
// it.
class RemoteSecrets {
 public:
  explicit RemoteSecrets(const RemoteHeaders& headers);
  std::string Remove(std::string text) const;
  // From every text and every name of a member.
  void Remove(Json& value) const;

 private:
  std::vector<std::string> secrets_;
};

}  // namespace coffer::cli
