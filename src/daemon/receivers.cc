// SPDX-License-Identifier: Apache-2.0
#include "daemon/receivers.h"

#include <string>
#include <utility>

#include "base/sys.h"
#include "daemon/config_file.h"
#include "daemon/operator_files.h"
#include "egress/deliver_receiver.h"

namespace coffer::daemon {
namespace {

constexpr size_t kLongestConfig = 1 << 20;

}  // namespace

Result<std::vector<egress::EgressReceiver>> LoadReceivers(const Config& config) {
  if (config.file.empty()) {
    return std::vector<egress::EgressReceiver>();
  }
  TRY_ASSIGN(const bool there, sys::Exists(config.file));
  if (!there) {
    return std::vector<
        egress::EgressReceiver>();  // the gateway refuses to start if the file must exist
  }
  TRY_ASSIGN(const std::string text, sys::ReadFile(config.file, kLongestConfig));
  TRY_ASSIGN(const FileConfig file, ReadConfigText(text, config.file));
  TRY_ASSIGN(std::vector<egress::Receiver> receivers,
             egress::ReceiversOf(file.webhooks, file.otlp));
  if (!receivers.empty()) {
    TRY(CheckOperatorsOwn(config.file));
  }
  return egress::LoadSecrets(std::move(receivers));
}

}  // namespace coffer::daemon
