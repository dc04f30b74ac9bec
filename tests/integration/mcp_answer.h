// SPDX-License-Identifier: Apache-2.0
//
// What an MCP server on stdout has answered to one request.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "base/json.h"
#include "tests/support/host.h"

namespace coffer::test {

// The answer with this id; waits until its whole line has come. An empty object, and a failure, if none comes.
inline Json McpAnswer(Background& server, const std::string& id) {
  Json found = Json::object();
  EXPECT_TRUE(WaitUntil(
      [&] {
        (void)server.WaitForOutput("\"id\":\"" + id + "\"", Seconds(1));
        for (const std::string& line : Lines(server.out())) {
          const Json message = Json::parse(line, nullptr, false);
          if (!message.is_discarded() && message.value("id", "") == id) {
            found = message;
          }
        }
        return !found.empty();
      },
      Seconds(60)))
      << id << " has no answer: " << server.out() << server.err();
  return found;
}

}  // namespace coffer::test
