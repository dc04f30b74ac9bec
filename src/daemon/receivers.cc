// SPDX-License-Identifier: Apache-2.0
#include "daemon/receivers.h"

#include <optional>
#include <string>
#include <utility>

#include "daemon/config_file.h"
#include "daemon/operator_files.h"
#include "egress/deliver_receiver.h"

namespace coffer::daemon {

Result<std::vector<egress::EgressReceiver>> LoadReceivers(const Config& config) {
  TRY_ASSIGN(const std::optional<std::string> text, ReadConfigFile(config));
  if (!text) {
    return std::vector<egress::EgressReceiver>();
  }
  TRY_ASSIGN(const FileConfig file, ReadConfigText(*text, config.file));
  TRY_ASSIGN(std::vector<egress::Receiver> receivers,
             egress::ReceiversOf(file.webhooks, file.otlp));
  return egress::LoadSecrets(std::move(receivers));
}

}  // namespace coffer::daemon
