// SPDX-License-Identifier: Apache-2.0
//
// OCI bundles for crun: one directory per payload and worker, written before the measurement, with the same
// namespaces, no capabilities, a read-only /usr, and memory and process limits where the host lets crun have them.
#pragma once

#include <string>
#include <vector>

#include "tool.h"

namespace coffer::bench {

struct CrunSetup {
  bool cgroups = false;  // limits are applied
  int mount_view =
      -1;  // crun refuses hosts with cgroup v1 and v2 side by side: the view without the v2 mount
  std::string why_not;  // not empty: crun cannot run here
};

// Writes all bundles under `scratch`, tries crun, and keeps the strictest setting that works.
CrunSetup SetUpCrun(const std::string& crun, const std::string& scratch,
                    const std::vector<Payload>& payloads);

Command CrunCommand(const std::string& crun, const std::string& scratch, const CrunSetup& setup,
                    const Payload& payload, int slot);

}  // namespace coffer::bench
