// SPDX-License-Identifier: Apache-2.0
#include "gateway/mcp/file_uri.h"

#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "base/percent.h"
#include "base/utf8.h"

namespace coffer::gateway {
namespace {

constexpr std::string_view kSessions = "coffer://sessions/";
constexpr std::string_view kCalls = "coffer://calls/";
constexpr std::string_view kFiles = "/files/";

}  // namespace

std::string McpFileUri(const McpFile& file) {
  return std::string(file.of_call ? kCalls : kSessions) + file.id + std::string(kFiles) +
         PercentEncodePath(file.path);
}

std::optional<McpFile> ReadMcpFileUri(std::string_view uri) {
  McpFile file;
  file.of_call = uri.starts_with(kCalls);
  if (!file.of_call && !uri.starts_with(kSessions)) {
    return std::nullopt;
  }
  uri.remove_prefix(file.of_call ? kCalls.size() : kSessions.size());
  const size_t slash = uri.find('/');
  if (slash == std::string_view::npos || !uri.substr(slash).starts_with(kFiles)) {
    return std::nullopt;
  }
  std::optional<std::string> path = PercentDecode(uri.substr(slash + kFiles.size()));
  if (!path.has_value()) {
    return std::nullopt;
  }
  file.id = uri.substr(0, slash);
  file.path = std::move(*path);
  return file;
}

Json McpFileJson(const McpFile& file, uint64_t size) {
  return {{"uri", McpFileUri(file)},
          {"name", file.path.substr(file.path.rfind('/') + 1)},
          {"title", file.path},
          {"size", size}};
}

Json McpFileTemplates() {
  return {{"resourceTemplates",
           Json::array({{{"uriTemplate", "coffer://sessions/{session_id}/files/{+path}"},
                         {"name", "session-file"},
                         {"title", "A file of a session's workspace"}},
                        {{"uriTemplate", "coffer://calls/{call_id}/files/{+path}"},
                         {"name", "exported-file"},
                         {"title", "A file that a call exported"}}})}};
}

JsonPieces McpFileContents(const McpFile& file, std::string bytes) {
  JsonPieces result;
  result.Raw(R"("contents":[{"uri":)");
  result.Value(McpFileUri(file));
  if (IsUtf8(bytes)) {
    result.Raw(R"(,"mimeType":"text/plain","text":)");
    result.Text(std::move(bytes));
  } else {
    result.Raw(R"(,"mimeType":"application/octet-stream","blob":")");
    result.RawWhole(Base64Of(bytes));
    result.Raw("\"");
  }
  result.Raw("}]");
  return result;
}

}  // namespace coffer::gateway
