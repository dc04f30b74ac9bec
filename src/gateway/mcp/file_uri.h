// SPDX-License-Identifier: Apache-2.0
//
// Files as resources of MCP: coffer://sessions/ID/files/PATH for a file of a session,
// coffer://calls/ID/files/PATH for one that a call exported. PATH is percent-encoded. A URI names a
// file and grants nothing: who may read it, the host says.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/json_pieces.h"

namespace coffer::gateway {

struct McpFile {
  bool of_call = false;  // otherwise of a session
  std::string id;        // of the call or the session, not checked
  std::string path;      // decoded, not checked
};

std::string McpFileUri(const McpFile& file);
// Nothing if it is not such a URI.
std::optional<McpFile> ReadMcpFileUri(std::string_view uri);

// uri, name, title, size.
Json McpFileJson(const McpFile& file, uint64_t size);
// {"resourceTemplates": [...]}
Json McpFileTemplates();
// contents: the text of a file, or its bytes in base64 if they are not UTF-8. The member of a result (McpResultForm).
JsonPieces McpFileContents(const McpFile& file, std::string bytes);

// The most that is sent of one file; a larger one is fetched otherwise.
inline constexpr uint64_t kMaxMcpFile = uint64_t{512} << 10;

}  // namespace coffer::gateway
