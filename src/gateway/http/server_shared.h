// SPDX-License-Identifier: Apache-2.0
//
// What the connections of a server share: the service and its configuration, counters, and how many
// requests each tenant and each of its keys has in progress. Used on the loop's thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "gateway/http/exchange.h"
#include "gateway/server.h"
#include "net/tls.h"

namespace coffer::gateway {

// Outlives the connections.
struct ServerShared {
  ServerShared(net::Loop& loop, Service& service, HttpConfig config)
      : api{service, loop, std::move(config)} {}
  Api api;
  std::shared_ptr<net::TlsContext> tls;
  ServerStats stats;
  bool draining = false;

  std::string_view Date();  // of the Date field

  // A request in progress, until the handle is dropped. Refused if the asker's tenant has its share
  // (it leaves as many connections free as it has requests), or its key has its share of those: three
  // quarters of what the tenant's other keys leave, and the last eighth is for keys that have none.
  Answer<std::shared_ptr<void>> Begin(const Asker& asker);

 private:
  struct OfTenant {
    std::map<std::string, size_t> keys;
    size_t all = 0;
  };
  struct Progress {
    std::map<store::TenantId, OfTenant> tenants;
    size_t all = 0;
  };
  // What counts nothing any more.
  static void Forget(Progress* progress, const store::TenantId& tenant, const std::string& key);
  std::shared_ptr<Progress> progress_ = std::make_shared<Progress>();
  std::string date_;
  int64_t date_second_ = -1;
};

}  // namespace coffer::gateway
