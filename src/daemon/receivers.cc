// SPDX-License-Identifier: Apache-2.0
#include "daemon/receivers.h"

#include <optional>
#include <string>
#include <utility>

#include "daemon/operator_files.h"
#include "egress/deliver_receiver.h"
#include "policy/egress_grants.h"

namespace coffer::daemon {

Result<egress::AddressGuard> GuardOf(const call::FileConfig& file,
                                     egress::AddressGuard::IsOwn is_own_now) {
  std::vector<policy::AddressRange> open;
  for (const std::string& range : file.egress.egress.addresses) {
    TRY_ASSIGN(open.emplace_back(), policy::ParseOpenRange(range));
  }
  return egress::AddressGuard(std::move(open), {}, is_own_now);
}

Result<Receivers> LoadReceivers(const Config& config) {
  Receivers receivers;
  TRY_ASSIGN(const std::optional<std::string> text, ReadConfigFile(config));
  if (!text) {
    return receivers;
  }
  TRY_ASSIGN(const call::FileConfig file, call::ReadConfigText(*text, config.file));
  TRY_ASSIGN(receivers.guard, GuardOf(file, egress::IsOwnAddressNow));
  TRY_ASSIGN(std::vector<egress::Receiver> named,
             egress::ReceiversOf(file.webhooks, file.otlp, receivers.guard));
  TRY_ASSIGN(receivers.all, egress::LoadSecrets(std::move(named)));
  return receivers;
}

}  // namespace coffer::daemon
