// SPDX-License-Identifier: Apache-2.0
//
// Values that must never leave, in requests through a proxy to a server that keeps every byte it got.
//
// Invariant: of a value that is found, in whatever spelling, no byte reaches the server. Each test sends another value
// the same way, which arrives whole.
#include "base/base64.h"
#include "tests/unit/egress/one_rule_proxy.h"

namespace coffer::egress {
namespace {

constexpr const char* kValue = "tLq4-secret-7Zw1Pp";
constexpr const char* kOther = "Mv93-nothing-Xk2Qq";

class ProxyNeverSend : public OneRuleProxy {
 protected:
  void ServeOne(int client) override {
    std::string message;
    for (std::string some; !(some = ReadSome(client, 4096)).empty();) {
      {
        const std::lock_guard lock(mutex_);
        got_ += some;
      }
      message += some;
      if (IsWhole(message)) {
        message.clear();
        const std::string answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        (void)::send(client, answer.data(), answer.size(), MSG_NOSIGNAL);
      }
    }
  }
  static bool IsWhole(const std::string& message) {
    const size_t head = message.find("\r\n\r\n");
    if (head == std::string::npos) {
      return false;
    }
    if (message.find("Transfer-Encoding: chunked") < head) {
      return message.ends_with("0\r\n\r\n");
    }
    const std::string name = "Content-Length: ";
    const size_t length = message.find(name);
    const size_t body = length < head ? std::stoul(message.substr(length + name.size())) : 0;
    return message.size() >= head + 4 + body;
  }

  void StartWith(const std::string& value) {
    grants_.never_send = {{4, value}};
    Start(policy::ParseAllow("http://api.test:1/**").value());
  }
  std::string Host() const { return "api.test:" + std::to_string(server_port_); }
  std::string Head(const std::string& path, const std::string& fields) const {
    return "POST http://" + Host() + path + " HTTP/1.1\r\nHost: " + Host() + "\r\n" + fields +
           "\r\n";
  }
  std::string got() {
    const std::lock_guard lock(mutex_);
    return got_;
  }
  // Sends the parts; each but the first one when the server has what `reached` says of those before. The answer.
  std::string Send(const std::vector<std::string>& parts, const std::string& reached = {}) {
    const UniqueFd fd = ConnectTo(port_);
    for (size_t i = 0; i < parts.size(); ++i) {
      for (int left = 2000; i > 0 && left > 0 && got().find(reached) == std::string::npos; --left) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
      (void)::send(fd.get(), parts[i].data(), parts[i].size(), MSG_NOSIGNAL);
    }
    std::string answer;
    for (std::string more; answer.find("\r\n") == std::string::npos; answer += more) {
      more = ReadSome(fd.get(), 4096);
      if (more.empty()) {
        break;
      }
    }
    return answer.substr(0, answer.find("\r\n"));
  }
  static std::string Length(size_t size) {
    return "Content-Length: " + std::to_string(size) + "\r\n";
  }
  static std::string Chunk(const std::string& data) {
    char size[16];
    ::snprintf(size, sizeof(size), "%zx\r\n", data.size());
    return size + data + "\r\n";
  }

  static constexpr const char* kChunked = "Transfer-Encoding: chunked\r\n";
  static constexpr const char* kRefused = "HTTP/1.1 403 Forbidden";
  std::string got_;
};

TEST_F(ProxyNeverSend, HeadsThatHoldItGoNowhere) {
  StartWith(kValue);
  const auto heads = [&](const std::string& value) {
    return std::vector<std::string>{
        Head("/v1/" + value, Length(0)),
        Head("/v1/x?key=" + value, Length(0)),
        Head("/v1/x?key=%74" + value.substr(1), Length(0)),
        Head("/v1/x", "X-Key: " + value + "\r\n" + Length(0)),
        Head("/v1/x", value + ": 1\r\n" + Length(0)),
        Head("/v1/x", "Authorization: Basic " + Base64Of("user:" + value) + "\r\n" + Length(0))};
  };
  for (const std::string& head : heads(kValue)) {
    EXPECT_EQ(Send({head}), kRefused) << head;
  }
  EXPECT_EQ(got(), "") << "OPEN";
  for (const std::string& head : heads(kOther)) {
    EXPECT_EQ(Send({head}), "HTTP/1.1 200 OK") << "NO-CONTROL\n" << head;
  }
  EXPECT_NE(got().find(kOther), std::string::npos) << "NO-CONTROL";
  for (const Traffic& one : End()) {
    EXPECT_EQ((one.path + one.host + one.reason + one.fix).find(kValue), std::string::npos);
    EXPECT_EQ(one.held_value, !one.allowed);
    if (!one.allowed) {
      EXPECT_NE(one.reason.find("line 4"), std::string::npos) << one.reason;
      EXPECT_NE(one.fix, "");
    }
  }
}

// A head that is refused as it is written: the reason would quote it.
TEST_F(ProxyNeverSend, NoReasonQuotesAValue) {
  StartWith(kValue);
  const auto heads = [&](const std::string& value) {
    return std::vector<std::string>{
        Head("/v1/x#" + value, Length(0)), Head("/v1/%zz" + value, Length(0)),
        "GET http://" + value + "@" + Host() + "/ HTTP/1.1\r\nHost: " + Host() + "\r\n\r\n"};
  };
  for (const std::string& head : heads(kValue)) {
    EXPECT_EQ(Send({head}), kRefused) << head;
  }
  for (const std::string& head : heads(kOther)) {
    EXPECT_EQ(Send({head}), "HTTP/1.1 400 Bad Request") << head;
  }
  EXPECT_EQ(got(), "");
  size_t values = 0, others = 0;
  for (const Traffic& one : End()) {
    const std::string said = one.method + one.path + one.host + one.reason + one.fix;
    EXPECT_EQ(said.find(kValue), std::string::npos) << "OPEN: " << said;
    values += one.held_value ? 1 : 0;
    others += said.find(kOther) != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(values, 3U);
  EXPECT_GT(others, 0U) << "NO-CONTROL: no reason quotes a head";
}

// Cut at every place, with what comes before the cut read and passed on before the rest is sent. The value has 18 bytes,
// so that it decides every digit of its base64.
TEST_F(ProxyNeverSend, BodiesThatAreCutAnywhere) {
  StartWith(kValue);
  size_t requests = 0;
  const auto send = [&](const std::string& text, size_t cut, bool chunked) {
    const std::string before = "before-" + std::to_string(++requests) + ".";
    const std::string first = before + text.substr(0, cut);
    const std::string rest = text.substr(cut) + " after";
    return chunked
               ? Send({Head("/v1/x", kChunked) + Chunk(first), Chunk(rest) + "0\r\n\r\n"}, before)
               : Send({Head("/v1/x", Length(first.size() + rest.size())) + first, rest}, before);
  };
  for (const bool chunked : {false, true}) {
    for (const std::string& value : {std::string(kValue), Base64Of(kValue)}) {
      for (size_t cut = 1; cut < value.size(); ++cut) {
        EXPECT_EQ(send(value, cut, chunked), kRefused) << value << " " << cut;
        const std::string seen = got();
        EXPECT_TRUE(
            seen.ends_with("before-" + std::to_string(requests) + "." + (chunked ? "\r\n" : "")))
            << "OPEN at " << cut << "\n"
            << seen;
        EXPECT_EQ(seen.find(value.substr(0, 4)), std::string::npos) << "OPEN at " << cut;
      }
    }
    for (size_t cut = 1; cut < std::string(kOther).size(); ++cut) {
      EXPECT_EQ(send(kOther, cut, chunked), "HTTP/1.1 200 OK") << "NO-CONTROL at " << cut;
    }
  }
  EXPECT_NE(got().find(std::string(kOther) + " after"), std::string::npos) << "NO-CONTROL";
}

// The beginning of a value at the end of a body is no value.
TEST_F(ProxyNeverSend, ABodyThatEndsWithABeginningArrivesWhole) {
  StartWith(kValue);
  const std::string part = std::string(kValue).substr(0, 17);
  EXPECT_EQ(Send({Head("/v1/x", Length(part.size())) + part}), "HTTP/1.1 200 OK");
  EXPECT_TRUE(got().ends_with("\r\n\r\n" + part)) << got();
  EXPECT_EQ(Send({Head("/v1/x", kChunked) + Chunk(part) + "0\r\n\r\n"}), "HTTP/1.1 200 OK");
  EXPECT_TRUE(got().ends_with("11\r\n" + part + "\r\n0\r\n\r\n")) << got();
}

// One request holds the value and the next one on the same connection does not: the refusal ends the connection.
TEST_F(ProxyNeverSend, ARefusalEndsTheConnection) {
  StartWith(kValue);
  const std::string bad = Head("/v1/bad", Length(18)) + kValue;
  EXPECT_EQ(Send({bad + Head("/v1/good", Length(0))}), kRefused);
  EXPECT_EQ(got().find("/v1/good"), std::string::npos) << "OPEN";
  EXPECT_EQ(Send({Head("/v1/good", Length(0))}), "HTTP/1.1 200 OK") << "NO-CONTROL";
}

TEST_F(ProxyNeverSend, WithoutValuesEverythingPasses) {
  Start(policy::ParseAllow("http://api.test:1/**").value());
  EXPECT_EQ(Send({Head("/v1/x", Length(18)) + kValue}), "HTTP/1.1 200 OK");
  EXPECT_TRUE(got().ends_with(kValue));
}

}  // namespace
}  // namespace coffer::egress
