// SPDX-License-Identifier: Apache-2.0
//
// The deliverer with an egress role that the test plays.
#include "daemon/deliver.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <map>
#include <set>

#include "audit/receipt.h"
#include "egress/deliver_schedule.h"
#include "store/admission.h"
#include "store/call.h"
#include "store/core.h"
#include "store/outbox.h"
#include "tests/support/export_rules.h"
#include "tests/support/run.h"
#include "tests/support/store_state.h"

namespace coffer::daemon {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::WaitUntil;

TEST(DeliverSchedule, WhatAnAnswerMeans) {
  const auto fate = [](uint32_t status) {
    egress::DeliverAnswer answer;
    answer.result = static_cast<uint32_t>(egress::DeliverResult::kAnswered);
    answer.status = status;
    return egress::FateOf(answer);
  };
  for (const uint32_t status : {200U, 202U, 204U, 299U}) {
    EXPECT_EQ(fate(status), egress::DeliverFate::kDone) << status;
  }
  for (const uint32_t status : {408U, 429U, 500U, 502U, 503U, 599U}) {
    EXPECT_EQ(fate(status), egress::DeliverFate::kRetry) << status;
  }
  for (const uint32_t status : {100U, 301U, 302U, 307U, 400U, 401U, 404U, 410U, 413U}) {
    EXPECT_EQ(fate(status), egress::DeliverFate::kRefused) << status;
  }
  for (const egress::DeliverResult result :
       {egress::DeliverResult::kUnreachable, egress::DeliverResult::kTimeout,
        egress::DeliverResult::kUntrusted, egress::DeliverResult::kForbidden}) {
    egress::DeliverAnswer answer;
    answer.result = static_cast<uint32_t>(result);
    EXPECT_EQ(egress::FateOf(answer), egress::DeliverFate::kRetry);
  }
}

TEST(DeliverSchedule, WaitsDoubleUpToAnHourAndVary) {
  const Nanos first = seconds(1);
  const Nanos most = std::chrono::hours(1);
  Nanos whole = first;
  for (uint32_t failures = 1; failures < 100; ++failures) {
    std::set<Nanos> seen;
    for (uint64_t chance : {0ULL, 1ULL, 12345678901ULL, 999999999999ULL, ~0ULL}) {
      const Nanos wait = egress::Backoff(failures, first, most, chance);
      EXPECT_GE(wait, whole / 2) << failures;
      EXPECT_LE(wait, whole) << failures;
      seen.insert(wait);
    }
    EXPECT_GT(seen.size(), 2U) << "the control: it varies";
    whole = std::min(whole * 2, most);
  }
  EXPECT_LE(egress::Backoff(UINT32_MAX, first, most, ~0ULL), most);
}

TEST(DeliverProtocol, WhatIsMalformedIsRefused) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  const UniqueFd ours(ends[0]), theirs(ends[1]);
  egress::DeliverHeader header;
  header.size = 4;
  strcpy(header.receiver, "webhook-1");
  strcpy(header.id, "call.1");
  ASSERT_TRUE(egress::SendDelivery(ours.get(), header, "body").value());
  const Result<egress::ReceivedDelivery> good = egress::ReceiveDelivery(theirs.get());
  ASSERT_TRUE(good.ok());
  EXPECT_EQ(good->body, "body");
  EXPECT_STREQ(good->header.id, "call.1");

  const auto refused = [&](const auto& change, size_t body = 4) {
    egress::DeliverHeader bad = header;
    change(bad);
    std::string bytes(reinterpret_cast<const char*>(&bad), sizeof(bad));
    bytes += std::string(body, 'x');
    EXPECT_EQ(::send(ours.get(), bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
    return !egress::ReceiveDelivery(theirs.get()).ok();
  };
  EXPECT_FALSE(refused([](egress::DeliverHeader&) {})) << "the control";
  EXPECT_TRUE(refused([](egress::DeliverHeader& bad) { bad.magic ^= 1; }));
  EXPECT_TRUE(refused([](egress::DeliverHeader& bad) { bad.version = 2; }));
  EXPECT_TRUE(refused([](egress::DeliverHeader& bad) { bad.reserved = 1; }));
  EXPECT_TRUE(refused([](egress::DeliverHeader& bad) { bad.time = -1; }));
  EXPECT_TRUE(refused([](egress::DeliverHeader& bad) { bad.size = 5; }));
  EXPECT_TRUE(refused([](egress::DeliverHeader& bad) { bad.size = 0xffffffff; }));
  EXPECT_TRUE(refused([](egress::DeliverHeader& bad) { bad.id[0] = '\0'; }));
  EXPECT_TRUE(refused([](egress::DeliverHeader& bad) { bad.id[2] = '\n'; }));
  EXPECT_TRUE(
      refused([](egress::DeliverHeader& bad) { memset(bad.receiver, 'x', sizeof(bad.receiver)); }));
  EXPECT_TRUE(refused([](egress::DeliverHeader& bad) { bad.size = 70000; }, 70000));
  EXPECT_EQ(::send(ours.get(), "short", 5, 0), 5);
  EXPECT_FALSE(egress::ReceiveDelivery(theirs.get()).ok());
  header.size = egress::kMaxDeliverBody + 1;
  EXPECT_FALSE(
      egress::SendDelivery(ours.get(), header, std::string(egress::kMaxDeliverBody + 1, 'x')).ok());

  // And the other way.
  egress::DeliverAnswer answer;
  answer.result = static_cast<uint32_t>(egress::DeliverResult::kAnswered);
  answer.status = 200;
  const auto answered = [&](const auto& change) {
    egress::DeliverAnswer bad = answer;
    change(bad);
    EXPECT_TRUE(egress::SendAnswer(theirs.get(), bad).ok());
    return egress::ReceiveAnswer(ours.get()).ok();
  };
  EXPECT_TRUE(answered([](egress::DeliverAnswer&) {})) << "the control";
  EXPECT_FALSE(answered([](egress::DeliverAnswer& bad) { bad.magic ^= 1; }));
  EXPECT_FALSE(answered([](egress::DeliverAnswer& bad) { bad.status = 700; }));
  EXPECT_FALSE(answered([](egress::DeliverAnswer& bad) { bad.result = 0; }));
  EXPECT_FALSE(answered([](egress::DeliverAnswer& bad) { bad.result = 99; }));
  EXPECT_FALSE(answered([](egress::DeliverAnswer& bad) { bad.result = 2; }))
      << "a status without an answer";
  EXPECT_FALSE(answered([](egress::DeliverAnswer& bad) { bad.retry_after = 1 << 30; }));
  EXPECT_TRUE(egress::ReceiveAnswer(ours.get())->none);
}

// A store with an outbox, and the test at the other end of the socket.
class DelivererTest : public ::testing::Test {
 protected:
  DelivererTest() : store_(Open()) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    gateway_ = UniqueFd(ends[0]);
    egress_ = UniqueFd(ends[1]);
    options_.first_wait = milliseconds(20);
    options_.longest_wait = milliseconds(100);
    options_.look = milliseconds(10);
    hook_.name = "hook";
    hook_.host = "hook.example";
    collector_.name = "collector";
    collector_.host = "collector.example";
    collector_.kind = egress::Receiver::Kind::kOtlp;
  }
  store::Store Open() {
    store::StoreOptions options;
    options.fsync = false;
    Result<store::Store> opened = store::Store::Open(dir_ / "state", options);
    EXPECT_TRUE(opened.ok());
    EXPECT_TRUE(store::EnsureTenant(*opened, store::TenantId::Local()).ok());
    return std::move(opened).value();
  }
  void Begin(std::vector<egress::Receiver> receivers) {
    deliverer_ =
        std::make_unique<Deliverer>(store_, std::move(receivers), gateway_.get(), options_);
    ASSERT_TRUE(deliverer_->Start().ok());
  }
  void Add(const std::string& receiver, const std::string& id) {
    const std::string to[] = {receiver};
    EXPECT_TRUE(store::AddToOutbox(store_, to, "local", "{\"id\":\"" + id + "\"}").ok());
  }
  // A call that ended, and who is told; its id.
  std::string AddCall(const std::vector<std::string>& receivers) {
    store::AdmitRequest request;
    request.identity.tool = "bash";
    request.identity.agent = "bot";
    const std::string id = store::AdmitCall(store_, request).value().call_id;
    audit::Receipt receipt;
    receipt.identity.call_id = id;
    receipt.identity.tool = "bash";
    receipt.outcome = "denied";
    receipt.requested_at = receipt.finished_at = WallTime();
    store::CallEnd end;
    end.outcome = store::Outcome::kDenied;
    end.receipt = audit::FormatReceipt(receipt);
    end.send_to = receivers;
    EXPECT_TRUE(store::RefuseCall(store_, request.identity.tenant, id, end).ok());
    return id;
  }
  // The next thing it wants sent; nothing within the time: `ended`.
  egress::ReceivedDelivery Next(int millis = 5000) {
    pollfd ready{egress_.get(), POLLIN, 0};
    if (::poll(&ready, 1, millis) != 1) {
      egress::ReceivedDelivery none;
      none.ended = true;
      return none;
    }
    return egress::ReceiveDelivery(egress_.get()).value();
  }
  void Answer(const egress::ReceivedDelivery& to, uint32_t status, uint32_t retry_after = 0) {
    egress::DeliverAnswer answer;
    answer.number = to.header.number;
    answer.result = static_cast<uint32_t>(status == 0 ? egress::DeliverResult::kUnreachable
                                                      : egress::DeliverResult::kAnswered);
    answer.status = status;
    answer.retry_after = retry_after;
    EXPECT_TRUE(egress::SendAnswer(egress_.get(), answer).ok());
  }
  uint64_t Left() { return test::CountOutbox(store_).value(); }

  test::TempDir dir_;
  store::Store store_;
  UniqueFd gateway_, egress_;
  DelivererOptions options_;
  egress::Receiver hook_, collector_;
  std::unique_ptr<Deliverer> deliverer_;
};

TEST_F(DelivererTest, ARowGoesWhenItsReceiverHasIt) {
  Begin({hook_});
  Add("hook", "1");
  const egress::ReceivedDelivery sent = Next();
  EXPECT_STREQ(sent.header.receiver, "hook");
  EXPECT_STREQ(sent.header.id, "1");
  EXPECT_EQ(sent.body, "{\"id\":\"1\"}");
  EXPECT_TRUE(Next(100).ended) << "nothing is sent twice while it is under way";
  EXPECT_EQ(Left(), 1U);
  Answer(sent, 204);
  EXPECT_TRUE(WaitUntil([&] { return Left() == 0; }));
  EXPECT_TRUE(Next(100).ended);
  EXPECT_EQ(deliverer_->counts().sent, 1U);
}

// A disk that is full when a receiver has answered: it is not told again while this process lives, and the row goes when
// it can.
TEST_F(DelivererTest, ARowThatCannotBeRemovedIsNotSentAgainAndGoesLater) {
  const auto run = [&](const char* sql) {
    EXPECT_TRUE(store_.core()
                    .Write(store::Durability::kCommitted,
                           [&](store::Connection& db) { return db.Script(sql); })
                    .ok());
  };
  run("CREATE TRIGGER stuck BEFORE DELETE ON outbox BEGIN SELECT raise(ABORT, 'stuck'); END");
  Begin({hook_});
  Add("hook", "1");
  Answer(Next(), 204);
  EXPECT_TRUE(WaitUntil([&] { return deliverer_->counts().sent == 1; }));
  Add("hook", "2");
  const egress::ReceivedDelivery second = Next();
  EXPECT_STREQ(second.header.id, "2") << "the others go on";
  Answer(second, 204);
  EXPECT_TRUE(Next(300).ended) << "and nothing comes again";
  EXPECT_EQ(Left(), 2U) << "the control: they are still there";
  run("DROP TRIGGER stuck");
  EXPECT_TRUE(WaitUntil([&] { return Left() == 0; }));
  EXPECT_TRUE(Next(100).ended);
  EXPECT_EQ(deliverer_->counts().sent, 2U);
}

TEST_F(DelivererTest, WhatFailsComesAgainUnchanged) {
  Begin({hook_});
  Add("hook", "1");
  egress::ReceivedDelivery first = Next();
  for (const uint32_t status : {0U, 500U, 429U, 408U, 404U}) {
    Answer(first, status);
    const egress::ReceivedDelivery again = Next();
    ASSERT_FALSE(again.ended) << status;
    EXPECT_STREQ(again.header.id, "1");
    EXPECT_EQ(again.body, first.body);
    EXPECT_NE(again.header.number, first.header.number);
    first = again;
  }
  EXPECT_EQ(Left(), 1U);
  Answer(first, 200);
  EXPECT_TRUE(WaitUntil([&] { return Left() == 0; }));
}

TEST_F(DelivererTest, OneThatIsRefusedIsDroppedAfterAFewAttempts) {
  Begin({hook_});
  Add("hook", "bad");
  for (uint32_t i = 0; i < options_.most_refusals; ++i) {
    const egress::ReceivedDelivery sent = Next();
    ASSERT_FALSE(sent.ended) << i;
    EXPECT_EQ(Left(), 1U);
    Answer(sent, 400);
  }
  EXPECT_TRUE(WaitUntil([&] { return Left() == 0; }));
  EXPECT_TRUE(Next(200).ended);
  EXPECT_EQ(deliverer_->counts().dropped, 1U);
  // Failures of the receiver are not refusals of the event.
  Add("hook", "good");
  for (uint32_t i = 0; i < 2 * options_.most_refusals; ++i) {
    Answer(Next(), 503);
  }
  EXPECT_EQ(Left(), 1U);
  EXPECT_EQ(deliverer_->counts().dropped, 1U);
}

TEST_F(DelivererTest, RetryAfterIsHonoured) {
  Begin({hook_});
  Add("hook", "1");
  Answer(Next(), 429, 1);
  const Nanos begin = BootTime();
  EXPECT_FALSE(Next().ended);
  EXPECT_GE(BootTime() - begin, milliseconds(900));
  EXPECT_GT(milliseconds(900), options_.longest_wait)
      << "the control: by itself it would be sooner";
}

TEST_F(DelivererTest, AReceiverThatIsDownIsTriedWithOneAndTheOthersGoOn) {
  options_.first_wait = options_.longest_wait = milliseconds(300);
  egress::Receiver other = hook_;
  other.name = "other";
  Begin({hook_, other});
  for (int i = 0; i < 30; ++i) {
    Add("hook", "h" + std::to_string(i));
  }
  for (uint32_t i = 0; i < options_.window; ++i) {
    Answer(Next(), 0);
  }
  Add("other", "o");
  const egress::ReceivedDelivery through = Next();
  EXPECT_STREQ(through.header.receiver, "other");
  Answer(through, 200);
  // One, and no more until it is answered.
  const egress::ReceivedDelivery probe = Next();
  EXPECT_STREQ(probe.header.receiver, "hook");
  EXPECT_TRUE(Next(150).ended);
  Answer(probe, 200);
  std::set<std::string> ids = {probe.header.id};
  for (egress::ReceivedDelivery next = Next(); !next.ended; next = Next(500)) {
    ids.insert(next.header.id);
    Answer(next, 200);
  }
  EXPECT_EQ(ids.size(), 30U);
  EXPECT_EQ(Left(), 0U);
}

TEST_F(DelivererTest, CallsOfOneCollectorTravelTogether) {
  std::set<std::string> calls;
  for (int i = 0; i < 10; ++i) {
    calls.insert(AddCall({"collector"}));
  }
  Begin({collector_});
  egress::ReceivedDelivery sent = Next();
  const test::Json request = test::Json::parse(sent.body);
  EXPECT_EQ(test::CheckOtlp(request), test::Strings());
  std::set<std::string> told;
  for (const test::Json& span : test::SpansOf(request)) {
    told.insert(test::AttributeOf(span, "gen_ai.tool.call.id"));
  }
  EXPECT_EQ(told, calls);
  // Refused together, they go alone: one that is bad cannot take the others along.
  Answer(sent, 400);
  for (int i = 0; i < 10; ++i) {
    const egress::ReceivedDelivery alone = Next();
    ASSERT_FALSE(alone.ended);
    EXPECT_EQ(test::SpansOf(test::Json::parse(alone.body)).size(), 1U);
    Answer(alone, 200);
  }
  EXPECT_TRUE(WaitUntil([&] { return Left() == 0; }));
}

TEST_F(DelivererTest, ACallIsToldFromItsReceipt) {
  const std::string id = AddCall({"hook"});
  const std::string gone[] = {"hook"};
  ASSERT_TRUE(
      store::AddToOutbox(store_, gone, "local", store::OutboxCallBody("no-such-call")).ok());
  ASSERT_TRUE(store::AddToOutbox(store_, gone, "local", "not json").ok());
  Begin({hook_});
  const egress::ReceivedDelivery sent = Next();
  const test::Json event = test::Json::parse(sent.body);
  EXPECT_EQ(test::CheckCloudEvent(event), test::Strings());
  EXPECT_EQ(event["id"], sent.header.id);
  EXPECT_EQ(event["subject"], id);
  EXPECT_EQ(event["type"], "io.cofferdam.call.denied");
  Answer(sent, 200);
  EXPECT_TRUE(WaitUntil([&] { return Left() == 0; })) << "what nothing is known of is dropped";
  EXPECT_EQ(deliverer_->counts().dropped, 2U);
}

TEST_F(DelivererTest, TheOutboxIsBounded) {
  options_.most_rows = 50;
  options_.first_wait = options_.longest_wait = seconds(60);
  for (int i = 0; i < 200; ++i) {
    Add("hook", std::to_string(i));
  }
  Begin({hook_});
  EXPECT_TRUE(WaitUntil([&] { return Left() == 50; }));
  // Counted right after the rows are gone, by another thread.
  EXPECT_TRUE(WaitUntil([&] { return deliverer_->counts().dropped >= 150U; }));
  EXPECT_EQ(deliverer_->counts().dropped, 150U);
}

TEST_F(DelivererTest, ARestartSendsWhatWasUnderWay) {
  Begin({hook_});
  Add("hook", "1");
  EXPECT_STREQ(Next().header.id, "1");
  deliverer_.reset();
  Begin({hook_});
  EXPECT_STREQ(Next().header.id, "1");
}

TEST_F(DelivererTest, AnEgressRoleThatTalksNonsenseIsNotHeard) {
  Begin({hook_});
  Add("hook", "1");
  const egress::ReceivedDelivery sent = Next();
  egress::DeliverAnswer unknown;
  unknown.number = sent.header.number + 77;  // nothing that was sent
  unknown.result = static_cast<uint32_t>(egress::DeliverResult::kAnswered);
  unknown.status = 200;
  EXPECT_TRUE(egress::SendAnswer(egress_.get(), unknown).ok());
  EXPECT_TRUE(Next(100).ended);
  EXPECT_EQ(Left(), 1U);
  EXPECT_EQ(::send(egress_.get(), "nonsense", 8, 0), 8);
  EXPECT_TRUE(Next(100).ended);
  EXPECT_EQ(Left(), 1U) << "nothing is lost by it";
}

}  // namespace
}  // namespace coffer::daemon
