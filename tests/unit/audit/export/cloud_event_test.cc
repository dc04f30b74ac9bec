// SPDX-License-Identifier: Apache-2.0
#include "audit/export/cloud_event.h"

#include <gtest/gtest.h>

#include "audit/receipt.h"
#include "base/json.h"
#include "tests/support/export_rules.h"
#include "tests/unit/audit/export/samples.h"

namespace coffer::audit {
namespace {

using test::CheckCloudEvent;

test::Json Event(const Receipt& receipt) {
  const Result<std::string> event = CallCloudEvent(FormatReceipt(receipt));
  return event.ok() ? test::Json::parse(*event) : test::Json();
}

TEST(ExportCloudEvent, FollowsTheSpecificationForEveryOutcome) {
  for (const char* const outcome : kOutcomes) {
    const test::Json event = Event(Sample(outcome));
    EXPECT_EQ(CheckCloudEvent(event), test::Strings()) << event.dump(1);
    EXPECT_EQ(event["type"], outcome == std::string("denied") ? "io.cofferdam.call.denied"
                                                              : "io.cofferdam.call.finished");
    EXPECT_EQ(event["subject"], kCall);
    EXPECT_EQ(event["id"], CallEventId(kCall));
    EXPECT_EQ(event["source"], "/cofferdam/tenants/acme");
    EXPECT_EQ(event["time"], "2025-11-15T02:55:26.999Z");
    EXPECT_EQ(event["data"]["outcome"], outcome);
    EXPECT_FALSE(test::Contains(event.dump(), kSecretWord));
  }
}

TEST(ExportCloudEvent, TheRulesCanFail) {
  for (const char* const field : {"id", "source", "type", "specversion"}) {
    test::Json event = Event(Sample());
    event.erase(field);
    EXPECT_NE(CheckCloudEvent(event), test::Strings()) << field;
  }
  test::Json event = Event(Sample());
  event["Call-Id"] = "x";
  EXPECT_NE(CheckCloudEvent(event), test::Strings());
}

TEST(ExportCloudEvent, IsNeverLargerThanPromised) {
  Receipt huge = Attack();
  huge.denials.assign(40, huge.denials[0]);
  huge.denials[0].reason = std::string(100'000, 'x');
  const Result<std::string> event = CallCloudEvent(FormatReceipt(huge));
  ASSERT_TRUE(event.ok());
  EXPECT_LE(event->size(), kMaxCloudEvent);
  const test::Json parsed = test::Json::parse(*event);
  EXPECT_EQ(CheckCloudEvent(parsed), test::Strings());
  EXPECT_EQ(parsed["data"]["truncated"], true);
  EXPECT_EQ(parsed["data"]["call_id"], kCall);
  huge.denials[0].reason = "short";
  EXPECT_EQ(Event(huge)["data"]["denials"].size(), 32U) << "the control: the first of them";
}

TEST(ExportCloudEvent, AnEventOfTheDaemonHasNoTenant) {
  CloudEvent event;
  event.id = "1";
  event.type = "log.recovered";
  event.time = std::chrono::seconds(1763175325);
  Json data = Json::object();
  data["bytes"] = 17;
  const test::Json made = test::Json::parse(FormatCloudEvent(event, data));
  EXPECT_EQ(CheckCloudEvent(made), test::Strings());
  EXPECT_EQ(made["source"], "/cofferdam");
  EXPECT_FALSE(made.contains("subject"));
  EXPECT_EQ(made["data"]["bytes"], 17);
}

}  // namespace
}  // namespace coffer::audit
