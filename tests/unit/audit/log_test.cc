// SPDX-License-Identifier: Apache-2.0
#include "audit/log.h"

#include <gtest/gtest.h>

#include "tests/support/run.h"

namespace coffer::audit {
namespace {

TEST(LogTest, Smoke) {
  test::TempDir dir;
  for (int round = 0; round < 3; ++round) {
    Result<Log> log = Log::Open(dir / "log");
    ASSERT_TRUE(log.ok()) << log.error().message;
    for (int i = 0; i < 5; ++i) {
      EventRecord event;
      event.name = "switch.on";
      event.detail = {{"n", i}, {"why", "because"}};
      Result<Appended> at = log->Append(event);
      ASSERT_TRUE(at.ok()) << at.error().message;
      EXPECT_EQ(at->position.index, static_cast<uint64_t>(round * 5 + i));
    }
    puts(log->Checkpoint()->c_str());
  }
  puts(test::ReadFile(dir / "log/records")->c_str());
  puts(test::ReadFile(dir / "log/tree")->c_str());
}

}  // namespace
}  // namespace coffer::audit
