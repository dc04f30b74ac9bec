// SPDX-License-Identifier: Apache-2.0
#include "cli/mcp_files.h"

#include <fcntl.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/regular_file.h"
#include "base/sys.h"
#include "call/agent_words.h"
#include "gateway/mcp/file_uri.h"
#include "policy/path_param.h"

namespace coffer::cli {
namespace {

using gateway::McpError;
using gateway::McpErrorCode;

constexpr size_t kPage = 100;
constexpr size_t kMostListed = 10'000;

// A cursor is how many files were listed before.
std::optional<size_t> ReadCursor(const Json& params) {
  const auto given = params.find("cursor");
  if (given == params.end()) {
    return 0;
  }
  if (!given->is_string()) {
    return std::nullopt;
  }
  const std::string& text = given->get_ref<const std::string&>();
  size_t before = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), before);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && before > 0 && before < kMostListed ? std::optional(before) : std::nullopt;
}

}  // namespace

std::optional<McpFiles::Answer> McpFiles::Handle(State& state,
                                                 const gateway::McpRequest& request) const {
  if (request.method == "resources/list") {
    return List(state, *request.params);
  }
  if (request.method == "resources/read") {
    return Read(*request.params);
  }
  if (request.method == "resources/templates/list") {
    return gateway::McpFileTemplates();
  }
  return std::nullopt;
}

McpFiles::Answer McpFiles::List(State& state, const Json& params) const {
  const std::optional<size_t> before = ReadCursor(params);
  if (!before) {
    return McpError{McpErrorCode::kBadParams, "cursor is not one that was given out", {}};
  }
  Result<LocalSessions> sessions = LocalSessions::Open(state);
  Result<LocalSessions::Listing> listing =
      sessions.ok()
          ? sessions->List(session_.session.id, "", std::min(*before + kPage, kMostListed))
          : Result<LocalSessions::Listing>(sessions.error());
  if (!listing.ok()) {
    return McpError{McpErrorCode::kInternal, call::HideHostPaths({}, listing.error().message), {}};
  }
  Json result = {{"resources", Json::array()}};
  for (size_t i = *before; i < listing->files.size(); ++i) {
    const LocalSessions::File& file = listing->files[i];
    result["resources"].push_back(
        gateway::McpFileJson({false, session_.session.id, file.path}, file.size));
  }
  if (listing->more && listing->files.size() < kMostListed) {
    result["nextCursor"] = std::to_string(listing->files.size());
  }
  return result;
}

McpFiles::Answer McpFiles::Read(const Json& params) const {
  const auto uri = params.find("uri");
  if (uri == params.end() || !uri->is_string()) {
    return McpError{McpErrorCode::kBadParams, "uri must be a string", {}};
  }
  const McpError missing{McpErrorCode::kNoResource,
                         "there is no such file in this session; resources/list names those "
                         "there are",
                         PrintJson({{"uri", *uri}})};
  const auto file = gateway::ReadMcpFileUri(uri->get_ref<const std::string&>());
  if (!file || file->of_call || file->id != session_.session.id) {
    return missing;
  }
  const Result<std::string> clean = policy::ResolveBeneath("", file->path);
  if (!clean.ok() || clean->empty()) {
    return missing;
  }
  const std::string path = clean->substr(1);
  // By O_PATH first: nothing that a payload made is opened before it is known to be a file.
  const Result<UniqueFd> found = sys::OpenNoLinks(session_.lock.get(), path, O_PATH);
  if (!found.ok()) {
    return missing;
  }
  const Result<UniqueFd> opened = sys::ReopenRegular(found->get(), path, O_RDONLY);
  if (!opened.ok()) {
    return missing;
  }
  Result<std::string> bytes = sys::ReadFd(opened->get(), gateway::kMaxMcpFile);
  if (!bytes.ok()) {
    return McpError{McpErrorCode::kInternal,
                    "the file cannot be read, or is larger than 512 KiB; a tool can read a part "
                    "of it",
                    {}};
  }
  return gateway::McpFileContents(*file, std::move(*bytes));
}

}  // namespace coffer::cli
