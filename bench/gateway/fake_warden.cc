// SPDX-License-Identifier: Apache-2.0
//
// A warden that starts nothing: every call it is asked to launch succeeds at once and prints when it was asked, in
// nanoseconds of the monotonic clock. With it the daemon does everything but the boundary, which is what gate.cc times.
#include <poll.h>
#include <time.h>

#include <string>

#include "audit/receipt.h"
#include "base/sys.h"
#include "call/warden/protocol.h"
#include "call/warden/runner.h"

int main() {
  constexpr int kControl = 3;
  coffer::audit::Receipt receipt;
  receipt.outcome = "success";
  receipt.exit_code = 0;
  const coffer::call::RunReport report{0, std::nullopt, receipt};
  for (;;) {
    pollfd asked{kControl, POLLIN, 0};
    (void)::poll(&asked, 1, -1);
    coffer::Result<coffer::call::ReceivedMessage> received =
        coffer::call::ReceiveMessage(kControl, coffer::call::WardenPeer::kGateway);
    if (!received.ok() || received->ended) {
      return received.ok() ? 0 : 1;
    }
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    if (received->descriptors.size() != coffer::call::kLaunchDescriptors) {
      continue;  // a kill: nothing runs
    }
    const std::string text = std::to_string(now.tv_sec * 1'000'000'000L + now.tv_nsec);
    (void)coffer::sys::WriteAll(received->descriptors[2].get(), text);
    coffer::call::SendReport(received->descriptors[4].get(), report, coffer::call::Patience::kSome);
  }
}
