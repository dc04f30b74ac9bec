// SPDX-License-Identifier: Apache-2.0
//
// What the connections of a server share: the service and its configuration, counters, and how many
// requests each tenant has in progress. Used on the loop's thread.
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

  // A request of the tenant in progress, until the handle is dropped. Nothing if the tenant has its
  // share: of all requests it may not have more than it leaves connections free.
  std::shared_ptr<void> Begin(const store::TenantId& tenant);

 private:
  struct Progress {
    std::map<store::TenantId, size_t> of_tenant;
    size_t all = 0;
  };
  std::shared_ptr<Progress> progress_ = std::make_shared<Progress>();
  std::string date_;
  int64_t date_second_ = -1;
};

}  // namespace coffer::gateway
