// SPDX-License-Identifier: Apache-2.0
#include "call/outbox_event.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <variant>

#include "audit/export/cloud_event.h"
#include "base/ids.h"
#include "base/json.h"
#include "store/outbox.h"
#include "store/receivers.h"

namespace coffer::call {

Result<Receivers> KnownReceivers(store::Store& store) {
  TRY_ASSIGN(std::vector<store::KnownReceiver> known,
             store::ListReceivers(store, store::AllTenants{}));
  return Receivers([known = std::move(known)](std::string_view event) {
    std::vector<std::string> names;
    for (const store::KnownReceiver& one : known) {
      if (one.Wants(event)) {
        names.push_back(one.name);
      }
    }
    return names;
  });
}

Status AddEventToOutbox(store::Store& store, const Receivers& receivers,
                        const audit::EventRecord& event) {
  const std::vector<std::string> names =
      receivers ? receivers(event.name) : std::vector<std::string>();
  if (names.empty()) {
    return {};
  }
  audit::CloudEvent told;
  TRY_ASSIGN(told.id, NewId());
  told.type = event.name;
  told.tenant = event.tenant;
  told.time = event.at == Nanos(0) ? store.Now() : event.at;
  Json data = Json::object();
  for (const auto& [key, value] : event.detail) {
    std::visit([&, &name = key](const auto& one) { data[name] = one; }, value);
  }
  return store::AddToOutbox(store, names, event.tenant, audit::FormatCloudEvent(told, data));
}

Result<audit::Log> OpenLog(store::Store& store, const std::string& directory,
                           audit::LogOptions options) {
  options.recovering = [&store](const audit::EventRecord& event) -> Status {
    TRY_ASSIGN(const Receivers known, KnownReceivers(store));
    return AddEventToOutbox(store, known, event);
  };
  return audit::Log::Open(directory, std::move(options));
}

}  // namespace coffer::call
