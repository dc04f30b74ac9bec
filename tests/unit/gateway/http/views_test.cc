// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/views.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/json_pieces.h"

namespace coffer::gateway {
namespace {

using nlohmann::ordered_json;

std::string KeysOf(const ordered_json& object) {
  std::string keys;
  for (const auto& [key, value] : object.items()) {
    keys += key + " ";
  }
  return keys;
}

std::string JoinedView(JsonPieces text) {
  std::string whole;
  for (std::string piece = text.Next(); !piece.empty(); piece = text.Next()) {
    whole += piece;
  }
  return whole;
}

CallView Call() {
  CallView call;
  call.identity.call_id = "c";
  call.outcome = "denied";
  call.result = CallResult{"out\xff", "err", std::nullopt, 9, R"({"a":1})"};
  call.error = CallError{"policy.schema", "no"};
  call.denials.push_back({"policy", "call", "t", "r", "why", "", 2});
  call.log = audit::LogPosition{1, 2, "sha256:x"};
  return call;
}

// The names of the public contract, in its order.
TEST(Views, ACallHasTheNamesOfTheContract) {
  CallView call = Call();
  const auto parsed = ordered_json::parse(JoinedView(FormatCallResult(call)));
  EXPECT_EQ(KeysOf(parsed), "call_id outcome result error denials log ");
  EXPECT_EQ(KeysOf(parsed["result"]), "stdout stderr truncated exit structured ");
  EXPECT_EQ(KeysOf(parsed["error"]), "class message ");
  EXPECT_EQ(KeysOf(parsed["log"]), "index size root ");
  EXPECT_EQ(KeysOf(parsed["denials"][0]), "surface operation target rule reason fix count ");
  EXPECT_EQ(parsed["result"]["stdout"], "out\xef\xbf\xbd");
  EXPECT_EQ(parsed["result"]["exit"]["signal"], 9);
  EXPECT_TRUE(parsed["result"]["exit"]["code"].is_null());
  EXPECT_EQ(parsed["result"]["structured"]["a"], 1);
}

TEST(Views, NothingIsNull) {
  CallView call;
  call.identity.call_id = "c";
  const auto parsed = ordered_json::parse(JoinedView(FormatCallResult(call)));
  EXPECT_TRUE(parsed["outcome"].is_null());
  EXPECT_TRUE(parsed["result"].is_null());
  EXPECT_TRUE(parsed["error"].is_null());
  EXPECT_TRUE(parsed["log"].is_null());
  EXPECT_EQ(parsed["denials"].size(), 0U);
}

TEST(Views, AGatedCall) {
  CallView call = Call();
  call.state = CallProgress::kGated;
  call.approval = ApprovalView{"a", "d", "u", std::chrono::seconds(1)};
  const auto parsed = ordered_json::parse(FormatCallAccepted(call));
  EXPECT_EQ(KeysOf(parsed), "call_id outcome approval ");
  EXPECT_EQ(KeysOf(parsed["approval"]), "id digest url expires_at ");
  EXPECT_EQ(parsed["outcome"], "gated");
}

TEST(Views, ABrokenSchemaOfTheServiceIsNull) {
  ToolView tool;
  tool.name = "t";
  tool.input_schema_json = "{broken";
  EXPECT_TRUE(ordered_json::parse(FormatTool(tool))["input_schema"].is_null());
}

TEST(Views, TheSecretIsShownOnlyWithANewKey) {
  NewKey key;
  key.view.key_id = "k";
  key.secret = "s3cret";
  EXPECT_NE(FormatNewKey(key).find("s3cret"), std::string::npos);
  EXPECT_EQ(FormatKey(key.view).find("s3cret"), std::string::npos);
}

TEST(Views, ToolsAreListedWithTheirMembers) {
  std::vector<ToolView> none;
  EXPECT_EQ(JoinedView(FormatTools(none)), R"({"tools":[]})");
  ToolView first, second;
  first.name = "bash";
  first.version = "1.0.0";
  first.summary = "says \"hi\"\n";
  first.effect = "execute";
  second.name = "git";
  second.owner = "ops\xff";
  second.manifest_hash = "sha256:ab";
  std::vector<ToolView> both = {first, second};
  const std::string text = JoinedView(FormatTools(both));
  EXPECT_TRUE(text.starts_with(
      R"({"tools":[{"name":"bash","version":"1.0.0","owner":null,"summary":"says \"hi\"\n",)"
      R"("effect":"execute","state":"ready","problem":null,"manifest_hash":null},{"name":"git",)"))
      << text;
  const ordered_json list = ordered_json::parse(text);
  EXPECT_EQ(list["tools"].size(), 2U);
  EXPECT_EQ(list["tools"][1]["owner"], "ops\xef\xbf\xbd") << "what is not UTF-8 is replaced";
  EXPECT_EQ(list["tools"][1]["manifest_hash"], "sha256:ab");
  EXPECT_EQ(
      KeysOf(ordered_json::parse(FormatTool(second))),
      "name version owner summary effect state problem manifest_hash blast_radius input_schema ");
}

TEST(Views, APageHasItsItemsAndTheNextCursor) {
  Page<SessionView> page;
  page.items.resize(2);
  page.items[0].session_id = "one";
  page.items[1].session_id = "two";
  page.next = "c1";
  const ordered_json list = ordered_json::parse(JoinedView(FormatSessions(page)));
  EXPECT_EQ(KeysOf(list), "sessions next ");
  EXPECT_EQ(list["sessions"][0]["session_id"], "one");
  EXPECT_EQ(list["sessions"][1]["session_id"], "two");
  EXPECT_EQ(list["next"], "c1");
  Page<SessionView> last;
  EXPECT_EQ(JoinedView(FormatSessions(last)), R"({"sessions":[],"next":null})");
}

TEST(Views, ATranscriptThatIsNotJsonIsNull) {
  TranscriptView view;
  view.call_id = "c";
  view.kept = true;
  view.transcript_json = R"({"out":"x"})";
  EXPECT_EQ(JoinedView(FormatTranscriptView(view)),
            R"({"call_id":"c","kept":true,"transcript":{"out":"x"}})");
  view.transcript_json = "{broken";
  EXPECT_EQ(JoinedView(FormatTranscriptView(view)),
            R"({"call_id":"c","kept":true,"transcript":null})");
}

}  // namespace
}  // namespace coffer::gateway
