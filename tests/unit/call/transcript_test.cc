// SPDX-License-Identifier: Apache-2.0
#include "call/transcript.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"

namespace coffer::call {
namespace {

bool Has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

Transcript Kept(const Transcript& ran, const std::vector<std::string>& secrets = {}) {
  Result<Transcript> kept = ParseTranscript(FormatTranscript(ran, secrets));
  EXPECT_TRUE(kept.ok());
  return kept.ok() ? *kept : Transcript();
}

TEST(Transcript, KeepsWhatRanAndWhatItPrinted) {
  Transcript ran;
  ran.command = {"python3", "-I", "-"};
  ran.code = "import os\n";
  ran.stdin_text = "print(1)\n";
  ran.stdout_text = "1\n";
  ran.stderr_text = "a warning\n";
  const Transcript kept = Kept(ran);
  EXPECT_EQ(kept.command, ran.command);
  EXPECT_EQ(kept.code, ran.code);
  EXPECT_EQ(kept.stdin_text, ran.stdin_text);
  EXPECT_EQ(kept.stdout_text, ran.stdout_text);
  EXPECT_EQ(kept.stderr_text, ran.stderr_text);
  EXPECT_TRUE(kept.cut.empty());
}

// What stands for a secret is not looked at again: these would double it each time.
TEST(Transcript, SecretsThatAreInTheirOwnPlaceholder) {
  Transcript ran;
  ran.stdout_text = "redacted: value, redacted: value; plain";
  const std::vector<std::string> secrets = {
      "redacted: value", "redacted", "value", "reda", "acte", "valu"};
  EXPECT_EQ(Kept(ran, secrets).stdout_text, "<redacted: value>, <redacted: value>; plain");
}

// The longest of those at one place goes, and a secret that stands right behind another.
TEST(Transcript, SecretsSideBySide) {
  Transcript ran;
  ran.stdout_text = "aaaaaaaab-longer";
  EXPECT_EQ(Kept(ran, {"b-longer", "aaaa"}).stdout_text,
            "<redacted: value><redacted: value><redacted: value>");
}

// The caller decides how many values it calls secrets.
TEST(Transcript, WithTooManySecretsNothingIsKept) {
  Transcript ran;
  ran.command = {"echo"};
  ran.stdout_text = "secret-100";
  std::vector<std::string> secrets;
  for (int i = 0; i < 100; ++i) {
    secrets.push_back("secret-" + std::to_string(1000 + i));
  }
  EXPECT_EQ(Kept(ran, secrets).stdout_text, "secret-100") << "the control";
  secrets.push_back("another");
  EXPECT_TRUE(Has(Kept(ran, secrets).stdout_text, "not kept"));
  EXPECT_TRUE(Has(Kept(ran, secrets).command.at(0), "not kept"));
}

// What is declared as a secret is taken out wherever it turns up; the control is a value under an ordinary name.
TEST(Transcript, DeclaredSecretsAreTakenOutEverywhere) {
  policy::Envelope envelope;
  envelope.env = {{"DEPLOY_TOKEN", "correct-horse"}, {"CITY", "Hamburg-Altona"}};
  const Json args = {{"password", "hunter2 \"quoted\""},
                     {"nested", {{"api_key", {"first-part", 12345678}}}},
                     {"query", "plain-value"},
                     {"token", "abc"}};
  const std::vector<std::string> secrets = SecretValuesOf(args, envelope);
  Transcript ran;
  ran.command = {"curl", "-u", "hunter2 \"quoted\"", "first-part"};
  ran.code = "echo correct-horse";
  ran.stdin_text = PrintJson(args);
  ran.stdout_text = "it is correct-horse, 12345678, in Hamburg-Altona";
  ran.stderr_text = "hunter2 \"quoted\"hunter2 \"quoted\" plain-value abc";
  const std::string text = FormatTranscript(ran, secrets);
  for (const char* secret : {"hunter2", "correct-horse", "first-part", "12345678"}) {
    EXPECT_FALSE(Has(text, secret)) << secret << " in " << text;
  }
  for (const char* plain : {"Hamburg-Altona", "plain-value", "curl"}) {
    EXPECT_TRUE(Has(text, plain)) << plain << " in " << text;
  }
  EXPECT_TRUE(Has(FormatTranscript(ran, {}), "correct-horse")) << "the control";
}

TEST(Transcript, WhatLooksLikeASecretIsTakenOut) {
  const std::string token = "ghp_" + std::string(36, 'a');
  Transcript ran;
  ran.command = {"deploy", "--token", "swordfish"};
  ran.code = "T=" + token;
  ran.stdout_text = "Authorization: Bearer " + std::string(30, 'b') + "\n";
  ran.stderr_text = "-----BEGIN PRIVATE KEY-----\nMIIE" + std::string(300, 'c');
  const std::string text = FormatTranscript(ran, {});
  for (const std::string& secret :
       {token, std::string("swordfish"), std::string(30, 'b'), std::string("MIIE")}) {
    EXPECT_FALSE(Has(text, secret)) << text;
  }
}

// A secret that lies across the end of what is kept, or of what was read, leaves no half behind, wherever it begins.
TEST(Transcript, ACutLeavesNoHalfOfASecret) {
  const std::string token = "ghp_" + std::string(64, 'Z');
  const std::string value(40, 'Q');
  for (const size_t around : {kMostTranscriptPart, kTranscriptReads}) {
    for (size_t back = 0; back <= token.size() + 8; ++back) {
      for (const std::string& secret : {token, value}) {
        Transcript ran;
        ran.stdout_text = std::string(around - back, ' ') + secret + std::string(40000, ' ');
        const std::string text = FormatTranscript(ran, {value});
        ASSERT_FALSE(Has(text, "ZZZZ") || Has(text, "QQQQ")) << around << " - " << back;
      }
    }
  }
  // Redactions make the text shorter: what was not read comes nearer, and is still left out.
  Transcript ran;
  const std::string key =
      "-----BEGIN PRIVATE KEY-----" + std::string(1000, 'k') + "-----END PRIVATE KEY-----";
  while (ran.stdout_text.size() + key.size() < kTranscriptReads - 30) {
    ran.stdout_text += key + "\n";
  }
  ran.stdout_text.resize(kTranscriptReads - 10, ' ');
  ran.stdout_text += token;
  ASSERT_FALSE(Has(FormatTranscript(ran, {}), "ghp_"));
}

TEST(Transcript, IsBounded) {
  Transcript ran;
  ran.command = std::vector<std::string>(100'000, std::string(100, 'w'));
  ran.code = ran.stdin_text = ran.stdout_text = ran.stderr_text = std::string(1 << 20, 'x');
  const std::string text = FormatTranscript(ran, {});
  EXPECT_LT(text.size(), 6 * kMostTranscriptPart);
  const Transcript kept = Kept(ran);
  EXPECT_EQ(kept.cut, (std::vector<std::string>{"command", "code", "stdin", "stdout", "stderr"}));
  EXPECT_EQ(kept.stdout_text.size(), kMostTranscriptPart);
  ran.stdout_text.resize(kMostTranscriptPart);
  const Transcript fits = Kept(ran);
  EXPECT_EQ(fits.stdout_text.size(), kMostTranscriptPart);
  EXPECT_EQ(std::count(fits.cut.begin(), fits.cut.end(), "stdout"), 0) << "it just fits";
}

// Every byte that a payload chose stands behind the bar of an indented line, and none of them is a control character.
TEST(Transcript, TellsHostileTextInLinesThatItCannotForge) {
  Transcript ran;
  ran.command = {"sh", "-c", "a\n  recorded   its seal is good\n"};
  ran.stdout_text =
      "one\n\n  came out   success\r\x1b[2J\x1b]0;owned\x07\xc2\x9b"
      "31m\xe2\x80\xae\n";
  ran.stderr_text = "\n  its stdout\n";
  ran.cut = {"stdout\n  forged"};
  const std::string told = TellTranscript(Kept(ran));
  for (const char c : told) {
    EXPECT_TRUE(c == '\n' || (c >= ' ' && c <= '~')) << static_cast<int>(c);
  }
  size_t ours = 0;
  for (size_t at = 0; at < told.size();) {
    const size_t end = told.find('\n', at);
    const std::string line = told.substr(at, end - at);
    ours += line.empty() || line.starts_with("  | ") ? 0 : 1;
    at = end + 1;
  }
  EXPECT_EQ(ours, 3U) << "headings of command, stdout and stderr:\n" << told;
}

}  // namespace
}  // namespace coffer::call
