// SPDX-License-Identifier: Apache-2.0
#include "gateway/mcp/foreign_offers.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/ascii.h"
#include "base/hash.h"
#include "base/text.h"
#include "gateway/mcp/foreign_tools.h"
#include "gateway/mcp/stranger_text.h"
#include "policy/manifest/hash.h"

namespace coffer::gateway {
namespace {

constexpr size_t kMostName = 200;
constexpr size_t kMostOfferDescription = 4000;
constexpr size_t kMostArguments = 64;
constexpr size_t kMostUri = 2048;
constexpr size_t kMostType = 127;
constexpr size_t kMostCursor = 1024;
constexpr size_t kMostPrompt = size_t{1} << 20;

bool IsAlpha(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

const std::string* TextMember(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? &found->get_ref<const std::string&>()
                                                     : nullptr;
}

// Words for a reader, if there are any.
void CopyWords(const Json& from, const char* name, size_t most, Json& to) {
  if (const std::string* const said = TextMember(from, name)) {
    to[name] = VisibleText(*said, most);
  }
}

// A media type is for programs: one that has more than a media type may have is not passed on.
void CopyType(const Json& from, Json& to) {
  const std::string* const type = TextMember(from, "mimeType");
  if (type != nullptr && !type->empty() && type->size() <= kMostType &&
      std::all_of(type->begin(), type->end(), [](char c) { return c >= ' ' && c <= '~'; })) {
    to["mimeType"] = *type;
  }
}

bool IsBase64(std::string_view text) {
  const size_t end = text.find_last_not_of('=');
  return text.size() % 4 == 0 && text.size() - (end + 1) <= 2 &&
         std::all_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(end + 1),
                     [](char c) { return IsAlpha(c) || IsDigit(c) || c == '+' || c == '/'; });
}

Error BadResult(std::string why) { return Refused("tool.result", "the server's " + why); }

std::string Words(const Json& given, const std::string& what, const policy::Manifest& server) {
  std::string text = fmt::format("{} of the MCP server {}.", what, server.tool.name);
  if (const std::string* const said = TextMember(given, "description")) {
    text += "\nThe server describes it in these words, which Cofferdam has not checked:\n\n" +
            VisibleText(*said, kMostOfferDescription);
  }
  return text;
}

// What the ladder knows of a read.
Result<std::shared_ptr<const policy::Tool>> MakeTool(const policy::Manifest& server,
                                                     const std::string& name,
                                                     const std::string& method,
                                                     const std::string& argument,
                                                     const Json& schema) {
  if (!policy::IsToolName(name)) {
    return Refused("policy.name",
                   "its name is too long, or has more than letters, digits and _-./");
  }
  TRY_ASSIGN(policy::Schema compiled, policy::Schema::Compile(schema));
  policy::Manifest manifest = server;
  manifest.tool.name = name;
  manifest.tool.summary = fmt::format("{} of the MCP server {}", method, server.tool.name);
  manifest.input_schema = PrintJson(schema);
  manifest.run.argv.clear();
  for (const std::string& word : {std::string("mcp"), method, argument}) {
    if (!word.empty()) {
      manifest.run.argv.push_back({{{policy::WordKind::kLiteral, word, {}}}});
    }
  }
  manifest.run.stdin_word = policy::Word{policy::WordKind::kAllArguments, "", {}};
  std::string form = policy::CanonicalForm(manifest);
  std::string hash = HashOf(form);
  return std::make_shared<const policy::Tool>(policy::Tool{
      std::move(manifest), std::move(compiled), std::nullopt, std::move(form), std::move(hash)});
}

Result<ForeignPrompt> ReadPrompt(const Json& given, const std::string& exported,
                                 const policy::Manifest& server) {
  ForeignPrompt made;
  made.name = given.at("name").get<std::string>();
  made.definition = SortedJson(given);
  if (!IsForeignName(made.name)) {
    return Refused("policy.name",
                   "its name is too long, or has more than letters, digits and _-./");
  }
  Json shown = {
      {"name", exported}, {"title", exported}, {"description", Words(given, "A prompt", server)}};
  Json schema = {{"type", "object"},
                 {"properties", Json::object()},
                 {"required", Json::array()},
                 {"additionalProperties", false}};
  const Json arguments = given.value("arguments", Json::array());
  if (!arguments.is_array() || arguments.size() > kMostArguments) {
    return Refused("policy.schema", "its arguments are not a list, or more than 64");
  }
  for (const Json& argument : arguments) {
    const std::string* const name = argument.is_object() ? TextMember(argument, "name") : nullptr;
    if (name == nullptr || name->empty() || name->size() > kMostName || !IsVisibleText(*name) ||
        schema["properties"].contains(*name)) {
      return Refused("policy.schema",
                     "an argument has no name, one that hides something, or another's");
    }
    const auto required = argument.find("required");
    const bool needed =
        required != argument.end() && required->is_boolean() && required->get<bool>();
    Json one = {{"name", *name}, {"required", needed}};
    CopyWords(argument, "description", kMostOfferDescription / 4, one);
    shown["arguments"].push_back(std::move(one));
    schema["properties"][*name] = {{"type", "string"}};
    if (needed) {
      schema["required"].push_back(*name);
    }
  }
  TRY_ASSIGN(made.tool, MakeTool(server, ForeignName(server.tool.name + "-prompt", made.name),
                                 "prompts/get", made.name, schema));
  made.shown = std::make_shared<const Json>(std::move(shown));
  return made;
}

// What resources, links and templates have in common, but for their address.
void CopyAbout(const Json& given, Json& to) {
  CopyWords(given, "name", kMostName, to);
  CopyWords(given, "title", kMostName, to);
  CopyWords(given, "description", kMostOfferDescription, to);
  CopyType(given, to);
  if (const auto size = given.find("size"); size != given.end() && size->is_number_unsigned()) {
    to["size"] = *size;
  }
}

// One of `contents`, and what an embedded resource has.
Result<Json> CheckContent(const Json& given, const std::string& prefix) {
  const std::string* const uri = given.is_object() ? TextMember(given, "uri") : nullptr;
  const std::optional<std::string> shown =
      uri == nullptr ? std::nullopt : ShowForeignUri(prefix, *uri);
  if (!shown) {
    return BadResult("resource has no URI");
  }
  Json made = {{"uri", *shown}};
  CopyType(given, made);
  const std::string* const text = TextMember(given, "text");
  const std::string* const blob = TextMember(given, "blob");
  if ((text == nullptr) == (blob == nullptr) || (blob != nullptr && !IsBase64(*blob))) {
    return BadResult("resource has neither text nor base64, or both");
  }
  made[text != nullptr ? "text" : "blob"] = text != nullptr ? *text : *blob;
  return made;
}

// Whom a block is for and how much it matters, in the shapes that MCP has for that.
void CopyAnnotations(const Json& given, Json& to) {
  const auto said = given.find("annotations");
  if (said == given.end() || !said->is_object()) {
    return;
  }
  Json made = Json::object();
  const auto audience = said->find("audience");
  if (audience != said->end() && audience->is_array() &&
      std::all_of(audience->begin(), audience->end(),
                  [](const Json& one) { return one == "user" || one == "assistant"; })) {
    made["audience"] = *audience;
  }
  if (const auto priority = said->find("priority");
      priority != said->end() && priority->is_number()) {
    made["priority"] = *priority;
  }
  CopyWords(*said, "lastModified", kMostName, made);
  to["annotations"] = std::move(made);
}

Result<Json> CheckPicture(const Json& block, const std::string& type) {
  Json made = {{"type", type}};
  CopyType(block, made);
  const std::string* const data = TextMember(block, "data");
  if (data == nullptr || !IsBase64(*data) || !made.contains("mimeType")) {
    return BadResult("answer has an invalid image or sound");
  }
  made["data"] = *data;
  return made;
}

Result<Json> CheckPromptBlock(const Json& block, const std::string& prefix) {
  const std::string* const type = block.is_object() ? TextMember(block, "type") : nullptr;
  if (type != nullptr && *type == "text" && TextMember(block, "text") != nullptr) {
    return Json{{"type", "text"}, {"text", VisibleText(*TextMember(block, "text"), kMostPrompt)}};
  }
  if (type == nullptr) {
    return BadResult("answer has content without a kind");
  }
  return CheckForeignBlock(block, prefix);
}

}  // namespace

std::optional<std::string> ShowForeignUri(const std::string& prefix, std::string_view uri) {
  const size_t colon = uri.find(':');
  if (colon == std::string_view::npos || colon == 0 || !IsAlpha(uri.front()) ||
      uri.size() > kMostUri || !IsVisibleText(uri)) {
    return std::nullopt;
  }
  const std::string_view scheme = uri.substr(0, colon);
  const bool good = std::all_of(scheme.begin(), scheme.end(), [](char c) {
    return IsAlpha(c) || IsDigit(c) || c == '+' || c == '-' || c == '.';
  });
  const bool spaces = std::any_of(uri.begin(), uri.end(),
                                  [](char c) { return c == ' ' || c == '\t' || c == '\n'; });
  return good && !spaces ? std::optional(prefix + "+" + std::string(uri)) : std::nullopt;
}

std::optional<std::string> FindForeignUri(const std::string& prefix, std::string_view shown) {
  if (!shown.starts_with(prefix + "+")) {
    return std::nullopt;
  }
  const std::string_view uri = shown.substr(prefix.size() + 1);
  return ShowForeignUri(prefix, uri) ? std::optional<std::string>(uri) : std::nullopt;
}

ForeignPrompts ReadForeignPrompts(const Json& list, const policy::Manifest& server) {
  ForeignPrompts read;
  for (const Json& given : list) {
    const std::string* const name = given.is_object() ? TextMember(given, "name") : nullptr;
    if (name == nullptr) {
      read.left_out.emplace_back("a prompt without a name");
      continue;
    }
    const std::string said = "the prompt " + Printable(*name);
    if (read.prompts.size() >= kMostForeignPrompts) {
      read.left_out.push_back(
          fmt::format("{} and all after it: {} are the most", said, kMostForeignPrompts));
      break;
    }
    const std::string exported = ForeignName(server.tool.name, *name);
    if (read.prompts.contains(exported)) {
      read.left_out.push_back(said + ": another one has the same name here, " + exported);
      continue;
    }
    Result<ForeignPrompt> prompt = ReadPrompt(given, exported, server);
    if (prompt.ok()) {
      read.prompts.emplace(exported, std::move(prompt).value());
    } else {
      read.left_out.push_back(said + ": " + prompt.error().message);
    }
  }
  return read;
}

ForeignTemplates ReadForeignTemplates(const Json& list, const policy::Manifest& server) {
  ForeignTemplates read;
  for (const Json& given : list) {
    const std::string* const uri = given.is_object() ? TextMember(given, "uriTemplate") : nullptr;
    const std::optional<std::string> shown =
        uri == nullptr ? std::nullopt : ShowForeignUri(server.tool.name, *uri);
    if (!shown || !given.contains("name") || read.templates.contains(*shown)) {
      read.left_out.emplace_back("a template of resources that has no name, no URI or another's");
      continue;
    }
    if (read.templates.size() >= kMostForeignPrompts) {
      read.left_out.push_back(
          fmt::format("templates of resources: {} are the most", kMostForeignPrompts));
      break;
    }
    Json about = {{"uriTemplate", *shown}};
    CopyAbout(given, about);
    about["description"] = Words(given, "Resources", server);
    read.templates.emplace(
        *shown, ForeignTemplate{SortedJson(given), std::make_shared<const Json>(std::move(about))});
  }
  return read;
}

std::vector<std::shared_ptr<const policy::Tool>> ForeignReadTools(const policy::Manifest& server) {
  const Json text = {{"type", "string"}, {"maxLength", kMostUri}};
  const Json page = {
      {"type", "object"}, {"properties", {{"cursor", text}}}, {"additionalProperties", false}};
  const Json one = {{"type", "object"},
                    {"properties", {{"uri", text}}},
                    {"required", {"uri"}},
                    {"additionalProperties", false}};
  std::vector<std::shared_ptr<const policy::Tool>> made;
  for (const auto& [method, schema] :
       {std::pair("resources/list", page), {"resources/read", one}}) {
    Result<std::shared_ptr<const policy::Tool>> tool =
        MakeTool(server, ForeignName(server.tool.name, method), method, "", schema);
    if (tool.ok()) {  // a name of 24 letters leaves room
      made.push_back(std::move(tool).value());
    }
  }
  return made;
}

Result<Json> CheckForeignBlock(const Json& block, const std::string& prefix) {
  const std::string& type = *TextMember(block, "type");
  Json made;
  if (type == "text") {
    const std::string* const text = TextMember(block, "text");
    if (text == nullptr) {
      return BadResult("result has text that is not a string");
    }
    made = {{"type", type}, {"text", *text}};
  } else if (type == "image" || type == "audio") {
    TRY_ASSIGN(made, CheckPicture(block, type));
  } else if (type == "resource_link") {
    const std::string* const uri = TextMember(block, "uri");
    const std::optional<std::string> shown =
        uri == nullptr ? std::nullopt : ShowForeignUri(prefix, *uri);
    if (!shown) {
      return BadResult("result has a link that is not a URI");
    }
    made = {{"type", type}, {"uri", *shown}};
    CopyAbout(block, made);
    if (!made.contains("name")) {
      made["name"] = *shown;
    }
  } else if (type == "resource") {
    const auto inner = block.find("resource");
    TRY_ASSIGN(Json content, CheckContent(inner == block.end() ? Json() : *inner, prefix));
    made = {{"type", type}, {"resource", std::move(content)}};
  } else {
    return BadResult("answer has content of a kind that is not known");
  }
  CopyAnnotations(block, made);
  return made;
}

Result<Json> CheckForeignPrompt(const Json& result, const std::string& prefix) {
  const auto messages = result.find("messages");
  if (messages == result.end() || !messages->is_array()) {
    return BadResult("prompt has no messages");
  }
  Json made = {
      {"description",
       fmt::format("A prompt of the MCP server {}, in words that Cofferdam has not checked.",
                   prefix)},
      {"messages", Json::array()}};
  for (const Json& message : *messages) {
    const std::string* const role = message.is_object() ? TextMember(message, "role") : nullptr;
    if (role == nullptr || (*role != "user" && *role != "assistant") ||
        !message.contains("content")) {
      return BadResult("prompt has a message without a role or content");
    }
    TRY_ASSIGN(Json content, CheckPromptBlock(message.at("content"), prefix));
    made["messages"].push_back({{"role", *role}, {"content", std::move(content)}});
  }
  return made;
}

Result<Json> CheckForeignContents(const Json& result, const std::string& prefix) {
  const auto contents = result.find("contents");
  if (contents == result.end() || !contents->is_array()) {
    return BadResult("answer has no contents");
  }
  Json made = {{"contents", Json::array()}};
  for (const Json& given : *contents) {
    TRY_ASSIGN(Json one, CheckContent(given, prefix));
    made["contents"].push_back(std::move(one));
  }
  return made;
}

Result<Json> CheckForeignPage(const Json& result, const std::string& prefix) {
  const auto resources = result.find("resources");
  if (resources == result.end() || !resources->is_array()) {
    return BadResult("answer has no list of resources");
  }
  Json made = {{"resources", Json::array()}};
  for (const Json& given : *resources) {
    const std::string* const uri = given.is_object() ? TextMember(given, "uri") : nullptr;
    const std::optional<std::string> shown =
        uri == nullptr ? std::nullopt : ShowForeignUri(prefix, *uri);
    if (!shown) {
      continue;
    }
    Json one = {{"uri", *shown}, {"name", *shown}};
    CopyAbout(given, one);
    made["resources"].push_back(std::move(one));
  }
  const std::string* const next = TextMember(result, "nextCursor");
  if (next != nullptr && !next->empty()) {
    if (next->size() > kMostCursor || !IsVisibleText(*next)) {
      return BadResult("list of resources goes on at an invalid cursor");
    }
    made["nextCursor"] = *next;
  }
  return made;
}

}  // namespace coffer::gateway
