// SPDX-License-Identifier: Apache-2.0
#include "base/passed_fds.h"

#include <string.h>

namespace coffer {

std::vector<UniqueFd> TakePassedFds(msghdr& header) {
  std::vector<UniqueFd> taken;
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) {
      continue;
    }
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(fd));
      taken.emplace_back(fd);
    }
  }
  return taken;
}

}  // namespace coffer
