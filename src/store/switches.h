// SPDX-License-Identifier: Apache-2.0
//
// Kill switches: a tool, an agent, a session or a tenant is stopped, by whom, why and when. A pause of the circuit
// breaker (breaker.h) is listed and lifted here as one more kind, which no caller can set.
//
// Admission looks at them in its own transaction, so nothing is admitted after a switch is on. Killing what runs is the
// caller's: SwitchGeneration changes with every change and is cheap to ask for several times a second; when it has
// changed, look through the open calls (call_list.h) with FindSwitch. A disabled tool is a switch of its own kind, so
// that releasing a kill switch does not enable it. Everything here is on disk when it returns.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "store/tenant.h"

namespace coffer::store {

enum class SwitchKind : uint8_t { kTool, kAgent, kSession, kTenant, kDisabledTool, kBreaker };
std::string_view SwitchKindName(SwitchKind kind);
std::optional<SwitchKind> FindSwitchKind(std::string_view name);

struct Switch {
  std::optional<TenantId> tenant;  // nothing: for all tenants
  SwitchKind kind = SwitchKind::kTool;
  std::string name;  // of the tool, agent or session; the tenant's own for kTenant; see PauseName
  bool on = false;
  std::string who;
  std::string why;
  Nanos at{0};
  std::optional<Nanos> until;  // kBreaker: when it ends by itself
};

struct SwitchChange {
  SwitchKind kind = SwitchKind::kTool;
  std::string name;  // ignored for kTenant
  bool on = true;
  std::string who;
  std::string why;
};
// Refused for kBreaker, unless it is lifted.
Status SetSwitch(Store& store, const TenantId& tenant, const SwitchChange& change);
// For all tenants: a tool or an agent of that name in every tenant; kTenant with AllTenants stops all tenants.
Status SetSwitch(Store& store, AllTenants, const SwitchChange& change);

// What a call is, as far as switches care.
struct SwitchSubject {
  std::string_view tool;
  std::string_view agent;
  std::string_view session;  // empty: none
};
// A switch that stops such a call of this tenant, also while it runs, or nothing. A pause is not one.
Result<std::optional<Switch>> FindSwitch(Store& store, const TenantId& tenant,
                                         const SwitchSubject& subject);

// A switch that stops this agent or its whole tenant, or nothing. A stopped agent may only read.
Result<std::optional<Switch>> FindStop(Store& store, const TenantId& tenant,
                                       std::string_view agent);

// Whether exactly this switch of the tenant is on. `name` is ignored for kTenant.
Result<bool> IsSwitchedOn(Store& store, const TenantId& tenant, SwitchKind kind,
                          std::string_view name);

// Whether anything of the tenant bears this agent's name: a key, a session or a call.
Result<bool> AgentIsKnown(Store& store, const TenantId& tenant, std::string_view agent);

// Those of this tenant and, without their reasons, those for all tenants that stop it too; pauses that have not ended.
Result<std::vector<Switch>> ListSwitches(Store& store, const TenantId& tenant);
Result<std::vector<Switch>> ListSwitches(Store& store, AllTenants);

// Grows by one with every change of any switch, by this and other processes.
Result<int64_t> SwitchGeneration(Store& store);

}  // namespace coffer::store
