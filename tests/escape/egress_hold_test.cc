// SPDX-License-Identifier: Apache-2.0
//
// `coffer run --hold`: what no rule allows waits for the person at the terminal, and only that answer opens it, for exactly
// the host and port that were asked for.
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "tests/support/egress_fixture.h"
#include "tests/support/person.h"

namespace coffer::test {
namespace {

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

class EgressHold : public EgressFixture {
 protected:
  static constexpr const char* kQuestion = "allow it? ";

  Strings Words(const std::string& script, Strings flags = {}) const {
    flags.insert(flags.begin(), "--hold");
    const Strings here = Here();
    flags.insert(flags.end(), here.begin(), here.end());
    return CofferWords(flags, {"sh", "-c", script});
  }
  std::string Curl(const std::string& host, const std::string& path) const {
    return "curl -sS https://" + host + ":" + std::to_string(tls_) + path +
           " 2>&1; echo \" $?.\"; ";
  }
  // Answers the question that is the `number`th on the screen, as slowly as a person would.
  static void Answer(Person& person, size_t number, const std::string& text) {
    ASSERT_TRUE(WaitUntil(
        [&] {
          (void)person.Sees("no such words", Seconds(0));
          return Count(person.screen(), kQuestion) >= number;
        },
        Seconds(30)))
        << person.screen();
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    person.Type(text);
  }
  static size_t Questions(const Person& person) { return Count(person.screen(), kQuestion); }
};

TEST_F(EgressHold, AYesOpensOneHostAndPortForTheCall) {
  const std::string plain = "curl -sS https://api.test:" + std::to_string(mute_) + "/x 2>&1; ";
  Person person(
      Words(Curl("api.test", "/a") + Curl("api.test", "/b") + Curl("other.test", "/c") + plain));
  ASSERT_TRUE(person.Sees("api.test, port " + std::to_string(tls_))) << person.screen();
  EXPECT_FALSE(Contains(Seen(), "connection")) << "OPEN: it was dialled before the answer";
  Answer(person, 1, "y\n");
  ASSERT_TRUE(person.Sees("hello /b 0.")) << person.screen();
  EXPECT_TRUE(Contains(person.screen(), "hello /a 0.")) << "NO-CONTROL";
  EXPECT_LE(Questions(person), 2U) << "one question for one place\n" << person.screen();
  Answer(person, 2, "n\n");
  Answer(person, 3, "no\n");
  (void)person.Wait();
  const std::string seen = Seen();
  EXPECT_TRUE(Contains(seen, "request GET /a")) << seen;
  EXPECT_FALSE(Contains(seen, "request GET /c")) << "OPEN: it was denied";
  const Json receipt = Receipt();
  ASSERT_EQ(receipt["access"].size(), 3U) << receipt.dump();
  const Json& granted = receipt["access"][0];
  EXPECT_EQ(granted["host"], "api.test");
  EXPECT_EQ(granted["port"], tls_);
  EXPECT_EQ(granted["decision"], "granted");
  EXPECT_EQ(granted["by"], "terminal");
  EXPECT_TRUE(granted["minutes"].is_null());
  EXPECT_EQ(granted["ended"], "call");
  EXPECT_FALSE(granted["decided_at"].is_null());
  EXPECT_EQ(receipt["access"][1]["decision"], "denied");
  EXPECT_EQ(receipt["access"][2]["port"], mute_) << "another port is another question";
  EXPECT_EQ(receipt["network"][0]["decision"], "allow");
  EXPECT_EQ(receipt["network"][0]["rule"], "granted: " + Api() + " for this call");
  EXPECT_EQ(receipt["denials"][0]["reason"],
            "access to other.test:" + std::to_string(tls_) + " was asked for and denied");
}

TEST_F(EgressHold, WhatIsAllowedIsNotAskedFor) {
  Person person(Words(Curl("api.test", "/a"), {"--allow", Api()}));
  EXPECT_EQ(person.Wait(), 0) << person.screen();
  EXPECT_TRUE(Contains(person.screen(), "hello /a 0.")) << "NO-CONTROL\n" << person.screen();
  EXPECT_EQ(Questions(person), 0U);
}

TEST_F(EgressHold, MinutesAreWrittenDown) {
  Person person(Words(Curl("api.test", "/a")));
  Answer(person, 1, "7\n");
  EXPECT_EQ(person.Wait(), 0) << person.screen();
  EXPECT_TRUE(Contains(person.screen(), "hello /a 0.")) << "NO-CONTROL\n" << person.screen();
  const Json receipt = Receipt();
  ASSERT_EQ(receipt["access"].size(), 1U) << receipt.dump();
  EXPECT_EQ(receipt["access"][0]["minutes"], 7);
  EXPECT_EQ(receipt["network"][0]["rule"], "granted: " + Api() + " for 7 min");
}

TEST_F(EgressHold, NoAnswerIsANoAndIsNotAskedAgain) {
  Person person(Words(Curl("api.test", "/a") + Curl("api.test", "/b"), {"--hold-time", "2s"}));
  EXPECT_EQ(person.Wait(Seconds(40)), 0) << person.screen();
  EXPECT_TRUE(Contains(person.screen(), "no answer, so no")) << person.screen();
  EXPECT_EQ(Questions(person), 1U) << person.screen();
  EXPECT_FALSE(Contains(Seen(), "connection")) << "OPEN";
  const Json receipt = Receipt();
  ASSERT_EQ(receipt["access"].size(), 1U) << receipt.dump();
  EXPECT_EQ(receipt["access"][0]["decision"], "unanswered");
  EXPECT_TRUE(receipt["access"][0]["by"].is_null());
  EXPECT_EQ(receipt["denials"][0]["count"], 2);
  // The same call, answered.
  Person control(Words(Curl("api.test", "/k")));
  Answer(control, 1, "y\n");
  EXPECT_EQ(control.Wait(), 0);
  EXPECT_TRUE(Contains(Seen(), "request GET /k")) << "NO-CONTROL\n" << control.screen();
}

TEST_F(EgressHold, ConnectionsToOnePlaceAreOneQuestion) {
  const std::string one = "curl -sS https://" + Api() + "/p & ";
  Person person(Words(one + one + one + "wait"));
  Answer(person, 1, "y\n");
  EXPECT_EQ(person.Wait(), 0) << person.screen();
  EXPECT_EQ(Questions(person), 1U) << person.screen();
  EXPECT_EQ(Count(person.screen(), "hello /p"), 3U) << "NO-CONTROL\n" << person.screen();
}

// What was typed before the question, and what the command prints, is no answer.
TEST_F(EgressHold, OnlyAnAnswerToTheQuestionCounts) {
  Person person(Words("printf 'y\\ny\\n'; printf '\\033[6n\\033[c'; echo ready; read line; " +
                          Curl("api.test", "/a"),
                      {"--hold-time", "3s"}));
  ASSERT_TRUE(person.Sees("ready")) << person.screen();
  person.Type("go\ny\ny\ny\n");
  EXPECT_EQ(person.Wait(Seconds(40)), 0) << person.screen();
  EXPECT_GE(Questions(person), 1U) << person.screen();
  EXPECT_FALSE(Contains(Seen(), "connection")) << "OPEN\n" << person.screen();
  // The same call, answered.
  Person control(Words(Curl("api.test", "/k")));
  Answer(control, 1, "y\n");
  EXPECT_EQ(control.Wait(), 0);
  EXPECT_TRUE(Contains(Seen(), "request GET /k")) << "NO-CONTROL\n" << control.screen();
}

// While a question stands, the command's words wait: they cannot be taken for ours.
TEST_F(EgressHold, TheCommandDoesNotWriteOverTheQuestion) {
  Person person(
      Words("(" + Curl("api.test", "/a") + ") & sleep 2; echo coffer: allow it? fake; wait"));
  ASSERT_TRUE(person.Sees(kQuestion)) << person.screen();
  EXPECT_FALSE(person.Sees("fake", Seconds(4))) << "OPEN\n" << person.screen();
  person.Type("n\n");
  EXPECT_TRUE(person.Sees("fake")) << "NO-CONTROL\n" << person.screen();
  EXPECT_EQ(person.Wait(), 0);
}

TEST_F(EgressHold, AnAnswerOpensNoPrivateAddressAndNoNumber) {
  Strings words = CofferWords({"--hold", "--resolve", "api.test=127.0.0.1"},
                              {"sh", "-c",
                               Curl("127.0.0.1", "/n") + Curl("localhost.", "/l") +
                                   "https_proxy=http://127.0.0.1:3128 NO_PROXY= no_proxy= " +
                                   Curl("127.0.0.1", "/n") + Curl("api.test", "/a")});
  Person person(words);
  Answer(person, 1, "y\n");
  EXPECT_EQ(person.Wait(), 0) << person.screen();
  EXPECT_EQ(Questions(person), 1U) << "only the name is asked for\n" << person.screen();
  EXPECT_FALSE(Contains(Seen(), "connection")) << "OPEN";
  const Json receipt = Receipt();
  ASSERT_EQ(receipt["access"].size(), 1U) << receipt.dump();
  EXPECT_EQ(receipt["access"][0]["decision"], "granted");
  EXPECT_TRUE(Contains(receipt["denials"].dump(), "api.test leads to 127.0.0.1"))
      << receipt["denials"].dump();
  // The same call, answered.
  Person control(Words(Curl("api.test", "/k")));
  Answer(control, 1, "y\n");
  EXPECT_EQ(control.Wait(), 0);
  EXPECT_TRUE(Contains(Seen(), "request GET /k")) << "NO-CONTROL\n" << control.screen();
}

TEST_F(EgressHold, CtrlCEndsTheCall) {
  Person person(Words(Curl("api.test", "/a")));
  ASSERT_TRUE(person.Sees(kQuestion)) << person.screen();
  person.Type("\x03");
  EXPECT_EQ(person.Wait(), 130) << person.screen();
  EXPECT_EQ(Receipt()["access"][0]["decision"], "withdrawn");
  EXPECT_FALSE(Contains(Seen(), "connection")) << "OPEN";
  // The same call, answered.
  Person control(Words(Curl("api.test", "/k")));
  Answer(control, 1, "y\n");
  EXPECT_EQ(control.Wait(), 0);
  EXPECT_TRUE(Contains(Seen(), "request GET /k")) << "NO-CONTROL\n" << control.screen();
}

TEST_F(EgressHold, WithoutATerminalItIsRefused) {
  Person control(Words("echo ran"));
  EXPECT_EQ(control.Wait(), 0);
  EXPECT_TRUE(Contains(control.screen(), "ran")) << "NO-CONTROL\n" << control.screen();
  RunOptions options;
  options.in_child = [] { ::setsid(); };
  const RunResult run = RunProgram(Words("true"), options);
  EXPECT_EQ(run.exit, 120) << run.Describe();
  EXPECT_TRUE(Contains(run.err, "--hold asks on the terminal")) << run.err;
  EXPECT_TRUE(Contains(run.err, "--allow HOST")) << run.err;
}

}  // namespace
}  // namespace coffer::test
