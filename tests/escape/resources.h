// SPDX-License-Identifier: Apache-2.0
//
// What the tests of limits ask of a call's receipt.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>

#include "tests/support/host.h"

namespace coffer::test {

class ResourceEscape : public LevelTest {
 protected:
  // "wrote 1234" -> 1234
  static long Figure(const std::string& out, const std::string& word) {
    const size_t at = out.find(word + " ");
    return at == std::string::npos ? -1 : atol(out.c_str() + at + word.size() + 1);
  }
  // The probe, copied into a boundary that shows no directory of the host.
  static RunResult RunCopiedProbe(Strings flags, const std::string& verb) {
    flags.insert(flags.end(), {"--runtime", "base", "--in", ProbePath()});
    const std::string script = "cp /in/probe p && chmod 755 p && exec ./p " + verb;
    return RunCoffer(flags, {"sh", "-c", script});
  }
  static bool Breached(const RunResult& result, const std::string& cap) {
    return result.receipt.is_object() && result.receipt["limits"].contains(cap) &&
           result.receipt["limits"][cap].value("breached", false);
  }
  static bool IsSampled(const RunResult& result) {
    return result.receipt.is_object() &&
           Contains(result.receipt["isolation"]["missing"].dump(), "cgroup-memory");
  }
  static Json Memory(const RunResult& result) {
    return result.receipt.is_object() ? result.receipt["limits"]["memory"] : Json::object();
  }
  // What no cgroup counts. It is never called enforced, whether a look saw any or not.
  static uint64_t UncountedOf(const RunResult& result) {
    const Json entry = result.receipt["limits"].value("uncounted_memory", Json());
    if (entry.is_null()) {
      return 0;
    }
    EXPECT_EQ(entry["enforced"], false) << result.Describe();
    EXPECT_EQ(entry["cap"], Memory(result)["cap"]) << result.Describe();
    return entry["used"].get<uint64_t>();
  }
  static void ExpectEnded(const RunResult& result, const std::string& error_class) {
    EXPECT_EQ(result.exit, 122) << result.Describe();
    EXPECT_EQ(result.ErrorClass(), error_class) << result.Describe();
    EXPECT_TRUE(Breached(result, error_class.substr(6))) << result.Describe();
    EXPECT_FALSE(result.timed_out) << result.Describe();
  }
};

}  // namespace coffer::test
