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

TEST(NetworkHint, NamesTheHostOfAScript) {
  EXPECT_EQ(HostInScript("#!/usr/bin/env python3\n# see https://docs.example/\n"
                         "import requests\nrequests.get(\"https://api.example.com/v1\")\n"),
            "api.example.com");
  EXPECT_EQ(HostInScript("  // https://a.example\n/* https://a.example\n * https://a.example\n */\n"
                         "fetch('http://b.example:8080/x') // https://a.example"),
            "b.example:8080");
}

TEST(NetworkHint, SaysNothingOfOtherScripts) {
  EXPECT_EQ(HostInScript(""), std::nullopt);
  EXPECT_EQ(HostInScript("print(1)\n# https://a.example\n"), std::nullopt);
  EXPECT_EQ(HostInScript("x = 'http://localhost:8000/'\n"), std::nullopt);
  EXPECT_EQ(HostInScript(std::string(300 << 10, ' ') + "https://a.example"), std::nullopt);
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
