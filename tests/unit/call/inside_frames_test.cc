// SPDX-License-Identifier: Apache-2.0
#include "call/inside_frames.h"

#include <gtest/gtest.h>

#include "call/outer_call.h"

namespace coffer::call {
namespace {

InsideFrame CallFrame() {
  InsideFrame frame;
  frame.kind = InsideFrame::Kind::kCall;
  frame.number = 7;
  frame.tool = "greet";
  frame.key = std::string(kMostInsideText, 'k');
  frame.traceparent = "00-aa-bb-01";
  frame.body = R"({"word": "you"})";
  return frame;
}

TEST(InsideFrames, ComeAsTheyWereSentInPiecesOfAnySize) {
  const std::string bytes = EncodeInsideFrame(CallFrame()) + EncodeInsideFrame(CallFrame());
  for (const size_t piece : {size_t{1}, size_t{7}, size_t{240}, bytes.size()}) {
    InsideFrameReader reader(InsidePeer::kRelay);
    int found = 0;
    for (size_t at = 0; at < bytes.size(); at += piece) {
      reader.Add(std::string_view(bytes).substr(at, piece));
      for (;;) {
        const Result<std::optional<InsideFrame>> next = reader.Next();
        ASSERT_TRUE(next.ok());
        if (!*next) {
          break;
        }
        ++found;
        EXPECT_EQ((*next)->number, 7U);
        EXPECT_EQ((*next)->tool, "greet");
        EXPECT_EQ((*next)->key, CallFrame().key);
        EXPECT_EQ((*next)->traceparent, "00-aa-bb-01");
        EXPECT_EQ((*next)->body, R"({"word": "you"})");
      }
    }
    EXPECT_EQ(found, 2);
  }
}

TEST(InsideFrames, WhatAPeerMayNotSendEndsTheConversation) {
  const auto refused = [](const std::string& bytes, InsidePeer peer = InsidePeer::kRelay) {
    InsideFrameReader reader(peer);
    reader.Add(bytes);
    return !reader.Next().ok();
  };
  const std::string good = EncodeInsideFrame(CallFrame());
  EXPECT_FALSE(refused(good)) << "the control";
  EXPECT_TRUE(refused(good, InsidePeer::kGateway));
  for (const auto kind : {InsideFrame::Kind::kTools, InsideFrame::Kind::kReply,
                          InsideFrame::Kind::kRefusal, static_cast<InsideFrame::Kind>(9)}) {
    InsideFrame frame = CallFrame();
    frame.kind = kind;
    EXPECT_TRUE(refused(EncodeInsideFrame(frame))) << static_cast<int>(kind);
  }
  InsideFrame cancel = CallFrame();
  cancel.kind = InsideFrame::Kind::kCancel;
  EXPECT_TRUE(refused(EncodeInsideFrame(cancel))) << "a cancellation has no body";
  cancel.body.clear();
  EXPECT_FALSE(refused(EncodeInsideFrame(cancel)));
  const auto with = [&](size_t at, char byte) {
    std::string bytes = good;
    bytes[at] = byte;
    return refused(bytes);
  };
  EXPECT_TRUE(with(0, 'x')) << "the magic";
  EXPECT_TRUE(with(20, '\x7f')) << "a length beyond all bounds, before its bytes have come";
  EXPECT_TRUE(with(24 + 71, 'x')) << "a text that does not end, or goes on behind its end";
  EXPECT_TRUE(with(24 + 10, 'x'));
  EXPECT_TRUE(refused(std::string(240, '\0')));
}

TEST(InsideFrames, ARepliesBytesComeAsTheyAre) {
  ToolReply reply;
  reply.call_id = "id";
  reply.outcome = "success";
  reply.exit_code = 3;
  reply.truncated = true;
  reply.stdout_text = std::string("a\0b\xff", 4);
  reply.stderr_text = "err";
  reply.denials.push_back({"isolation", "open", "/x", "rule", "why", "fix", 2});
  const Result<ToolReply> decoded = DecodeInsideReply(EncodeInsideReply(reply));
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded->stdout_text, reply.stdout_text);
  EXPECT_EQ(decoded->stderr_text, "err");
  EXPECT_EQ(decoded->exit_code, 3);
  EXPECT_FALSE(decoded->exit_signal);
  EXPECT_TRUE(decoded->truncated);
  ASSERT_EQ(decoded->denials.size(), 1U);
  EXPECT_EQ(decoded->denials[0].count, 2U);
  const std::string bytes = EncodeInsideReply(reply);
  for (size_t size = 0; size < bytes.size() - reply.stderr_text.size(); ++size) {
    EXPECT_FALSE(DecodeInsideReply(std::string_view(bytes).substr(0, size)).ok()) << size;
  }
}

TEST(InsideFrames, NothingOfTheHostIsToldInside) {
  ToolReply reply;
  reply.error_class = "policy.path.link";
  reply.error_message = "/home/me/secret is a link";
  reply.hint = "/etc";
  reply.denials.push_back({"files", "open", "/home/me", "", "", "", 1});
  const ToolReply told = WithoutHost(reply);
  EXPECT_EQ(told.error_class, "policy.path.link");
  EXPECT_EQ(told.error_message.find("/home"), std::string::npos);
  EXPECT_TRUE(told.hint.empty() && told.denials.empty());
  reply.error_class = "policy.args.schema";
  EXPECT_EQ(WithoutHost(reply).error_message, reply.error_message) << "the control";
}

}  // namespace
}  // namespace coffer::call
