// SPDX-License-Identifier: Apache-2.0
//
// A client for measuring: one connection that stays open and one request at a time; and many that ask for /healthz.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace coffer::bench {

class Client {
 public:
  Client(uint16_t port, std::string key);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  // The whole answer; ends the program if there is none.
  std::string Post(const std::string& path, const std::string& body);

 private:
  int fd_;
  std::string key_;
};

// How many answers came on `connections` until then, one request on each at any time.
size_t AskHealth(uint16_t port, int connections, std::chrono::steady_clock::time_point until);

}  // namespace coffer::bench
