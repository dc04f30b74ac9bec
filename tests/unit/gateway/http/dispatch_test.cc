// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/dispatch.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/gateway/fake_service.h"

namespace coffer::gateway {
namespace {

class NoLoop : public net::Loop {
 public:
  void Post(std::function<void()> task) override { task(); }
  void Run() override {}
  void Stop() override {}
  std::shared_ptr<void> After(std::chrono::milliseconds, std::function<void()>) override {
    return nullptr;
  }
  std::shared_ptr<void> WatchReadable(int, std::function<void()>) override { return nullptr; }
  std::shared_ptr<void> WatchWritable(int, std::function<void()>) override { return nullptr; }
  std::shared_ptr<void> WatchSignal(int, std::function<void()>) override { return nullptr; }
};

class Dispatch : public ::testing::Test {
 protected:
  // The problem's code, or "admitted".
  std::string Ask(Method method, const std::string& target, const std::string& key,
                  std::vector<Header> more = {}) {
    auto exchange = std::make_shared<Exchange>();
    exchange->api = std::shared_ptr<const Api>(std::shared_ptr<void>(), &api_);
    exchange->channel.local_address = "127.0.0.1";
    exchange->head.method = method;
    exchange->head.target = target;
    exchange->head.headers = std::move(more);
    exchange->head.headers.push_back({"Host", "localhost"});
    exchange->head.headers.push_back({"Content-Type", "application/json"});
    exchange->head.content_length = method == Method::kPost || method == Method::kPut ? 2 : 0;
    if (!key.empty()) {
      exchange->head.headers.push_back({"Authorization", "Bearer " + key});
    }
    std::string answer = "undecided";
    Admit(exchange, [&](std::optional<Response> response) {
      answer = response.has_value()
                   ? nlohmann::json::parse(response->body)["code"].get<std::string>()
                   : "admitted";
    });
    last_ = exchange;
    return answer;
  }

  static std::string TargetOf(const Route& route) {
    std::string path(route.path);
    const std::pair<const char*, std::string> values[] = {
        {"{call_id}", kCallId},
        {"{session_id}", kSessionId},
        {"{tool}", "python"},
        {"{key_id}", "k1"},
        {"{scope}", "tool"},
        {"{name}", "python"},
        {"{path*}", "a/b"},
        {"{process_id}", kCallId},
        {"{access_id}", kCallId + ".1"},
        {"{hash}", "sha256:" + std::string(64, 'a')}};
    for (const auto& [name, value] : values) {
      if (const size_t at = path.find(name); at != std::string::npos) {
        path.replace(at, std::string(name).size(), value);
      }
    }
    return path;
  }

  FakeService service_;
  NoLoop loop_;
  Api api_{service_, loop_, {}};
  std::shared_ptr<Exchange> last_;
};

TEST_F(Dispatch, EveryRouteWithEveryRole) {
  const std::pair<const char*, Role> keys[] = {{"agent-key", Role::kAgent},
                                               {"approver-key", Role::kApprover},
                                               {"operator-key", Role::kOperator},
                                               {"auditor-key", Role::kAuditor}};
  for (const Route& route : Routes()) {
    SCOPED_TRACE(route.path);
    const std::string target = TargetOf(route);
    EXPECT_EQ(Ask(route.method, target, ""),
              route.access.is_public() ? "admitted" : "auth.missing");
    EXPECT_EQ(Ask(route.method, target, "nobody"),
              route.access.is_public() ? "admitted" : "auth.key");
    for (const auto& [key, role] : keys) {
      const bool may = route.access.is_public() || route.access.Allows(role);
      EXPECT_EQ(Ask(route.method, target, key), may ? "admitted" : "auth.role") << key;
    }
  }
}

TEST_F(Dispatch, NobodyLearnsWhatExistsWithoutAKey) {
  EXPECT_EQ(Ask(Method::kGet, "/v1/calls/not-an-id", ""), "auth.missing");
  EXPECT_EQ(Ask(Method::kGet, "/v1/calls/not-an-id", "agent-key"), "path.invalid");
  EXPECT_EQ(Ask(Method::kGet, "/v1/keys?x=1", "agent-key"), "auth.role");
}

TEST_F(Dispatch, TheSiteComesFirst) {
  EXPECT_EQ(Ask(Method::kGet, "/nowhere", "", {{"Origin", "http://evil.example"}}), "http.origin");
  EXPECT_EQ(Ask(Method::kGet, "http://evil.example/healthz", ""), "http.host");
}

TEST_F(Dispatch, ValuesAreDecoded) {
  EXPECT_EQ(Ask(Method::kGet, "/v1/sessions/" + kSessionId + "/files/a%20b/c", "agent-key"),
            "admitted");
  EXPECT_EQ(last_->Value("path"), "a b/c");
  EXPECT_EQ(last_->Value("session_id"), kSessionId);
  EXPECT_EQ(last_->Value("nothing"), "");
  EXPECT_EQ(Ask(Method::kGet, "/v1/sessions?limit=7", "agent-key"), "admitted");
  ASSERT_NE(last_->Query("limit"), nullptr);
  EXPECT_EQ(*last_->Query("limit"), "7");
  EXPECT_EQ(last_->Query("cursor"), nullptr);
}

TEST_F(Dispatch, APeerOfAUnixSocketNeedsNoKey) {
  auto exchange = std::make_shared<Exchange>();
  exchange->api = std::shared_ptr<const Api>(std::shared_ptr<void>(), &api_);
  exchange->channel.unix_socket = true;
  exchange->channel.peer = Credential::Peer{1000, 1000, 1};
  exchange->head.method = Method::kGet;
  exchange->head.target = "/v1/tools";
  exchange->head.headers = {{"Host", "localhost"}};
  bool admitted = false;
  Admit(exchange, [&](std::optional<Response> response) { admitted = !response.has_value(); });
  EXPECT_TRUE(admitted);
  EXPECT_EQ(exchange->who.key_id, "uid:1000");
}

}  // namespace
}  // namespace coffer::gateway
