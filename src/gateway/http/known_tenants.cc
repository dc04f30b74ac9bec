// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/known_tenants.h"

#include <utility>

#include "base/hash.h"
#include "gateway/http/fields.h"
#include "gateway/http/parser.h"

namespace coffer::gateway {

void KnownTenants::Remember(std::string_view token, std::string_view tenant) {
  std::string hash = HashOf(token);
  const std::lock_guard lock(mutex_);
  if (tenants_.size() >= most_ && !tenants_.contains(hash)) {
    tenants_.clear();  // those in use come back with their next request
  }
  tenants_.insert_or_assign(std::move(hash), std::string(tenant));
}

void KnownTenants::Forget(std::string_view token) {
  const std::string hash = HashOf(token);
  const std::lock_guard lock(mutex_);
  tenants_.erase(hash);
}

std::string KnownTenants::Find(std::string_view token) const {
  const std::string hash = HashOf(token);
  const std::lock_guard lock(mutex_);
  const auto found = tenants_.find(hash);
  return found == tenants_.end() ? "" : found->second;
}

std::string KnownTenants::FindInHead(std::string_view bytes, const HttpLimits& limits) const {
  RequestParser parser(limits);
  std::optional<Problem> problem;
  const size_t size = parser.FindHead(bytes, &problem);
  Head head;
  if (size == 0 || problem.has_value() || parser.ParseHead(bytes.substr(0, size), &head)) {
    return {};
  }
  const Answer<std::string> token = ReadBearer(head);
  return token.ok() && !token.value().empty() ? Find(token.value()) : std::string();
}

}  // namespace coffer::gateway
