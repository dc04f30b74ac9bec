// SPDX-License-Identifier: Apache-2.0
#include "audit/export/line.h"

#include <gtest/gtest.h>

#include <set>

#include "audit/receipt.h"
#include "base/json.h"
#include "tests/support/run.h"
#include "tests/unit/audit/export/samples.h"

namespace coffer::audit {
namespace {

constexpr ExportFormat kFormats[] = {ExportFormat::kJsonLines, ExportFormat::kOcsf,
                                     ExportFormat::kOtlp};

TEST(ExportLine, KnowsItsFormatsByName) {
  EXPECT_EQ(FindExportFormat("jsonl"), ExportFormat::kJsonLines);
  EXPECT_EQ(FindExportFormat("ocsf"), ExportFormat::kOcsf);
  EXPECT_EQ(FindExportFormat("otlp"), ExportFormat::kOtlp);
  EXPECT_FALSE(FindExportFormat("csv").has_value());
  EXPECT_FALSE(FindExportFormat("").has_value());
}

TEST(ExportLine, JsonLinesIsTheReceiptOnOneLine) {
  const std::string receipt = FormatReceipt(Sample());
  const Result<std::string> line = ExportLine(ExportFormat::kJsonLines, receipt);
  ASSERT_TRUE(line.ok());
  EXPECT_EQ(line->find('\n'), std::string::npos);
  EXPECT_EQ(test::Json::parse(*line), test::Json::parse(receipt));
  EXPECT_GT(receipt.size(), line->size()) << "the control: a receipt is printed for people";
}

TEST(ExportLine, EveryLineIsADocumentForEveryOutcomeAndFormat) {
  for (const char* const outcome : kOutcomes) {
    for (const ExportFormat format : kFormats) {
      const Result<std::string> lines = ExportLine(format, FormatReceipt(Sample(outcome)));
      ASSERT_TRUE(lines.ok()) << outcome;
      EXPECT_FALSE(lines->ends_with('\n'));
      for (const std::string& line : test::Lines(*lines)) {
        EXPECT_TRUE(test::Json::accept(line)) << line;
      }
      // The same again: ids are not made up on the way.
      EXPECT_EQ(*ExportLine(format, FormatReceipt(Sample(outcome))), *lines);
    }
  }
}

TEST(ExportLine, ArgumentsDoNotLeave) {
  const std::string receipt = FormatReceipt(Attack());
  EXPECT_TRUE(test::Contains(receipt, kSecretWord)) << "the control";
  for (const ExportFormat format : {ExportFormat::kOcsf, ExportFormat::kOtlp}) {
    EXPECT_FALSE(test::Contains(*ExportLine(format, receipt), kSecretWord))
        << static_cast<int>(format);
  }
}

TEST(ExportLine, WhatIsNoReceiptIsRefused) {
  test::Json receipt = test::Json::parse(FormatReceipt(Sample()));
  std::vector<std::string> bad = {"", "{", "[]", "null", "{}", "\"coffer.receipt/1\""};
  for (const char* const field :
       {"schema", "call_id", "tenant", "tool", "outcome", "requested_at"}) {
    test::Json without = receipt;
    without.erase(field);
    bad.push_back(without.dump());
    without[field] = 7;
    bad.push_back(without.dump());
  }
  test::Json foreign = receipt;
  foreign["schema"] = "somebody.else/1";
  bad.push_back(foreign.dump());
  test::Json no_time = receipt;
  no_time["requested_at"] = "yesterday";
  bad.push_back(no_time.dump());
  for (const std::string& text : bad) {
    for (const ExportFormat format : kFormats) {
      const Result<std::string> line = ExportLine(format, text);
      ASSERT_FALSE(line.ok()) << text;
      EXPECT_EQ(line.error().code, "audit.export");
    }
  }
  EXPECT_TRUE(ExportLine(ExportFormat::kOtlp, receipt.dump()).ok()) << "the control";
}

// Everything but what makes a receipt may be missing or of another type: an older or newer version, or a hostile one.
TEST(ExportLine, AnyOtherFieldMayBeMissingOrStrange) {
  const test::Json receipt = test::Json::parse(FormatReceipt(Attack()));
  const std::set<std::string> needed = {"schema", "call_id", "tenant",
                                        "tool",   "outcome", "requested_at"};
  for (const auto& [field, value] : receipt.items()) {
    if (needed.contains(field)) {
      continue;
    }
    std::vector<test::Json> variants(6, receipt);
    variants[0].erase(field);
    variants[1][field] = nullptr;
    variants[2][field] = "text";
    variants[3][field] = test::Json::array({1, "x", nullptr, test::Json::object()});
    variants[4][field] = {{"inner", test::Json::array({1, 2})}, {"level", 3}, {"class", {1}}};
    variants[5][field] = -1.5e300;
    for (const test::Json& variant : variants) {
      for (const ExportFormat format : kFormats) {
        EXPECT_TRUE(ExportLine(format, variant.dump()).ok()) << field << " " << variant.dump();
      }
    }
  }
}

}  // namespace
}  // namespace coffer::audit
