// SPDX-License-Identifier: Apache-2.0
#include "call/run/payload_stdio.h"

#include <fcntl.h>

#include "base/sys.h"

namespace coffer::call {

Result<StdioPipes> MakeStdio(bool tty) {
  StdioPipes pipes;
  if (tty) {
    for (UniqueFd& fd : pipes.theirs) {
      TRY_ASSIGN(fd, sys::Open("/dev/null", O_RDWR));
    }
    return pipes;
  }
  TRY_ASSIGN(sys::Pipe in, sys::MakePipe());
  TRY_ASSIGN(sys::Pipe out, sys::MakePipe());
  TRY_ASSIGN(sys::Pipe err, sys::MakePipe());
  // Only our ends may be non-blocking: programs expect blocking stdio. The flag is per open file, and the two ends of
  // a pipe are two open files.
  ::fcntl(in.write_end.get(), F_SETFL, O_NONBLOCK);
  ::fcntl(out.read_end.get(), F_SETFL, O_NONBLOCK);
  ::fcntl(err.read_end.get(), F_SETFL, O_NONBLOCK);
  pipes.theirs[0] = std::move(in.read_end);
  pipes.theirs[1] = std::move(out.write_end);
  pipes.theirs[2] = std::move(err.write_end);
  pipes.ours = {std::move(in.write_end), std::move(out.read_end), std::move(err.read_end)};
  return pipes;
}

}  // namespace coffer::call
