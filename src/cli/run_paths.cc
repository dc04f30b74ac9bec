// SPDX-License-Identifier: Apache-2.0
#include "cli/run_paths.h"

#include <fmt/format.h>

#include "audit/receipt_file.h"
#include "base/print.h"
#include "base/text.h"
#include "isolation/caller_path.h"
#include "isolation/host_path.h"
#include "isolation/system_paths.h"

namespace coffer::cli {
namespace {

using isolation::CallerPath;

void WarnOfPath(const call::RunRequest& request, const std::string& given,
                const CallerPath& found) {
  if (!found.links.empty() && !request.quiet) {
    PrintError(fmt::format("coffer: note: {} is behind a link: {} is shown", Printable(given),
                           Printable(found.path)));
  }
}

// Refuses a link that lies in a mount of this call.
Status CheckOutside(const CallerPath& found, const std::vector<CallerPath>& mounts) {
  for (const std::string& link : found.links) {
    for (const CallerPath& mount : mounts) {
      if (isolation::IsAtOrBelow(link, mount.path) && mount.path != found.path) {
        return Refused("policy.path.link",
                       fmt::format("{} is a symbolic link in {}, which this call mounts too", link,
                                   mount.path),
                       fmt::format("if you mean {}, name that", found.path));
      }
    }
  }
  return {};
}

// Where the caller is, if that is in the project; otherwise its top.
std::string WorkingDirectory(const std::string& project) {
  const Result<std::string> here = isolation::CleanPath(".");
  return here.ok() && isolation::IsAtOrBelow(*here, project) ? *here : project;
}

}  // namespace

Status ResolvePaths(call::RunRequest& request) {
  policy::Envelope& envelope = request.envelope;
  std::vector<CallerPath> mounts;
  for (const policy::Mount& mount : envelope.mounts) {
    TRY_ASSIGN(CallerPath found, isolation::ResolveCallerPath(mount.host, mount.access));
    mounts.push_back(std::move(found));
  }
  for (size_t i = 0; i < mounts.size(); ++i) {
    policy::Mount& mount = envelope.mounts[i];
    TRY(CheckOutside(mounts[i], mounts));
    WarnOfPath(request, mount.host, mounts[i]);
    if (mount.host == request.project) {
      request.project = mounts[i].path;
    }
    if (mount.host == request.out_dir) {
      request.out_dir = mounts[i].path;
    }
    mount.host = mounts[i].path;
  }
  for (std::string& input : envelope.inputs) {
    TRY_ASSIGN(const CallerPath found, isolation::ResolveCallerPath(input, policy::Access::kRead));
    TRY(CheckOutside(found, mounts));
    WarnOfPath(request, input, found);
    input = found.path;
  }
  if (!request.project.empty() && envelope.cwd.empty()) {
    envelope.cwd = WorkingDirectory(request.project);
  }
  return request.receipt_path.empty() ? Status() : ResolveReceipt(request.receipt_path);
}

Status ResolveReceipt(std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos || audit::ReceiptFile::NamesDescriptor(path)) {
    return {};
  }
  Result<CallerPath> above =
      isolation::ResolveCallerPath(path.substr(0, slash + 1), policy::Access::kWrite);
  if (!above.ok()) {
    return std::move(above.error());
  }
  path = above->path + path.substr(slash);
  return {};
}

}  // namespace coffer::cli
