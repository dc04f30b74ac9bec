// SPDX-License-Identifier: Apache-2.0
#include "egress/resolver_socket.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <string>
#include <vector>

namespace coffer::egress {
namespace {

// As long as a name may be that takes long to read: each label is decoded, looked up and encoded again.
std::string SlowQuery() {
  std::string query("\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00", 12);
  for (int i = 0; i < 9; ++i) {
    const std::string label = "xn--a" + std::to_string(i) + "-m70daaa9756ababbb";
    query += static_cast<char>(label.size()) + label;
  }
  return query + std::string("\x04test\x00\x00\x01\x00\x01", 10);
}

class ResolverSocketTest : public ::testing::Test {
 protected:
  void SetUp() override {
    UniqueFd server(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const where = reinterpret_cast<sockaddr*>(&address);
    ASSERT_EQ(::bind(server.get(), where, size), 0);
    ASSERT_EQ(::getsockname(server.get(), where, &size), 0);
    client_ = UniqueFd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::connect(client_.get(), where, size), 0);
    socket_.emplace(*loop_, resolver_, std::move(server));
  }
  void Ask(const std::string& query) const {
    ASSERT_EQ(::send(client_.get(), query.data(), query.size(), 0),
              static_cast<ssize_t>(query.size()));
  }
  // Those that have come and were not counted yet.
  size_t Answers() const {
    char answer[512];
    size_t count = 0;
    while (::recv(client_.get(), answer, sizeof(answer), MSG_DONTWAIT) > 0) {
      ++count;
    }
    return count;
  }
  // How many came between two turns of the loop, until there are `all`.
  std::vector<size_t> Run(size_t all) {
    std::vector<size_t> counts;
    size_t sum = 0;
    const std::function<void()> look = [&] {
      if (const size_t more = Answers(); more > 0) {
        counts.push_back(more);
        sum += more;
      }
      if (sum >= all) {
        loop_->Stop();
      } else {
        loop_->Post(look);
      }
    };
    loop_->Post(look);
    const auto late = loop_->After(std::chrono::seconds(20), [&] { loop_->Stop(); });
    loop_->Run();
    EXPECT_EQ(sum, all);
    return counts;
  }

  std::unique_ptr<net::Loop> loop_ = net::MakeLoop();
  std::vector<policy::EgressRule> rules_ = {policy::ParseAllow("*.example.test").value()};
  Resolver resolver_{rules_, [](const Traffic&) {}};
  std::optional<ResolverSocket> socket_;
  UniqueFd client_;
};

TEST_F(ResolverSocketTest, EveryQueryIsAnswered) {
  for (int i = 0; i < 40; ++i) {
    Ask(SlowQuery());
  }
  const std::vector<size_t> counts = Run(40);
  for (const size_t count : counts) {
    EXPECT_LE(count, static_cast<size_t>(ResolverSocket::kMostAtOnce));
  }
}

// One thread serves all boundaries: names that take long to read hold the others up for one turn, as any other work does.
TEST_F(ResolverSocketTest, SlowNamesEndTheTurn) {
  constexpr auto kAll = static_cast<size_t>(ResolverSocket::kMostAtOnce);
  for (size_t i = 0; i < kAll; ++i) {
    Ask(SlowQuery());
  }
  EXPECT_GT(Run(kAll).size(), 1U) << "OPEN: all of them in one turn";
}

}  // namespace
}  // namespace coffer::egress
