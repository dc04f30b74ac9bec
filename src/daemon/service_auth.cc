// SPDX-License-Identifier: Apache-2.0
//
// The part of the service that authenticates clients.
#include <fmt/format.h>

#include "daemon/service.h"
#include "daemon/views.h"
#include "store/key.h"
#include "store/tenant.h"

namespace coffer::daemon {
namespace {

constexpr size_t kMaxLanes = 4096;

gateway::Refusal Unauthenticated(std::string message) {
  return {gateway::RefusalKind::kUnauthenticated, "auth.key", std::move(message), "", {}, "", {}};
}

gateway::Answer<gateway::Identity> FindKeyHolder(store::Store& store, const std::string& text) {
  Result<store::KeyVerdict> verdict = store::CheckKey(store, text);
  if (!verdict.ok()) {
    return RefusalOf(verdict.error());
  }
  switch (verdict->state) {
    case store::KeyState::kValid:
      break;
    case store::KeyState::kExpired:
      return Unauthenticated("this key has expired");
    case store::KeyState::kRevoked:
      return Unauthenticated("this key was revoked");
    case store::KeyState::kUnknown:
      return Unauthenticated("there is no such key");
  }
  const store::ApiKey& key = *verdict->key;
  return gateway::Identity{key.tenant, key.agent, key.role, key.id, "", key.all_tenants};
}

gateway::Answer<gateway::Identity> FindTokenHolder(
    store::Store& store, const std::function<gateway::Answer<gateway::Identity>()>& verify) {
  gateway::Answer<gateway::Identity> who = verify();
  if (!who.ok()) {
    return who;
  }
  // An identity provider may know tenants that do not exist here.
  const Result<std::optional<store::Tenant>> found = store::FindTenant(store, who->tenant);
  if (!found.ok()) {
    return RefusalOf(found.error());
  }
  if (!*found) {
    return gateway::Refusal{gateway::RefusalKind::kRefused,
                            "auth.tenant",
                            "the token's tenant does not exist here",
                            "its operator makes it with `coffer key new --tenant NAME`",
                            {},
                            "",
                            {}};
  }
  return who;
}

}  // namespace

void DaemonService::Authenticate(const gateway::Credential& credential,
                                 gateway::Reply<gateway::Identity> reply) {
  if (!credential.bearer.empty()) {
    // A key or token that was good before waits in its own tenant's turn, not with the strangers.
    const size_t hash = std::hash<std::string>()(credential.bearer);
    const auto lane = lanes_.find(hash);
    const std::shared_ptr<const gateway::Asker>& asker = reply.asker();
    const auto known = [this, hash, reply](gateway::Answer<gateway::Identity> answer) {
      if (answer.ok()) {
        if (lanes_.size() >= kMaxLanes) {
          lanes_.clear();
        }
        lanes_[hash] = {answer->tenant.name(), answer->key_id};
      }
      reply(std::move(answer));
    };
    AnswerIn<gateway::Identity>(
        context_, lane != lanes_.end() ? lane->second : LaneOf(asker.get()),
        gateway::Reply<gateway::Identity>(known, asker), [this, credential] {
          return credential.verify ? FindTokenHolder(context_.store(), credential.verify)
                                   : FindKeyHolder(context_.store(), credential.bearer);
        });
    return;
  }
  if (credential.peer) {
    AuthenticatePeer(credential.peer->uid, std::move(reply));
    return;
  }
  reply(Unauthenticated("a key is needed"));
}

// The kernel says who it is; the configuration says what that means. The owner and root need no entry.
void DaemonService::AuthenticatePeer(uid_t uid, gateway::Reply<gateway::Identity> reply) {
  const std::string name = fmt::format("uid:{}", uid);
  if (uid == options_.owner || uid == 0) {
    reply(gateway::Identity{store::TenantId::Local(), "operator", store::Role::kOperator, name,
                            name, true});
    return;
  }
  const std::shared_ptr<const call::FileConfig> rules = context_.live_config.current();
  const call::PeerConfig* const peer = rules->FindPeer(uid);
  if (peer == nullptr) {
    reply(Unauthenticated("a key is needed: the configuration has no [[peer]] with your uid"));
    return;
  }
  Answer<gateway::Identity>(
      context_, std::move(reply),
      [this, peer = *peer, name]() -> gateway::Answer<gateway::Identity> {
        if (const Result<store::Tenant> made = store::EnsureTenant(context_.store(), peer.tenant);
            !made.ok()) {
          return RefusalOf(made.error());
        }
        return gateway::Identity{peer.tenant, peer.agent, peer.role, name, name, false};
      });
}

}  // namespace coffer::daemon
