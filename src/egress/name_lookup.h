// SPDX-License-Identifier: Apache-2.0
//
// The names of one boundary, looked up beside the loop. getaddrinfo(3) waits, for seconds if a
// server does not answer, so each lookup has a thread. At most kMostLookups of a boundary run at
// once, the others of that boundary wait: a program that asks for names of a dead name server holds
// up itself, and no other call in the same process.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <string>
#include <vector>

#include "net/asio.h"
#include "policy/ip_address.h"

namespace coffer::egress {

inline constexpr size_t kMostLookups = 8;

class NameLookup {
 public:
  explicit NameLookup(const net::IoExecutor& executor);

  // On the loop. Empty: there is no such name, or no answer. It must outlive every task that it gives.
  net::Task<std::vector<policy::IpAddress>> Find(std::string name);

 private:
  using Clock = std::chrono::steady_clock;
  using Timer =
      net::asio::basic_waitable_timer<Clock, net::asio::wait_traits<Clock>, net::IoExecutor>;
  net::IoExecutor executor_;
  Timer place_free_;  // never expires; one wait is cancelled for each place
  size_t running_ = 0;
};

}  // namespace coffer::egress
