// SPDX-License-Identifier: Apache-2.0
#include "daemon/receivers.h"

#include <optional>
#include <string>
#include <utility>

#include "daemon/config_file.h"
#include "daemon/operator_files.h"
#include "egress/deliver_receiver.h"
#include "policy/egress_grants.h"

namespace coffer::daemon {

Result<Receivers> LoadReceivers(const Config& config) {
  Receivers receivers;
  TRY_ASSIGN(const std::optional<std::string> text, ReadConfigFile(config));
  if (!text) {
    return receivers;
  }
  TRY_ASSIGN(const FileConfig file, ReadConfigText(*text, config.file));
  TRY_ASSIGN(std::vector<egress::Receiver> named, egress::ReceiversOf(file.webhooks, file.otlp));
  TRY_ASSIGN(receivers.all, egress::LoadSecrets(std::move(named)));
  for (const std::string& range : file.egress.egress.addresses) {
    TRY_ASSIGN(receivers.open.emplace_back(), policy::ParseOpenRange(range));
  }
  return receivers;
}

}  // namespace coffer::daemon
