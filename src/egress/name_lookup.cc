// SPDX-License-Identifier: Apache-2.0
#include "egress/name_lookup.h"

#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/async_result.hpp>
#include <boost/asio/post.hpp>
#include <memory>
#include <system_error>
#include <thread>

namespace coffer::egress {
namespace {

using policy::IpAddress;
using Addresses = std::vector<IpAddress>;

// On a thread of its own.
Addresses LookUp(const std::string& name) {
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  Addresses found;
  if (::getaddrinfo(name.c_str(), nullptr, &wanted, &list) != 0) {
    return found;
  }
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
    if (one->ai_family == AF_INET) {
      std::array<uint8_t, 4> bytes;
      memcpy(bytes.data(), &reinterpret_cast<const sockaddr_in*>(one->ai_addr)->sin_addr, 4);
      found.push_back(IpAddress::V4(bytes));
    } else if (one->ai_family == AF_INET6) {
      std::array<uint8_t, 16> bytes;
      memcpy(bytes.data(), &reinterpret_cast<const sockaddr_in6*>(one->ai_addr)->sin6_addr, 16);
      found.push_back(IpAddress::V6(bytes));
    }
  }
  ::freeaddrinfo(list);
  return found;
}

}  // namespace

NameLookup::NameLookup(const net::IoExecutor& executor)
    : executor_(executor), place_free_(executor, Clock::time_point::max()) {}

net::Task<Addresses> NameLookup::Find(std::string name) {
  while (running_ >= kMostLookups) {
    (void)co_await place_free_.async_wait(net::kAwaitTuple);
  }
  ++running_;
  auto begin = [executor = executor_, name = std::move(name)](auto handler) {
    // Kept by a pointer: a thread that cannot be started must still be answered for.
    auto waiting = std::make_shared<decltype(handler)>(std::move(handler));
    const auto answer = [executor, waiting](Addresses addresses) {
      net::asio::post(executor, [waiting, addresses = std::move(addresses)]() mutable {
        std::move (*waiting)(std::move(addresses));
      });
    };
    try {
      std::thread([answer, name] { answer(LookUp(name)); }).detach();
    } catch (const std::system_error&) {
      answer({});
    }
  };
  Addresses found = co_await net::asio::async_initiate<decltype(net::kAwait), void(Addresses)>(
      std::move(begin), net::kAwait);
  --running_;
  place_free_.cancel_one();
  co_return found;
}

}  // namespace coffer::egress
