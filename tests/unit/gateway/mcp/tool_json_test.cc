// SPDX-License-Identifier: Apache-2.0
#include "gateway/mcp/tool_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "gateway/mcp/file_uri.h"
#include "gateway/mcp/server.h"

namespace coffer::gateway {
namespace {

// What a result says, as one value.
struct Said {
  std::string text;
  bool failed = false;
  Json error = nullptr;
  Json denials = Json::array();
};

Json Whole(const call::ToolReply& reply, const Said& said, const Json& links = Json::array()) {
  const auto number = [](const std::optional<int>& value) {
    return value ? Json(*value) : Json(nullptr);
  };
  Json content = Json::array({{{"type", "text"}, {"text", said.text}}});
  content.insert(content.end(), links.begin(), links.end());
  return {{"content", content},
          {"structuredContent",
           {{"call_id", reply.call_id.empty() ? Json(nullptr) : Json(reply.call_id)},
            {"outcome", reply.outcome},
            {"exit_code", number(reply.exit_code)},
            {"signal", number(reply.exit_signal)},
            {"stdout", reply.stdout_text},
            {"stderr", reply.stderr_text},
            {"truncated", reply.truncated},
            {"error", said.error},
            {"denials", said.denials}}},
          {"isError", said.failed}};
}

// Made in pieces or at once, it is the same text, in both eras.
void ExpectSame(const call::ToolReply& reply, const Said& said,
                const std::vector<audit::ExportedFile>& exported = {},
                const Json& links = Json::array()) {
  for (const bool modern : {false, true}) {
    const McpResultForm form{"7", modern};
    EXPECT_EQ(form.Message(McpToolResult(reply, exported)).Rest() + "\n",
              form.Line(Whole(reply, said, links)));
  }
}

call::ToolReply Printed(std::string out, std::string err = "", int exit_code = 0) {
  call::ToolReply reply;
  reply.call_id = "c1";
  reply.outcome = "success";
  reply.exit_code = exit_code;
  reply.stdout_text = std::move(out);
  reply.stderr_text = std::move(err);
  return reply;
}

TEST(McpToolResult, IsTheOutputAsATerminalShowsIt) {
  ExpectSame(Printed(""), {""});
  ExpectSame(Printed("a\"\n"), {"a\"\n"});
  ExpectSame(Printed("a"), {"a"});
  ExpectSame(Printed("a", "b"), {"a\n[stderr]\nb"});
  ExpectSame(Printed("a\n", "b\n"), {"a\n[stderr]\nb\n"});
  ExpectSame(Printed("", "b"), {"[stderr]\nb"});
  ExpectSame(Printed("", "", 3), {"[exit status 3]", true});
  ExpectSame(Printed("a", "b", 3), {"a\n[stderr]\nb\n[exit status 3]", true});
  ExpectSame(Printed("a\n", "", 3), {"a\n[exit status 3]", true});
  call::ToolReply cut = Printed("a");
  cut.truncated = true;
  ExpectSame(cut, {"a\n[the output was cut]"});
}

TEST(McpToolResult, SaysWhatFailedAndWhy) {
  call::ToolReply reply = Printed("a");
  reply.call_id = "";
  reply.outcome = "denied";
  reply.exit_code = std::nullopt;
  reply.error_class = "policy.net";
  reply.error_message = "not \"there\"";
  reply.hint = "elsewhere";
  reply.denials = {
      {.surface = "net", .operation = "connect", .target = "x", .reason = "r"},
      {.surface = "net", .operation = "connect", .target = "y\n", .reason = "no", .fix = "ask"},
      {.surface = "net", .operation = "connect", .target = "z", .reason = "not \"there\""}};
  Json denials = Json::array();
  for (const audit::Denial& denial : reply.denials) {
    denials.push_back({{"surface", denial.surface},
                       {"operation", denial.operation},
                       {"target", denial.target},
                       {"reason", denial.reason},
                       {"fix", denial.fix.empty() ? Json(nullptr) : Json(denial.fix)}});
  }
  ExpectSame(reply, {"a\n[error] policy.net: not \"there\" (elsewhere)\n[denied] connect x: r\n"
                     "[denied] connect y\n: no (ask)",
                     true,
                     {{"class", "policy.net"}, {"message", "not \"there\""}, {"hint", "elsewhere"}},
                     denials});
  call::ToolReply killed = Printed("");
  killed.outcome = "failed";
  killed.exit_code = std::nullopt;
  killed.exit_signal = 9;
  ExpectSame(killed, {"[ended by signal 9]", true});
}

// Bytes that are not UTF-8, also where two parts meet, and more than a piece.
TEST(McpToolResult, AnyOutputStandsInItOnceAndIsSaidTwice) {
  std::string odd = "x";
  while (odd.size() < 200'000) {
    odd += std::string("\0\"\n", 3) + "\xe2\x82\xac\xff";
  }
  odd += "\xf0\x9f";
  ExpectSame(Printed(odd, odd, 1), {odd + "\n[stderr]\n" + odd + "\n[exit status 1]", true});
  EXPECT_LT(McpToolResult(Printed(odd)).source_bytes(), odd.size() + 1000);
}

TEST(McpToolResult, LinksToExportedFiles) {
  const McpFile file{.of_call = true, .id = "c1", .path = "a b/c"};
  Json link = McpFileJson(file, 5);
  link["type"] = "resource_link";
  audit::ExportedFile exported;
  exported.path = file.path;
  exported.size = 5;
  ExpectSame(Printed("a"), {"a"}, {exported, exported}, Json::array({link, link}));
}

TEST(McpFileContents, SayTheSameInPiecesAsAtOnce) {
  const McpFile file{.of_call = false, .id = "s1", .path = "a \"b\""};
  for (const bool modern : {false, true}) {
    const McpResultForm form{"7", modern, true};
    const auto made = [&](const std::string& bytes) {
      return form.Message(McpFileContents(file, bytes)).Rest() + "\n";
    };
    const auto line = [&](const char* type, const char* member, const std::string& text) {
      return form.Line(
          {{"contents",
            Json::array({{{"uri", McpFileUri(file)}, {"mimeType", type}, {member, text}}})}});
    };
    EXPECT_EQ(made("a\n\"b\""), line("text/plain", "text", "a\n\"b\""));
    EXPECT_EQ(made(""), line("text/plain", "text", ""));
    EXPECT_EQ(made("\xff\x01"), line("application/octet-stream", "blob", "/wE="));
  }
}

}  // namespace
}  // namespace coffer::gateway
