// SPDX-License-Identifier: Apache-2.0
//
// The blast radius: the worst that one call can do, worked out from its envelope, network, leases and effect before
// it runs.
//
// It describes what the walls allow, not what the tool means to do; so it is never smaller than the truth as far as
// the walls hold. What a host on the other side does with a request is beyond it: that is what `effect` is for. As
// data for machines and as one sentence for the person who is asked to approve.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "policy/envelope.h"
#include "policy/manifest/manifest.h"

namespace coffer::policy {

// A credential that this call would hold.
struct LeaseGrant {
  std::string name;
  std::string scope;
  std::vector<std::string> hosts;
};

struct BlastRadius {
  struct Files {
    std::string path;    // of the host; everything in it can be changed and deleted
    uint64_t bytes = 0;  // that can be added
    uint64_t files = 0;  // that can be added
  };
  struct Reach {
    std::string host;  // "any host" if it is not limited
    std::vector<std::string> ports;
    std::vector<std::string> methods;
    bool writes = false;  // a method that changes something there
  };
  Effect effect = Effect::kIrreversible;
  std::vector<Files> changes;
  std::vector<std::string> reads;  // host paths
  std::vector<Reach> reaches;
  std::vector<LeaseGrant> leases;
  std::vector<std::string> cannot;  // "send mail", "reach the network", ...
  uint64_t cpu_seconds = 0;
  uint64_t memory = 0;
  bool dangerous = false;  // a dangerously_ grant is part of it
};

BlastRadius ComputeBlastRadius(const Envelope& envelope, const std::vector<NetworkRule>& network,
                               const std::vector<LeaseGrant>& leases, Effect effect);

// "can change anything under /srv/x, can reach api.example.com:443 GET, cannot send mail".
std::string Sentence(const BlastRadius& radius);
Json ToJson(const BlastRadius& radius);

}  // namespace coffer::policy
