// SPDX-License-Identifier: Apache-2.0
//
// cofferd: started by `coffer serve`, and for one call by `coffer run --allow`.
#include <unistd.h>

#include <string_view>
#include <vector>

#include "base/exit_codes.h"
#include "base/print.h"
#include "daemon/config.h"
#include "daemon/egress_call.h"
#include "daemon/monitor.h"

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == coffer::daemon::kEgressCallWord) {
    return coffer::daemon::RunEgressCall();
  }
  // Descriptors that our starter left open are not for us.
  (void)::close_range(3, ~0U, 0);
  const std::vector<std::string_view> words(argv + 1, argv + (argc > 0 ? argc : 1));
  for (const std::string_view word : words) {
    if (word == "--help" || word == "-h") {
      coffer::PrintOut(coffer::daemon::ServeHelp());
      return 0;
    }
  }
  const coffer::Result<coffer::daemon::Config> config = coffer::daemon::ParseConfig(words);
  if (!config.ok()) {
    coffer::PrintError(config.error());
    return coffer::kExitRefused;
  }
  return coffer::daemon::RunMonitor(*config);
}
