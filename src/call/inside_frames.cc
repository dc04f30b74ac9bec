// SPDX-License-Identifier: Apache-2.0
#include "call/inside_frames.h"

#include <string.h>

#include <algorithm>

#include "base/wire_bytes.h"

namespace coffer::call {
namespace {

constexpr uint32_t kFrameMagic = 0x636f5231;
constexpr uint32_t kReplyMagic = 0x636f5232;
constexpr size_t kMostReply = size_t{32} << 20;
constexpr size_t kMostRefusal = 4096;

struct FrameHead {
  uint32_t magic = kFrameMagic;
  uint32_t kind = 0;
  uint64_t number = 0;
  uint64_t size = 0;
  char tool[kMostInsideText + 1] = {};
  char key[kMostInsideText + 1] = {};
  char traceparent[kMostInsideText + 1] = {};
};
static_assert(sizeof(FrameHead) == 240);

Error Malformed() { return Internal("internal.wire", "a malformed frame from another role"); }

void PutText(const std::string& text, char (&place)[kMostInsideText + 1]) {
  memcpy(place, text.data(), std::min(text.size(), kMostInsideText));
}

// Nothing if there is no end, or something behind it.
std::optional<std::string> TakeText(const char (&place)[kMostInsideText + 1]) {
  const size_t length = strnlen(place, sizeof(place));
  const auto rest =
      std::find_if(place + length, place + sizeof(place), [](char byte) { return byte != '\0'; });
  return length == sizeof(place) || rest != place + sizeof(place)
             ? std::nullopt
             : std::optional(std::string(place, length));
}

// The longest body of a frame that this peer may send; nothing if the frame is not its to send.
std::optional<size_t> MostBody(uint32_t kind, InsidePeer peer) {
  const bool relay = peer == InsidePeer::kRelay;
  switch (kind) {
    case static_cast<uint32_t>(InsideFrame::Kind::kCall):
      return relay ? std::optional(kMostInsideArgs) : std::nullopt;
    case static_cast<uint32_t>(InsideFrame::Kind::kCancel):
      return relay ? std::optional<size_t>(0) : std::nullopt;
    case static_cast<uint32_t>(InsideFrame::Kind::kTools):
    case static_cast<uint32_t>(InsideFrame::Kind::kReply):
      return relay ? std::nullopt : std::optional(kMostReply);
    case static_cast<uint32_t>(InsideFrame::Kind::kRefusal):
      return relay ? std::nullopt : std::optional(kMostRefusal);
    default:
      return std::nullopt;
  }
}

void WriteNumber(WireWriter& writer, const std::optional<int>& number) {
  writer.Flag(number.has_value());
  writer.Signed(number.value_or(0));
}

std::optional<int> ReadNumber(WireReader& reader) {
  const bool there = reader.Flag();
  const int64_t value = reader.Signed();
  return there ? std::optional(static_cast<int>(value)) : std::nullopt;
}

}  // namespace

std::string EncodeInsideFrame(const InsideFrame& frame) {
  FrameHead head;
  head.kind = static_cast<uint32_t>(frame.kind);
  head.number = frame.number;
  head.size = frame.body.size();
  PutText(frame.tool, head.tool);
  PutText(frame.key, head.key);
  PutText(frame.traceparent, head.traceparent);
  std::string bytes(reinterpret_cast<const char*>(&head), sizeof(head));
  return bytes += frame.body;
}

Result<std::optional<InsideFrame>> InsideFrameReader::Next() {
  if (bytes_.size() < sizeof(FrameHead)) {
    return std::optional<InsideFrame>();
  }
  FrameHead head;
  memcpy(&head, bytes_.data(), sizeof(head));
  const std::optional<size_t> most = MostBody(head.kind, peer_);
  std::optional<std::string> tool = TakeText(head.tool);
  std::optional<std::string> key = TakeText(head.key);
  std::optional<std::string> traceparent = TakeText(head.traceparent);
  if (head.magic != kFrameMagic || !most || head.size > *most || !tool || !key || !traceparent) {
    return Malformed();
  }
  if (bytes_.size() - sizeof(head) < head.size) {
    return std::optional<InsideFrame>();
  }
  InsideFrame frame;
  frame.kind = static_cast<InsideFrame::Kind>(head.kind);
  frame.number = head.number;
  frame.tool = std::move(*tool);
  frame.key = std::move(*key);
  frame.traceparent = std::move(*traceparent);
  frame.body = bytes_.substr(sizeof(head), head.size);
  bytes_.erase(0, sizeof(head) + head.size);
  return std::optional(std::move(frame));
}

std::string EncodeInsideReply(const ToolReply& reply) {
  WireWriter writer(kReplyMagic);
  writer.Text(reply.call_id);
  writer.Text(reply.outcome);
  writer.Number(static_cast<uint8_t>(reply.refusal));
  writer.Text(reply.error_class);
  writer.Text(reply.error_message);
  writer.Text(reply.hint);
  writer.Flag(reply.retry_after_seconds.has_value());
  writer.Signed(reply.retry_after_seconds.value_or(0));
  writer.Flag(reply.truncated);
  WriteNumber(writer, reply.exit_code);
  WriteNumber(writer, reply.exit_signal);
  writer.Number(reply.denials.size());
  for (const audit::Denial& denial : reply.denials) {
    for (const std::string* text : {&denial.surface, &denial.operation, &denial.target,
                                    &denial.rule, &denial.reason, &denial.fix}) {
      writer.Text(*text);
    }
    writer.Number(denial.count);
  }
  const std::string said = writer.Take();
  const uint64_t sizes[2] = {said.size(), reply.stdout_text.size()};
  std::string bytes(reinterpret_cast<const char*>(sizes), sizeof(sizes));
  bytes += said;
  bytes += reply.stdout_text;
  return bytes += reply.stderr_text;
}

std::string EncodeInsideReplyFrame(uint64_t number, const ToolReply& reply) {
  InsideFrame frame;
  frame.kind = InsideFrame::Kind::kReply;
  frame.number = number;
  frame.body = EncodeInsideReply(reply);
  return EncodeInsideFrame(frame);
}

Result<ToolReply> DecodeInsideReply(std::string_view bytes) {
  uint64_t sizes[2] = {};
  if (bytes.size() < sizeof(sizes)) {
    return Malformed();
  }
  memcpy(sizes, bytes.data(), sizeof(sizes));
  bytes.remove_prefix(sizeof(sizes));
  if (sizes[0] > bytes.size() || sizes[1] > bytes.size() - sizes[0]) {
    return Malformed();
  }
  WireReader reader(bytes.substr(0, sizes[0]), kReplyMagic);
  ToolReply reply;
  reply.call_id = reader.Text();
  reply.outcome = reader.Text();
  reply.refusal = reader.Choice(ToolRefusal::kFailed);
  reply.error_class = reader.Text();
  reply.error_message = reader.Text();
  reply.hint = reader.Text();
  const bool waits = reader.Flag();
  const int64_t seconds = reader.Signed();
  reply.retry_after_seconds = waits ? std::optional(seconds) : std::nullopt;
  reply.truncated = reader.Flag();
  reply.exit_code = ReadNumber(reader);
  reply.exit_signal = ReadNumber(reader);
  for (uint32_t left = reader.Count(); left > 0 && reader.ok(); --left) {
    audit::Denial denial;
    for (std::string* text : {&denial.surface, &denial.operation, &denial.target, &denial.rule,
                              &denial.reason, &denial.fix}) {
      *text = reader.Text();
    }
    denial.count = reader.Number<uint64_t>();
    reply.denials.push_back(std::move(denial));
  }
  if (!reader.Complete()) {
    return Malformed();
  }
  reply.stdout_text = bytes.substr(sizes[0], sizes[1]);
  reply.stderr_text = bytes.substr(sizes[0] + sizes[1]);
  return reply;
}

}  // namespace coffer::call
