// SPDX-License-Identifier: Apache-2.0
#include "call/run/network_hint.h"

#include <gtest/gtest.h>

#include <vector>

namespace coffer::call {
namespace {

using Words = std::vector<std::string>;

TEST(NetworkHint, NamesTheHostOfAUrl) {
  const std::pair<Words, std::string> cases[] = {
      {{"curl", "-s", "https://example.com/x?y=https://other.example/"}, "example.com"},
      {{"sh", "-c", "echo; curl 'https://a.example' | jq ."}, "a.example"},
      {{"wget", "http://a.example"}, "a.example:80"},
      {{"git", "clone", "ssh://git@a.example/x.git"}, "a.example:22"},
      {{"curl", "https://me:secret@a.example:8443/"}, "a.example:8443"},
      {{"curl", "https://localhost:1/", "https://127.0.0.1/", "https://b.example"}, "b.example"},
      {{"/usr/bin/pip", "install", "x"}, "HOST"},
      {{"npm", "ci"}, "HOST"},
  };
  for (const auto& [command, host] : cases) {
    EXPECT_EQ(HostOutside(command), host) << command.back();
  }
}

// What is printed is a name and a port, whatever the word holds.
TEST(NetworkHint, SaysNothingOfOtherWords) {
  for (const Words& command :
       {Words{}, Words{"make"}, Words{"pip"}, Words{"pip", "list"}, Words{"npm", "test"},
        Words{"npm", "install", "--offline", "x"}, Words{"pip", "install", "--no-index", "x"},
        Words{"x", "https://"}, Words{"x", "://a.example"}, Words{"x", "file://a.example/"},
        Words{"x", "https://localhost"}, Words{"x", "https://a.\x1b[31mexample/"},
        Words{"x", "https://[2001:db8::1]/"},
        Words{"x", "https://" + std::string(300, 'a') + ".b"}}) {
    EXPECT_EQ(HostOutside(command), std::nullopt) << (command.empty() ? "" : command.back());
  }
}

}  // namespace
}  // namespace coffer::call
