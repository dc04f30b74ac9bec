// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as what the relay of a call and the gateway send to each other: no crash, nothing accepted that cannot be sent again the
// same, and the same frames however the bytes are cut.
//
// The first byte says who sends and where the rest is cut; its two lowest bits set mean a reply's body alone.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "call/inside_frames.h"

namespace {

using namespace coffer::call;

void Demand(bool holds, const char* what) {
  if (!holds) {
    std::fprintf(stderr, "broken: %s\n", what);
    std::abort();
  }
}

struct Heard {
  std::vector<std::string> frames;
  bool ended = false;
};

Heard Hear(std::string_view bytes, InsidePeer peer, size_t piece) {
  Heard heard;
  InsideFrameReader reader(peer);
  for (size_t at = 0; at < bytes.size() && !heard.ended; at += piece) {
    reader.Add(bytes.substr(at, piece));
    for (;;) {
      const auto next = reader.Next();
      if (!next.ok()) {
        heard.ended = true;
        break;
      }
      if (!*next) {
        break;
      }
      const InsideFrame& frame = **next;
      Demand(frame.tool.size() <= kMostInsideText && frame.key.size() <= kMostInsideText &&
                 frame.traceparent.size() <= kMostInsideText,
             "a text that is too long");
      Demand(peer == InsidePeer::kGateway || frame.body.size() <= kMostInsideArgs,
             "a body that is too long");
      Demand((peer == InsidePeer::kRelay) == (frame.kind == InsideFrame::Kind::kCall ||
                                              frame.kind == InsideFrame::Kind::kCancel),
             "a frame that is not this peer's");
      heard.frames.push_back(EncodeInsideFrame(frame));
    }
  }
  return heard;
}

void AsReply(std::string_view bytes) {
  const auto reply = DecodeInsideReply(bytes);
  if (!reply.ok()) {
    return;
  }
  const std::string again = EncodeInsideReply(*reply);
  const auto second = DecodeInsideReply(again);
  Demand(second.ok() && EncodeInsideReply(*second) == again, "a reply is not stable");
  Demand(second->stdout_text == reply->stdout_text && second->stderr_text == reply->stderr_text,
         "what was printed is not stable");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) {
    return 0;
  }
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  if ((data[0] & 3) == 3) {
    AsReply(rest);
    return 0;
  }
  const InsidePeer peer = (data[0] & 1) != 0 ? InsidePeer::kGateway : InsidePeer::kRelay;
  const Heard whole = Hear(rest, peer, rest.size() + 1);
  const Heard cut = Hear(rest, peer, (data[0] >> 2) + size_t{1});
  Demand(whole.frames == cut.frames && whole.ended == cut.ended, "a cut changes what is heard");
  std::string again;
  for (const std::string& frame : whole.frames) {
    again += frame;
  }
  Demand(rest.starts_with(again), "a frame is not stable");
  return 0;
}
