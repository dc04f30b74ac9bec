// SPDX-License-Identifier: Apache-2.0
//
// `coffer audit files` and `fetch`: the files that a call exported (files.exports of its manifest).
// Only what the call's sealed receipt names is shown, and only bytes that are those that were
// sealed.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "audit/receipt.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/print.h"
#include "base/sys.h"
#include "base/text.h"
#include "cli/audit_flags.h"
#include "cli/verb_audit.h"
#include "store/call_files.h"

namespace coffer::cli {
namespace {

// To stderr: stdout is for the file's bytes.
[[noreturn]] void NotGood(const std::string& what, const std::string& problem) {
  constexpr int kFound = 1;  // as of every verb that found the record changed
  PrintError(fmt::format("coffer: NOT GOOD: {} differs from its seal{}{}", what,
                         problem.empty() ? "" : ": ", Printable(problem)));
  ::_exit(kFound);
}

struct Sealed {
  store::TenantId tenant;
  audit::Receipt receipt;
};

Result<Sealed> FindSealed(State& state, const std::string& id) {
  TRY_ASSIGN(const store::Call call, FindAnyCall(state.store(), id));
  TRY_ASSIGN(const audit::SealedCall sealed, state.recorder().ReadSealed(call));
  if (sealed.state == audit::SealState::kOpen) {
    return Refused("policy.call", fmt::format("call {} has not ended", Printable(id)),
                   "its files are there when it has");
  }
  if (sealed.state == audit::SealState::kBroken) {
    NotGood("the stored data of call " + Printable(id), sealed.problem);
  }
  TRY_ASSIGN(audit::Receipt receipt, audit::ParseReceipt(sealed.receipt));
  return Sealed{call.identity.tenant, std::move(receipt)};
}

Error Forgotten(const std::string& id) {
  return Refused("record.file",
                 fmt::format("the files of call {} are no longer kept", Printable(id)),
                 "they stay as long as results do (retention.results in coffer.toml); the receipt "
                 "still names them");
}

Json FileJson(const audit::ExportedFile& file) {
  return {{"path", file.path}, {"size", file.size}, {"sha256", file.sha256}};
}

// The bytes were compared before; they are compared again as they go out, because the store is not locked meanwhile.
Status CopyOut(State& state, const Sealed& call, const audit::ExportedFile& file, int out) {
  Sha256 hash;
  uint64_t given = 0;
  const std::string& id = call.receipt.identity.call_id;
  while (given < file.size) {
    TRY_ASSIGN(const std::optional<std::string> piece,
               store::ReadCallFilePiece(state.store(), call.tenant, id, file.path,
                                        given / store::kFilePiece));
    if (!piece || piece->empty()) {
      return Forgotten(id);
    }
    hash.Update(*piece);
    given += piece->size();
    TRY(sys::WriteAll(out, *piece));
  }
  return given == file.size && hash.Finish() == file.sha256
             ? Status()
             : Status(HostFault("record.file", "the file was changed while it was read",
                                "`coffer audit verify` looks at all of the record"));
}

Result<UniqueFd> MakeFile(const std::string& path) {
  Result<UniqueFd> made = sys::Open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0666);
  if (!made.ok() && made.error().sys_errno == EEXIST) {
    return Refused("policy.usage", fmt::format("{} is there already", Printable(path)),
                   "name a file that does not exist");
  }
  return made;
}

}  // namespace

Result<std::string> AuditFiles(const call::VerbFlags& flags, State& state, const std::string& id,
                               const std::string& prefix) {
  TRY_ASSIGN(const Sealed call, FindSealed(state, id));
  TRY_ASSIGN(const std::vector<std::string> stored,
             store::ListCallFiles(state.store(), call.tenant, id));
  Json list = Json::array();
  std::string text = fmt::format("{:>12}  {:<71}  {}\n", "BYTES", "SHA256", "PATH");
  std::vector<audit::ExportedFile> files = call.receipt.exported;
  std::sort(files.begin(), files.end(),
            [](const auto& a, const auto& b) { return a.path < b.path; });
  for (const audit::ExportedFile& file : files) {
    if (!std::binary_search(stored.begin(), stored.end(), file.path)) {
      return Forgotten(id);
    }
    if (file.path.starts_with(prefix)) {
      list.push_back(FileJson(file));
      text += fmt::format("{:>12}  {:<71}  {}\n", file.size, file.sha256, Printable(file.path));
    }
  }
  return flags.json() ? PrintJson(Json{{"files", std::move(list)}}, 2) + "\n" : text;
}

Result<std::string> AuditFetch(const call::VerbFlags& flags, State& state, const std::string& id,
                               const std::string& path) {
  TRY_ASSIGN(const Sealed call, FindSealed(state, id));
  const std::vector<audit::ExportedFile>& files = call.receipt.exported;
  const auto file = std::find_if(files.begin(), files.end(),
                                 [&](const audit::ExportedFile& one) { return one.path == path; });
  if (file == files.end()) {
    return Refused("record.file",
                   fmt::format("call {} exported no file {}", Printable(id), Printable(path)),
                   "`coffer audit files CALL` names those it did; files.exports of the tool's "
                   "manifest says which are kept");
  }
  const std::string to = flags.Value("--out");
  if (to.empty() && (flags.json() || ::isatty(STDOUT_FILENO) == 1)) {
    return Refused("policy.usage",
                   flags.json() ? "--json reports the written file, so it needs --out FILE"
                                : "the bytes of the file could act on your terminal",
                   "name a file: --out FILE");
  }
  TRY_ASSIGN(const std::optional<store::StoredFile> stored,
             store::HashCallFile(state.store(), call.tenant, id, path));
  if (!stored) {
    return Forgotten(id);
  }
  if (stored->sha256 != file->sha256 || stored->size != file->size) {
    NotGood(fmt::format("the file {} of call {}", Printable(path), Printable(id)), "");
  }
  if (to.empty()) {
    TRY(CopyOut(state, call, *file, STDOUT_FILENO));
    return std::string();
  }
  TRY_ASSIGN(const UniqueFd out, MakeFile(to));
  if (Status copied = CopyOut(state, call, *file, out.get()); !copied.ok()) {
    ::unlink(to.c_str());
    return std::move(copied.error());
  }
  Json written = FileJson(*file);
  written["out"] = to;
  return flags.json() ? PrintJson(written, 2) + "\n" : std::string();
}

}  // namespace coffer::cli
