// SPDX-License-Identifier: Apache-2.0
#include "audit/export/otlp.h"

#include <gtest/gtest.h>

#include "audit/receipt.h"
#include "tests/support/export_rules.h"
#include "tests/unit/audit/export/samples.h"

namespace coffer::audit {
namespace {

using test::AttributeOf;
using test::CheckOtlp;
using test::SpansOf;

constexpr const char* kTrace = "4bf92f3577b34da6a3ce929d0e0e4736";
constexpr const char* kSpan = "00f067aa0ba902b7";

test::Json ExportTraces(const Receipt& receipt, const TraceContext& trace = {}) {
  const Result<std::string> line = ExportLine(ExportFormat::kOtlp, FormatReceipt(receipt), trace);
  return line.ok() ? test::Json::parse(*line) : test::Json();
}

TEST(ExportOtlp, FollowsTheSchemaForEveryOutcome) {
  for (const char* const outcome : kOutcomes) {
    const test::Json request = ExportTraces(Sample(outcome));
    EXPECT_EQ(CheckOtlp(request), test::Strings()) << request.dump(1);
  }
  EXPECT_EQ(CheckOtlp(ExportTraces(Attack())), test::Strings());
}

// The control: the rules see a document that breaks one of them.
TEST(ExportOtlp, TheRulesCanFail) {
  const test::Json good = ExportTraces(Attack());
  const auto broken = [&](const auto& breaks) {
    test::Json request = good;
    breaks(request["resourceSpans"][0]["scopeSpans"][0]["spans"][0]);
    return !CheckOtlp(request).empty();
  };
  EXPECT_TRUE(broken([](auto& span) { span["traceId"] = "ABCDEF"; }));
  EXPECT_TRUE(broken([](auto& span) { span["traceId"] = std::string(32, '0'); }));
  EXPECT_TRUE(broken([](auto& span) { span["span_id"] = span["spanId"]; }));
  EXPECT_TRUE(broken([](auto& span) { span["kind"] = "SPAN_KIND_INTERNAL"; }));
  EXPECT_TRUE(broken([](auto& span) { span["kind"] = 6; }));
  EXPECT_TRUE(broken([](auto& span) { span["startTimeUnixNano"] = 17; }));
  EXPECT_TRUE(broken([](auto& span) { span["endTimeUnixNano"] = "1"; }));
  EXPECT_TRUE(broken([](auto& span) { span["status"]["code"] = 3; }));
  EXPECT_TRUE(broken([](auto& span) { span["attributes"][0]["value"] = "bare"; }));
  EXPECT_TRUE(broken([](auto& span) {
    span["attributes"].push_back({{"key", "n"}, {"value", {{"intValue", 5}}}});
  }));
  EXPECT_TRUE(broken([](auto& span) { span["attributes"].push_back(span["attributes"][0]); }));
  EXPECT_TRUE(broken([](auto& span) { span["events"][0]["timeUnixNano"] = "1"; }));
}

TEST(ExportOtlp, UsesTheGenAiConventions) {
  const test::Json span = SpansOf(ExportTraces(Sample()))[0];
  EXPECT_EQ(span["name"], "execute_tool python");
  EXPECT_EQ(span["kind"], 1);
  EXPECT_EQ(AttributeOf(span, "gen_ai.operation.name"), "execute_tool");
  EXPECT_EQ(AttributeOf(span, "gen_ai.tool.name"), "python");
  EXPECT_EQ(AttributeOf(span, "gen_ai.tool.call.id"), kCall);
  EXPECT_EQ(AttributeOf(span, "error.type"), "");
  EXPECT_EQ(span["status"]["code"], 0);
  EXPECT_EQ(AttributeOf(span, "coffer.outcome"), "success");
  EXPECT_EQ(AttributeOf(span, "coffer.tenant"), "acme");
  EXPECT_EQ(AttributeOf(span, "coffer.effect"), "reversible");
  EXPECT_EQ(AttributeOf(span, "coffer.isolation.level"), "container");
  EXPECT_EQ(AttributeOf(span, "coffer.manifest"), "sha256:aa");
  EXPECT_EQ(span["startTimeUnixNano"], "1763175325123000000");
  EXPECT_EQ(span["endTimeUnixNano"], "1763175326999000000");
  EXPECT_EQ(AttributeOf(span, "gen_ai.tool.call.arguments"), "");
}

TEST(ExportOtlp, AFailureHasATypeAndAStatus) {
  const test::Json span = SpansOf(ExportTraces(Sample("terminated")))[0];
  EXPECT_EQ(AttributeOf(span, "error.type"), "limit.wall");
  EXPECT_EQ(span["status"]["code"], 2);
  EXPECT_EQ(span["status"]["message"], "what went wrong");
  EXPECT_EQ(AttributeOf(span, "coffer.limit.wall.breached"), "true");
  Receipt plain = Sample("error");
  plain.error_class.clear();
  EXPECT_EQ(AttributeOf(SpansOf(ExportTraces(plain))[0], "error.type"), "error");
}

TEST(ExportOtlp, HangsWhereTheAgentsTraceIs) {
  const test::Json given = SpansOf(ExportTraces(Sample(), {kTrace, kSpan}))[0];
  EXPECT_EQ(given["traceId"], kTrace);
  EXPECT_EQ(given["parentSpanId"], kSpan);
  // The receipt's own does as well.
  Receipt own = Sample();
  own.identity.trace_id = kTrace;
  own.identity.parent_span = kSpan;
  EXPECT_EQ(SpansOf(ExportTraces(own))[0], given);
  // Nothing, or nonsense: an id of its own, the same each time.
  const test::Json alone = SpansOf(ExportTraces(Sample()))[0];
  EXPECT_FALSE(alone.contains("parentSpanId"));
  EXPECT_NE(alone["traceId"], kTrace);
  for (const char* const bad :
       {"4BF92F3577B34DA6A3CE929D0E0E4736", "00000000000000000000000000000000", "4bf9", "x\"y"}) {
    EXPECT_EQ(SpansOf(ExportTraces(Sample(), {bad, kSpan}))[0], alone) << bad;
  }
  Receipt other = Sample();
  other.identity.call_id = kParent;
  EXPECT_NE(SpansOf(ExportTraces(other))[0]["traceId"], alone["traceId"]);
}

TEST(ExportOtlp, ACallOfACallHangsBelowIt) {
  Receipt parent = Sample();
  parent.identity.call_id = kParent;
  Receipt child = Sample();
  child.identity.parent_id = kParent;
  const test::Json above = SpansOf(ExportTraces(parent, {kTrace, kSpan}))[0];
  const test::Json below = SpansOf(ExportTraces(child, {kTrace, kSpan}))[0];
  EXPECT_EQ(below["parentSpanId"], above["spanId"]);
  EXPECT_EQ(below["traceId"], above["traceId"]);
  // Without a trace each has its own, and a link says so.
  const test::Json linked = SpansOf(ExportTraces(child))[0];
  EXPECT_EQ(linked["links"][0]["traceId"], SpansOf(ExportTraces(parent))[0]["traceId"]);
  EXPECT_EQ(linked["links"][0]["spanId"], above["spanId"]);
}

TEST(ExportOtlp, StepsAreSpansInsideTheCall) {
  const std::vector<test::Json> spans = SpansOf(ExportTraces(Sample()));
  ASSERT_EQ(spans.size(), 4U);
  const char* const names[] = {"coffer.decide", "coffer.launch", "coffer.run"};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(spans[i + 1]["name"], names[i]);
    EXPECT_EQ(spans[i + 1]["parentSpanId"], spans[0]["spanId"]);
    EXPECT_EQ(spans[i + 1]["traceId"], spans[0]["traceId"]);
  }
  // One ends where the next begins, the first begins and the last ends with the call.
  EXPECT_EQ(spans[1]["startTimeUnixNano"], spans[0]["startTimeUnixNano"]);
  EXPECT_EQ(spans[1]["endTimeUnixNano"], spans[2]["startTimeUnixNano"]);
  EXPECT_EQ(spans[2]["endTimeUnixNano"], spans[3]["startTimeUnixNano"]);
  EXPECT_EQ(spans[3]["startTimeUnixNano"], "1763175325140000000");
  EXPECT_EQ(spans[3]["endTimeUnixNano"], spans[0]["endTimeUnixNano"]);
  EXPECT_EQ(spans[2]["startTimeUnixNano"], "1763175325131000000") << "9 ms before the command";
  ASSERT_EQ(spans[2]["events"].size(), 3U);
  EXPECT_EQ(spans[2]["events"][1]["name"], "mounts");
  EXPECT_EQ(spans[2]["events"][1]["timeUnixNano"], "1763175325133000000");
  // What never started has none of them.
  Receipt refused = Sample("denied");
  refused.started_at = Nanos(0);
  EXPECT_EQ(SpansOf(ExportTraces(refused)).size(), 1U);
  // A clock that was set back, or steps that are longer than the call, bend nothing.
  Receipt bent = Sample();
  bent.finished_at = bent.requested_at - std::chrono::seconds(5);
  bent.steps_us = {{"spawned", -100}, {"exec", 99'000'000}};
  EXPECT_EQ(CheckOtlp(ExportTraces(bent)), test::Strings());
}

TEST(ExportOtlp, DenialsAreEventsWithoutTargets) {
  const test::Json span = SpansOf(ExportTraces(Attack()))[0];
  ASSERT_EQ(span["events"].size(), 3U);
  EXPECT_EQ(span["events"][0]["name"], "coffer.denial");
  EXPECT_EQ(AttributeOf(span["events"][0], "coffer.denial.rule"), "seccomp.default");
  EXPECT_EQ(AttributeOf(span["events"][0], "coffer.denial.count"), "3");
  EXPECT_FALSE(test::Contains(span.dump(), "/etc/shadow"));
}

}  // namespace
}  // namespace coffer::audit
