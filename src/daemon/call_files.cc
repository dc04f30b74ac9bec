// SPDX-License-Identifier: Apache-2.0
#include "daemon/call_files.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "audit/receipt.h"
#include "base/hash.h"
#include "daemon/views.h"
#include "daemon/visibility.h"
#include "store/call_files.h"

namespace coffer::daemon {
namespace {

using gateway::Refusal;
using gateway::RefusalKind;

// A call that has ended, and what its receipt says.
struct Ended {
  store::TenantId tenant;
  audit::Receipt receipt;
};

gateway::Answer<Ended> FindEnded(call::Recorder& recorder, const gateway::Identity& who,
                                 const std::string& call_id) {
  const gateway::Answer<store::Call> row = FindVisibleCall(recorder.store(), who, call_id);
  if (!row.ok()) {
    return row.refusal();
  }
  const Result<audit::SealedCall> sealed = recorder.ReadSealed(row.value());
  if (!sealed.ok()) {
    return RefusalOf(sealed.error());
  }
  if (sealed->state == audit::SealState::kOpen) {
    return Refusal{.kind = RefusalKind::kConflict,
                   .code = "call.running",
                   .message = "the call has not ended",
                   .hint = "its files are there when it has"};
  }
  Result<audit::Receipt> receipt = audit::ParseReceipt(sealed->receipt);
  if (sealed->state == audit::SealState::kBroken || !receipt.ok()) {
    return BrokenRecord(call_id);
  }
  return Ended{row->identity.tenant, std::move(receipt).value()};
}

Refusal Pruned() {
  return {.kind = RefusalKind::kNotFound,
          .code = "file.pruned",
          .message = "the files of this call are no longer kept",
          .hint =
              "they stay as long as results do (retention.results, storage.tenant); the "
              "receipt still names them"};
}

Refusal NotExported(const std::string& path) {
  return {.kind = RefusalKind::kNotFound,
          .code = "file.unknown",
          .message = "the call exported no file " + path,
          .hint =
              "files.exports of the tool's manifest says which are kept; files.left_out of the "
              "receipt lists the others"};
}

gateway::FileView ExportView(const audit::ExportedFile& file, const audit::Receipt& receipt) {
  gateway::FileView view;
  view.path = file.path;
  view.size = file.size;
  view.sha256 = file.sha256;
  view.modified_at = receipt.finished_at;
  return view;
}

class ExportedDownload : public gateway::Download {
 public:
  ExportedDownload(ServiceContext& context, const Ended& call, const audit::ExportedFile& file)
      : context_(context),
        state_(std::make_shared<State>(
            State{call.tenant, call.receipt.identity.call_id, file, Sha256(), 0, ""})),
        view_(ExportView(file, call.receipt)) {}

  const gateway::FileView& file() const override { return view_; }

  void Read(size_t max, gateway::Reply<std::string> reply) override {
    Answer<std::string>(context_, std::move(reply), [&context = context_, state = state_, max] {
      return state->Next(context.store(), max);
    });
  }

 private:
  struct State {
    store::TenantId tenant;
    std::string call_id;
    audit::ExportedFile file;
    Sha256 hash;
    uint64_t given;
    std::string piece;  // the rest of one that was read

    gateway::Answer<std::string> Next(store::Store& store, size_t max) {
      if (piece.empty() && given < file.size) {
        Result<std::optional<std::string>> read =
            store::ReadCallFilePiece(store, tenant, call_id, file.path, given / store::kFilePiece);
        if (!read.ok()) {
          return RefusalOf(read.error());
        }
        if (!*read || (*read)->empty()) {
          return Pruned();
        }
        piece = std::move(**read);
        hash.Update(piece);
        const bool last = given + piece.size() >= file.size;
        if (last && (given + piece.size() > file.size || hash.Finish() != file.sha256)) {
          return BrokenRecord(call_id);  // its last piece is not given out
        }
      }
      std::string bytes = piece.substr(0, max);
      piece.erase(0, bytes.size());
      given += bytes.size();
      return bytes;
    }
  };

  ServiceContext& context_;
  std::shared_ptr<State> state_;
  gateway::FileView view_;
};

}  // namespace

gateway::Answer<std::vector<gateway::FileView>> ListExported(call::Recorder& recorder,
                                                             const gateway::Identity& who,
                                                             const std::string& call_id,
                                                             const std::string& prefix) {
  const gateway::Answer<Ended> call = FindEnded(recorder, who, call_id);
  if (!call.ok()) {
    return call.refusal();
  }
  const Result<std::vector<std::string>> stored =
      store::ListCallFiles(recorder.store(), call->tenant, call_id);
  if (!stored.ok()) {
    return RefusalOf(stored.error());
  }
  std::vector<gateway::FileView> views;
  for (const audit::ExportedFile& file : call->receipt.exported) {
    if (!std::binary_search(stored->begin(), stored->end(), file.path)) {
      return Pruned();
    }
    if (file.path.starts_with(prefix)) {
      views.push_back(ExportView(file, call->receipt));
    }
  }
  std::sort(views.begin(), views.end(),
            [](const gateway::FileView& a, const gateway::FileView& b) { return a.path < b.path; });
  return views;
}

gateway::Answer<std::shared_ptr<gateway::Download>> OpenExported(ServiceContext& context,
                                                                 const gateway::Identity& who,
                                                                 const std::string& call_id,
                                                                 const std::string& path) {
  const gateway::Answer<Ended> call = FindEnded(context.recorder(), who, call_id);
  if (!call.ok()) {
    return call.refusal();
  }
  const std::vector<audit::ExportedFile>& files = call->receipt.exported;
  const auto file = std::find_if(files.begin(), files.end(),
                                 [&](const audit::ExportedFile& one) { return one.path == path; });
  if (file == files.end()) {
    return NotExported(path);
  }
  const Result<std::optional<store::StoredFile>> stored =
      store::HashCallFile(context.store(), call->tenant, call_id, path);
  if (!stored.ok()) {
    return RefusalOf(stored.error());
  }
  if (!*stored) {
    return Pruned();
  }
  if ((*stored)->sha256 != file->sha256 || (*stored)->size != file->size) {
    return BrokenRecord(call_id);
  }
  return std::shared_ptr<gateway::Download>(
      std::make_shared<ExportedDownload>(context, call.value(), *file));
}

}  // namespace coffer::daemon
