// SPDX-License-Identifier: Apache-2.0
//
// The proxy of a company (upstream_proxy.py), on this host's loopback.
#pragma once

#include <gtest/gtest.h>
#include <stdio.h>
#include <stdlib.h>

#include <string>

#include "tests/support/run.h"

namespace coffer::test {

class UpstreamProxy {
 public:
  // `file` takes the first line of each request.
  explicit UpstreamProxy(std::string file)
      : file_(std::move(file)), process_(Words(file_), Open()) {
    EXPECT_TRUE(process_.WaitForOutput(" .\n", Seconds(30))) << process_.err();
    EXPECT_EQ(sscanf(process_.out().c_str(), "port %d", &port_), 1);
  }
  std::string Url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  std::string Asked() const { return ReadFile(file_).value_or(""); }

 private:
  static Strings Words(const std::string& file) {
    const char* const source = ::getenv("COFFER_SOURCE");
    return {"python3",
            std::string(source != nullptr ? source : ".") + "/tests/support/upstream_proxy.py",
            file};
  }
  static RunOptions Open() {
    RunOptions options;
    options.input = std::string(Background::kKeepOpen, 5);
    return options;
  }

  const std::string file_;
  Background process_;
  int port_ = 0;
};

}  // namespace coffer::test
