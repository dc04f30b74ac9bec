// SPDX-License-Identifier: Apache-2.0
//
// A sealed receipt verifies with the public key alone, and not one word of it can be changed.
#include "audit/seal.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "audit/receipt.h"
#include "base/hash.h"
#include "tests/support/run.h"

namespace coffer::audit {
namespace {

using test::Json;

class SealTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Receipt receipt;
    receipt.identity.call_id = "0192f0c4";
    receipt.identity.tenant = *store::TenantId::Parse("acme");
    receipt.identity.agent = "b\xc3\xb6t \"q\"";
    receipt.identity.user = "uid:1000";
    receipt.outcome = "success";
    receipt.duration = Nanos(1'234'567);
    receipt.steps_us = {{"clone", 5}};
    text_ = FormatReceipt(receipt);
    Result<Log> log = Log::Open(dir_ / "log");
    ASSERT_TRUE(log.ok());
    EventRecord event;
    event.name = "x";
    ASSERT_TRUE(log->Append(event).ok());
    ReceiptRecord record;
    record.identity.call_id = receipt.identity.call_id;
    record.identity.tenant = receipt.identity.tenant;
    record.outcome = receipt.outcome;
    record.ran = true;
    record.body = MakeBody(text_)->hash;
    at_ = *log->Append(record);
    log_.emplace(std::move(log).value());
    sealed_ = *SealReceipt(*MakeBody(text_), at_, *log_);
  }
  bool Verifies(const std::string& text) { return VerifyReceipt(text, log_->public_key()).ok(); }
  bool Verifies(const Json& document) { return Verifies(document.dump(2)); }

  test::TempDir dir_;
  std::optional<Log> log_;
  std::string text_, sealed_;
  Appended at_;
};

TEST_F(SealTest, VerifiesAsItIsAndHoweverItIsLaidOut) {
  EXPECT_TRUE(Verifies(sealed_));
  EXPECT_TRUE(Verifies(Json::parse(sealed_).dump())) << "without white space";
  EXPECT_TRUE(Verifies(nlohmann::json::parse(sealed_).dump(1))) << "members in another order";
  EXPECT_EQ(HashOf(*CanonicalReceipt(sealed_)), MakeBody(text_)->hash)
      << "sealing does not change what was hashed";
  EXPECT_EQ(Json::parse(sealed_)["log"]["index"], 1);
  EXPECT_EQ(Json::parse(sealed_)["signature"]["key_id"], log_->key_id());
}

// A receipt is sealed in its text. It must come out as if it had been read, completed and printed.
TEST_F(SealTest, TheSealIsPrintedAsAMemberWouldBe) {
  Receipt odd;
  odd.identity.call_id = "c1";
  odd.outcome = "error";
  odd.error_class = "tool.error";
  odd.error_message = "\n  \"log\": {\n  \"signature\": null\n}\n \xff \x01 \xc3\xb6";
  odd.args_redacted = {"\"log\": null", "}\n"};
  for (const std::string& text : {text_, FormatReceipt(odd)}) {
    const ReceiptBody body = *MakeBody(text);
    EXPECT_EQ(body.canonical, *CanonicalReceipt(text));
    EXPECT_EQ(body.hash, HashOf(*CanonicalReceipt(text)));
    const std::string sealed = *SealReceipt(body, at_, *log_);
    EXPECT_EQ(sealed, Json::parse(sealed).dump(2) + "\n");
    const ReceiptBody one_line = *MakeBody(Json::parse(text).dump());
    EXPECT_EQ(one_line.hash, body.hash);
    EXPECT_EQ(*SealReceipt(one_line, at_, *log_), sealed) << "the control: by way of values";
  }
  EXPECT_FALSE(MakeBody("[]").ok());
}

TEST_F(SealTest, CanonicalForm) {
  EXPECT_EQ(*CanonicalReceipt(
                R"({ "b" : [1, 2.50, {"z":null,"a":"ä\u00e4\/"}], "a":true, "log":{"x":1} })"),
            R"({"a":true,"b":[1,2.5,{"a":"ää/","z":null}],"log":null,"signature":null})");
  EXPECT_FALSE(CanonicalReceipt("[]").ok());
  EXPECT_FALSE(CanonicalReceipt(R"({"a":1,"a":2})").ok());
}

TEST_F(SealTest, EveryChangedMemberIsFound) {
  const Json good = Json::parse(sealed_);
  for (const auto& [name, value] : good.items()) {
    Json changed = good;
    changed[name] = value.is_string() ? Json("other") : Json(12345);
    EXPECT_FALSE(Verifies(changed)) << name;
    changed = good;
    changed.erase(name);
    EXPECT_FALSE(Verifies(changed)) << "without " << name;
  }
  for (const char* part : {"log", "signature"}) {
    for (const auto& [name, value] : good[part].items()) {
      Json changed = good;
      changed[part][name] = value.is_string() ? Json(value.get<std::string>() + "0") : Json(0);
      EXPECT_FALSE(Verifies(changed)) << name;
      changed[part].erase(name);
      EXPECT_FALSE(Verifies(changed)) << "without " << name;
    }
    Json changed = good;
    changed[part]["more"] = 1;
    EXPECT_FALSE(Verifies(changed)) << "nothing may stand in the seal that is not checked";
  }
  Json added = good;
  added["extra"] = 1;
  EXPECT_FALSE(Verifies(added));
  added = good;
  added["log"]["proof"].push_back(std::string(64, '0'));
  EXPECT_FALSE(Verifies(added));
}

TEST_F(SealTest, EveryFlippedByteIsFound) {
  for (size_t i = 0; i < sealed_.size(); ++i) {
    if (sealed_[i] == ' ' || sealed_[i] == '\n') {
      continue;
    }
    std::string changed = sealed_;
    changed[i] ^= 1;
    EXPECT_FALSE(Verifies(changed))
        << "at " << i << ": " << changed.substr(i < 20 ? 0 : i - 20, 40);
  }
}

TEST_F(SealTest, AnotherKeyIsNotEnough) {
  const Log other = Log::Open(dir_ / "other").value();
  const Status status = VerifyReceipt(sealed_, other.public_key());
  ASSERT_FALSE(status.ok());
  EXPECT_TRUE(test::Contains(status.error().message, log_->key_id()));
}

TEST_F(SealTest, ASealMustBeAboutThisReceipt) {
  // Signed by the right key, but the log's line speaks of something else.
  ReceiptRecord record;
  record.identity.call_id = "another call";
  record.identity.tenant = *store::TenantId::Parse("acme");
  record.outcome = "success";
  record.body = MakeBody(text_)->hash;
  EXPECT_FALSE(Verifies(*SealReceipt(*MakeBody(text_), *log_->Append(record), *log_)));
  record.identity.call_id = "0192f0c4";
  record.body = "sha256:" + std::string(64, '0');
  EXPECT_FALSE(Verifies(*SealReceipt(*MakeBody(text_), *log_->Append(record), *log_)));
  record.body = MakeBody(text_)->hash;
  record.identity.tenant = *store::TenantId::Parse("other");
  EXPECT_FALSE(Verifies(*SealReceipt(*MakeBody(text_), *log_->Append(record), *log_)));
  record.identity.tenant = *store::TenantId::Parse("acme");
  EXPECT_TRUE(Verifies(*SealReceipt(*MakeBody(text_), *log_->Append(record), *log_)))
      << "the control";
  EXPECT_FALSE(Verifies(text_)) << "not sealed at all";
}

}  // namespace
}  // namespace coffer::audit
