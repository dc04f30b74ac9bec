// SPDX-License-Identifier: Apache-2.0
#include "call/run/export_files.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/sys.h"
#include "base/text.h"
#include "output/exports.h"

namespace coffer::call {
namespace {

// The directory that was /workspace inside, by a descriptor that was opened before the command ran: no path is looked
// up again. -1 if there is none.
int WorkspaceOf(const Prepared& prepared, const Launched& launched) {
  for (const isolation::OpenedMount& mount : prepared.mounts) {
    if (mount.workspace) {
      return mount.path.fd.get();
    }
  }
  if (!launched.scratch.path().empty()) {
    return launched.scratch.place().workspace;
  }
  // A descriptor keeps the file system after its mount namespace is gone.
  const std::vector<isolation::PrivateTmpfs>& places = launched.plan->root.tmpfs;
  const std::vector<UniqueFd>& opened = launched.boundary->tmpfs();
  for (size_t i = 0; i < places.size() && places.size() == opened.size(); ++i) {
    if (places[i].at == "/workspace") {
      return opened[i].get();
    }
  }
  return -1;
}

// Whether there is a name but those of `inputs`, which are links to their copies.
bool HasFiles(int directory, const std::vector<std::string>& inputs = {}) {
  const Result<UniqueFd> opened = sys::OpenAt(directory, ".", O_RDONLY | O_DIRECTORY);
  if (!opened.ok()) {
    return false;
  }
  const Result<std::vector<sys::DirEntry>> names = sys::ListDir(opened->get());
  const auto is_input = [&](const sys::DirEntry& entry) {
    return std::any_of(inputs.begin(), inputs.end(), [&](const std::string& input) {
      return input.substr(input.rfind('/') + 1) == entry.name;
    });
  };
  return names.ok() && !std::all_of(names->begin(), names->end(), is_input);
}

// `coffer run --out DIR -- pandoc -o x.docx`: the directory is /out inside, and stayed empty.
bool OutIsEmpty(const Prepared& prepared) {
  return std::any_of(prepared.mounts.begin(), prepared.mounts.end(),
                     [](const isolation::OpenedMount& mount) {
                       return mount.at == "/out" && mount.access == policy::Access::kWrite &&
                              !HasFiles(mount.path.fd.get());
                     });
}

bool ShowsWritable(const Prepared& prepared, const std::string& directory) {
  return std::any_of(
      prepared.mounts.begin(), prepared.mounts.end(), [&](const isolation::OpenedMount& mount) {
        return mount.access == policy::Access::kWrite && mount.at == mount.path.path &&
               (directory + "/").starts_with(mount.at + "/");
      });
}

}  // namespace

void TellLostFiles(const RunRequest& request, const Prepared& prepared, const Launched& launched,
                   RunOutcome& outcome) {
  const policy::Envelope& envelope = request.envelope;
  if (envelope.cwd != "/workspace" || !envelope.workspace.empty() || !envelope.exports.empty()) {
    return;
  }
  std::error_code failed;
  const std::string here = std::filesystem::current_path(failed);
  const bool out = OutIsEmpty(prepared);
  if (!out && (failed || !ShowsWritable(prepared, here))) {
    return;
  }
  if (HasFiles(WorkspaceOf(prepared, launched), envelope.inputs)) {
    outcome.notes.push_back(
        out ? "files were left in /workspace, which is gone now; what the command writes to /out "
              "is "
              "kept (--out)"
            : fmt::format("files were left in /workspace, which is gone now; --cwd {} runs the "
                          "command in the mount",
                          Printable(here)));
  }
}

void ExportFiles(const RunRequest& request, const Prepared& prepared, const Launched& launched,
                 RunOutcome& outcome) {
  if (request.envelope.exports.empty()) {
    return;
  }
  output::Exports exports =
      output::CollectExports(WorkspaceOf(prepared, launched), request.envelope.exports);
  for (output::ExportBody& file : exports.files) {
    outcome.receipt.exported.push_back(
        {std::move(file.path), file.bytes.size(), std::move(file.sha256)});
    outcome.exports.push_back(std::move(file.bytes));
  }
  for (output::NotExported& left : exports.left_out) {
    outcome.receipt.left_out.push_back({std::move(left.why), left.count, std::move(left.path)});
  }
}

}  // namespace coffer::call
