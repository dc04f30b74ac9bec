// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/mcp_flights.h"

#include <algorithm>

namespace coffer::gateway {

McpFlight::McpFlight(std::function<void(const std::string& call_id)> kill)
    : kill_(std::move(kill)) {}

std::shared_ptr<CallWatch> McpFlight::MakeWatch() {
  watch_->started = [weak = weak_from_this()](const std::string& call_id) {
    if (const auto flight = weak.lock()) {
      flight->call_id_ = call_id;
      if (flight->watch_->unwanted) {
        flight->kill_(call_id);
      }
    }
  };
  return watch_;
}

void McpFlight::Cancel() {
  if (watch_->unwanted.exchange(true)) {
    return;
  }
  if (!call_id_.empty()) {
    kill_(call_id_);
  }
  if (const auto told = std::exchange(told_, nullptr)) {
    told();
  }
}

bool McpFlights::Add(const std::string& session_id, const std::string& request_id,
                     const std::shared_ptr<McpFlight>& flight) {
  if (flights_.size() >= sweep_at_) {
    std::erase_if(flights_, [](const auto& entry) { return entry.second.expired(); });
    sweep_at_ = std::max<size_t>(64, 2 * flights_.size());
  }
  if (Find(session_id, request_id) != nullptr) {
    return false;
  }
  flights_[{session_id, request_id}] = flight;
  return true;
}

std::shared_ptr<McpFlight> McpFlights::Find(const std::string& session_id,
                                            const std::string& request_id) const {
  const auto found = flights_.find({session_id, request_id});
  const auto flight = found == flights_.end() ? nullptr : found->second.lock();
  return flight == nullptr || flight->ended() ? nullptr : flight;
}

}  // namespace coffer::gateway
