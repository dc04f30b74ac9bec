// SPDX-License-Identifier: Apache-2.0
#include "call/begin.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/sys.h"
#include "isolation/compose.h"
#include "limits/unified.h"

namespace coffer::call {
namespace {

// What resolving may add to a command line: an interpreter, its options, paths of inputs.
constexpr size_t kResolvedBytes = 64 << 10;

Status MakeStdio(bool tty, Begun& begun) {
  if (tty) {
    // The terminal is made inside; until then its descriptors are places to put it.
    for (UniqueFd& fd : begun.theirs) {
      TRY_ASSIGN(fd, sys::Open("/dev/null", O_RDWR));
    }
    return {};
  }
  TRY_ASSIGN(sys::Pipe in, sys::MakePipe());
  TRY_ASSIGN(sys::Pipe out, sys::MakePipe());
  TRY_ASSIGN(sys::Pipe err, sys::MakePipe());
  // Only our ends may be non-blocking: programs expect blocking stdio. The flag is per open file, and the two ends of
  // a pipe are two open files.
  ::fcntl(in.write_end.get(), F_SETFL, O_NONBLOCK);
  ::fcntl(out.read_end.get(), F_SETFL, O_NONBLOCK);
  ::fcntl(err.read_end.get(), F_SETFL, O_NONBLOCK);
  begun.theirs[0] = std::move(in.read_end);
  begun.theirs[1] = std::move(out.write_end);
  begun.theirs[2] = std::move(err.write_end);
  begun.ours = {std::move(in.write_end), std::move(out.read_end), std::move(err.read_end)};
  return {};
}

}  // namespace

bool CanBeginEarly(const RunRequest& request) {
  return request.envelope.level != policy::Level::kProcess && ::geteuid() == 0 &&
         !limits::UnifiedCgroups();
}

Status Begin(const RunRequest& request, size_t call_bytes, Begun& begun) {
  TRY(MakeStdio(request.envelope.tty, begun));
  begun.plan->uids = request.uids;
  const isolation::PayloadStdio theirs{
      {begun.theirs[0].get(), begun.theirs[1].get(), begun.theirs[2].get()}};
  TRY_ASSIGN(isolation::Boundary boundary,
             isolation::Boundary::Spawn(*begun.plan, theirs, call_bytes, request.own));
  begun.boundary = std::make_unique<isolation::Boundary>(std::move(boundary));
  // From here on the child works beside us.
  return begun.boundary->Identify();
}

Result<Begun> BeginEarly(const RunRequest& request) {
  size_t bytes = kResolvedBytes;
  for (const std::string& word : request.command) {
    bytes += word.size() + 1;
  }
  for (const auto& [name, value] : request.envelope.env) {
    bytes += name.size() + value.size() + 2;
  }
  Begun begun;
  begun.plan = std::make_unique<isolation::BoundaryPlan>(
      isolation::BeginContainer(request.envelope, /*privileged=*/true));
  begun.plan->shares_memory = true;
  TRY(Begin(request, bytes, begun));
  return begun;
}

}  // namespace coffer::call
