// SPDX-License-Identifier: Apache-2.0
#include "audit/export/ocsf.h"

#include <gtest/gtest.h>

#include <set>

#include "audit/receipt.h"
#include "tests/support/export_rules.h"
#include "tests/unit/audit/export/samples.h"

namespace coffer::audit {
namespace {

using test::CheckOcsf;

std::vector<test::Json> ExportEvents(const Receipt& receipt) {
  std::vector<test::Json> events;
  const Result<std::string> lines = ExportLine(ExportFormat::kOcsf, FormatReceipt(receipt));
  EXPECT_TRUE(lines.ok());
  for (const std::string& line : test::Lines(*lines)) {
    events.push_back(test::Json::parse(line));
  }
  return events;
}

TEST(ExportOcsf, HasWhatItsClassesDemandForEveryOutcome) {
  for (const char* const outcome : kOutcomes) {
    const std::vector<test::Json> events = ExportEvents(Sample(outcome));
    ASSERT_EQ(events.size(), 1U);
    EXPECT_EQ(CheckOcsf(events[0]), test::Strings()) << events[0].dump(1);
  }
  for (const test::Json& event : ExportEvents(Attack())) {
    EXPECT_EQ(CheckOcsf(event), test::Strings()) << event.dump(1);
  }
}

// The control: take any demanded field away, and the rules see it.
TEST(ExportOcsf, TheRulesCanFail) {
  for (const test::Json& event : ExportEvents(Attack())) {
    for (const char* const field : {"activity_id", "category_uid", "class_uid", "severity_id",
                                    "time", "type_uid", "metadata", "action_id"}) {
      test::Json without = event;
      without.erase(field);
      EXPECT_NE(CheckOcsf(without), test::Strings()) << field;
    }
    test::Json wrong = event;
    wrong["type_uid"] = 600301;
    EXPECT_NE(CheckOcsf(wrong), test::Strings());
    wrong = event;
    wrong["time"] = 1763175326;
    EXPECT_NE(CheckOcsf(wrong), test::Strings()) << "seconds";
  }
  for (const char* const field : {"actor", "api", "src_endpoint"}) {
    test::Json call = ExportEvents(Sample())[0];
    call.erase(field);
    EXPECT_NE(CheckOcsf(call), test::Strings()) << field;
  }
}

TEST(ExportOcsf, SaysWhatWasDoneAboutIt) {
  struct Case {
    const char* outcome;
    int action, disposition, status, severity;
  };
  for (const Case& one :
       {Case{"success", 1, 1, 1, 1}, Case{"error", 1, 27, 2, 2}, Case{"denied", 2, 2, 2, 3},
        Case{"terminated", 2, 24, 2, 3}, Case{"gated", 3, 23, 0, 1}, Case{"unknown", 0, 0, 0, 3}}) {
    const test::Json event = ExportEvents(Sample(one.outcome))[0];
    EXPECT_EQ(event["class_uid"], 6003);
    EXPECT_EQ(event["action_id"], one.action) << one.outcome;
    EXPECT_EQ(event["disposition_id"], one.disposition) << one.outcome;
    EXPECT_EQ(event["status_id"], one.status) << one.outcome;
    EXPECT_EQ(event["severity_id"], one.severity) << one.outcome;
    EXPECT_EQ(event["unmapped"]["coffer.outcome"], one.outcome);
  }
}

TEST(ExportOcsf, SaysWhoAndWhatAndWhen) {
  const test::Json event = ExportEvents(Sample())[0];
  EXPECT_EQ(event["activity_id"], 99);
  EXPECT_EQ(event["type_uid"], 600399);
  EXPECT_EQ(event["time"], 1763175326999);
  EXPECT_EQ(event["start_time"], 1763175325123);
  EXPECT_EQ(event["duration"], 1876);
  EXPECT_EQ(event["actor"]["user"]["uid"], "uid:1000");
  EXPECT_EQ(event["actor"]["app_name"], "bot");
  EXPECT_EQ(event["api"]["operation"], "python");
  EXPECT_EQ(event["api"]["request"]["uid"], kCall);
  EXPECT_EQ(event["metadata"]["tenant_uid"], "acme");
  EXPECT_EQ(event["metadata"]["profiles"], test::Json::array({"security_control"}));
  EXPECT_EQ(event["unmapped"]["coffer.manifest"], "sha256:aa");
  Receipt reads = Sample();
  reads.effect = "read-only";
  EXPECT_EQ(ExportEvents(reads)[0]["type_uid"], 600302);
}

TEST(ExportOcsf, DenialsOfIsolationAndIncidentsAreFindings) {
  const std::vector<test::Json> events = ExportEvents(Attack());
  ASSERT_EQ(events.size(), 4U) << "the call, an incident, two denials; not the denial of policy";
  std::set<std::string> uids;
  for (size_t i = 1; i < events.size(); ++i) {
    EXPECT_EQ(events[i]["class_uid"], 2004);
    EXPECT_EQ(events[i]["type_uid"], 200401);
    EXPECT_EQ(events[i]["unmapped"]["coffer.call"], kCall);
    uids.insert(events[i]["finding_info"]["uid"].get<std::string>());
  }
  EXPECT_EQ(uids.size(), 3U);
  EXPECT_EQ(events[1]["severity_id"], 4);
  EXPECT_EQ(events[1]["finding_info"]["title"], "incident: canary: touched");
  EXPECT_EQ(events[2]["finding_info"]["analytic"]["uid"], "seccomp.default");
  EXPECT_EQ(events[2]["unmapped"]["coffer.denial.count"], 3);
  // However many there are, there is an end.
  Receipt many = Attack();
  many.denials.assign(1000, many.denials[0]);
  EXPECT_EQ(ExportEvents(many).size(), 65U);
}

}  // namespace
}  // namespace coffer::audit
