// SPDX-License-Identifier: Apache-2.0
#include "call/agent_words.h"

#include <gtest/gtest.h>

namespace coffer::call {
namespace {

TEST(AgentWords, PathsOfTheHostBecomeTheirLastPart) {
  EXPECT_EQ(HideHostPaths({}, "cannot open /srv/secret/tools/report: No such file"),
            "cannot open report: No such file");
  EXPECT_EQ(HideHostPaths({}, "/srv/a/b"), "b");
  EXPECT_EQ(HideHostPaths({}, "\"/srv/a/b\" (/srv/c/d), PATH=/srv/e:/srv/f/"),
            "\"b\" (d), PATH=e:f");
  EXPECT_EQ(HideHostPaths({}, "two\n/srv/a"), "two\na");
  EXPECT_EQ(HideHostPaths({}, "not \"/srv/my own/tools of ours/x\" but /y/z"), "not \"x\" but z");
  EXPECT_EQ(HideHostPaths({}, "it isn't /srv/it isn't"), "it isn't it isn't");
}

TEST(AgentWords, OtherWordsStay) {
  for (const char* text : {"", "/", "1/2 of text/plain", "read-only / write", "and/or, //",
                           "/workspace is full", "see https://docs.example/a/b"}) {
    EXPECT_EQ(HideHostPaths({}, text), std::string(text) == "and/or, //" ? "and/or, /" : text);
  }
}

RunRequest SomeRequest() {
  RunRequest request;
  request.envelope.workspace = "/srv/state of it/sessions/1";
  request.envelope.mounts = {{.host = "/srv/our invoices", .at = "/data"},
                             {.host = "/srv/our invoices/old", .at = "/old"},
                             {.host = "/srv/tree", .at = "/srv/tree"}};
  request.command = {"/srv/my tools/report", "--x", "/"};
  return request;
}

TEST(AgentWords, WhatARequestNamesHasItsPlaceInside) {
  const std::vector<HostWord> words = HostWordsOf(SomeRequest());
  EXPECT_EQ(HideHostPaths(words, "cannot open /srv/my tools/report"), "cannot open report");
  EXPECT_EQ(HideHostPaths(words, "look at /srv/state of it/sessions/1"), "look at /workspace");
  EXPECT_EQ(HideHostPaths(words, "/srv/our invoices is gone"), "/data is gone");
  EXPECT_EQ(HideHostPaths(words, "/srv/our invoices/old/x: gone"), "/old/x: gone");
  EXPECT_EQ(HideHostPaths(words, "\"/srv/our invoices/a b\""), "\"/data/a b\"");
  EXPECT_EQ(HideHostPaths(words, "/srv/tree/x is gone"), "tree/x is gone");
  EXPECT_EQ(HideHostPaths(words, "/data overlaps /old"), "/data overlaps /old");
}

// An agent chooses its arguments: none of them may cut a path of the host in two.
TEST(AgentWords, AnArgumentUncoversNoPath) {
  for (const char* argument :
       {"/s", "/srv", "/srv/", "/srv/ten", "/srv/tenants/acme", "//", "/o", "/own"}) {
    RunRequest request;
    request.command = {"/srv/my tools/report", argument};
    const std::vector<HostWord> words = HostWordsOf(request);
    EXPECT_EQ(HideHostPaths(words, "/srv/tenants/acme/own/libx.so was replaced"),
              "libx.so was replaced")
        << argument;
    EXPECT_EQ(HideHostPaths(words, "look at \"/srv/tenants/acme/own/\""), "look at \"own\"")
        << argument;
  }
}

TEST(AgentWords, ALongerNameIsAnotherPath) {
  const std::vector<HostWord> words = HostWordsOf(SomeRequest());
  EXPECT_EQ(HideHostPaths(words, "/srv/tree2"), "tree2");
  EXPECT_EQ(HideHostWords(words, "/srv/tree2, /home/srv/tree and /srv/tree."),
            "/srv/tree2, /home/srv/tree and tree.");
}

// Sentences about arguments name places that the agent knows.
TEST(AgentWords, OnlyWhatIsNamedIsHiddenWhereTheAgentsOwnWordsAre) {
  EXPECT_EQ(HideHostWords(HostWordsOf(SomeRequest()), "/notes/a is not in /srv/our invoices/old"),
            "/notes/a is not in /old");
}

TEST(AgentWords, AnAnswerKeepsTheWholeWordsForTheOperator) {
  ToolReply reply;
  reply.error_message = "cannot open /srv/our invoices: No such file";
  reply.hint = "make /srv/our invoices";
  reply.denials.push_back(
      {"policy", "call", "t", "policy.path", reply.error_message, reply.hint, 1});
  SayToAgent(HostWordsOf(SomeRequest()), Mentions::kAny, reply);
  EXPECT_EQ(reply.error_message, "cannot open /data: No such file");
  EXPECT_EQ(reply.hint, "make /data");
  EXPECT_EQ(reply.denials.front().reason, reply.error_message);
  EXPECT_EQ(reply.denials.front().fix, reply.hint);
  EXPECT_EQ(reply.operator_message, "cannot open /srv/our invoices: No such file");
  EXPECT_EQ(reply.operator_hint, "make /srv/our invoices");
  EXPECT_EQ(FormatReply(reply).find("/srv"), std::string::npos) << "what a repetition gets";
}

}  // namespace
}  // namespace coffer::call
