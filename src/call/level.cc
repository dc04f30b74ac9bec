// SPDX-License-Identifier: Apache-2.0
#include "call/level.h"

namespace coffer::call {

Result<Launched> LaunchAtLevel(const RunRequest& request, const Prepared& prepared, bool probe) {
  return Launch(request, prepared, {policy::Level::kContainer, probe});
}

}  // namespace coffer::call
