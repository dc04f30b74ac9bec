// SPDX-License-Identifier: Apache-2.0
#include "policy/blast_radius.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/policy/manifest/manifest_text.h"

namespace coffer::policy {
namespace {

TEST(BlastRadius, AnEmptyEnvelopeCanDoNothing) {
  const BlastRadius radius = ComputeBlastRadius({}, {}, {}, Effect::kReadOnly);
  EXPECT_EQ(Sentence(radius),
            "cannot change files of the host, cannot reach the network, cannot send mail, cannot "
            "use a credential");
  EXPECT_FALSE(radius.dangerous);
}

TEST(BlastRadius, SaysWhatTheWallsAllow) {
  Envelope envelope;
  envelope.mounts = {{"/srv/x", "/data", Access::kWrite}, {"/srv/y", "/y", Access::kRead}};
  envelope.inputs = {"/home/a/b/c.csv"};
  envelope.limits.cpu = std::chrono::milliseconds(1500);
  NetworkRule rule;
  rule.host = "api.example.com";
  rule.paths = {"/**"};
  const BlastRadius radius = ComputeBlastRadius(
      envelope, {rule}, {{"billing", "invoices:read", {"api.example.com"}}}, Effect::kIrreversible);
  EXPECT_EQ(
      Sentence(radius),
      "can change anything under /srv/x and add 100MiB in 16384 files there, can read /srv/y and "
      "/home/a/b/c.csv, "
      "can reach api.example.com:443 GET, can act with billing (invoices:read) at api.example.com, "
      "cannot send mail; counts as irreversible");
  const Json json = ToJson(radius);
  EXPECT_EQ(json["changes"][0]["path"], "/srv/x");
  EXPECT_EQ(json["reaches"][0]["writes"], false);
  EXPECT_EQ(json["cpu_seconds"], 2);
  EXPECT_EQ(json["cannot"], Json::array({"send mail"}));
  EXPECT_EQ(json["effect"], "irreversible");
}

TEST(BlastRadius, AMethodThatWritesMayBeMail) {
  NetworkRule rule;
  rule.host = "*.example.com";
  rule.methods = {"GET", "POST"};
  rule.ports = {{443, 443}, {8000, 8080}};
  const std::string text = Sentence(ComputeBlastRadius({}, {rule}, {}, Effect::kReversible));
  EXPECT_EQ(text.find("mail"), std::string::npos) << text;
  EXPECT_NE(text.find("can reach *.example.com:443,8000-8080 GET/POST"), std::string::npos) << text;
}

TEST(BlastRadius, WhatIsNotSeenMayBeAnything) {
  NetworkRule rule;
  rule.host = "git.example.com";
  rule.ports = {{22, 22}};
  rule.tls = TlsMode::kNone;
  rule.methods.clear();
  const BlastRadius radius = ComputeBlastRadius({}, {rule}, {}, Effect::kReversible);
  EXPECT_NE(Sentence(radius).find("can reach git.example.com:22 any method"), std::string::npos);
  EXPECT_EQ(ToJson(radius)["reaches"][0]["writes"], true);
}

TEST(BlastRadius, DangerAndTheSessionShow) {
  Envelope envelope;
  envelope.mounts = {{"/etc", "/data", Access::kRead, true}};
  envelope.workspace = "/var/lib/state/7";
  const BlastRadius radius = ComputeBlastRadius(envelope, {}, {}, Effect::kReadOnly);
  EXPECT_TRUE(radius.dangerous);
  const std::string text = Sentence(radius);
  EXPECT_NE(text.find("can change anything under the session's workspace"), std::string::npos);
  EXPECT_EQ(text.find("/var/lib/state"), std::string::npos);
  NetworkRule any;
  any.any_host = true;
  any.dangerous = true;
  EXPECT_TRUE(ComputeBlastRadius({}, {any}, {}, Effect::kReadOnly).dangerous);
}

}  // namespace
}  // namespace coffer::policy
