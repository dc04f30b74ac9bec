// SPDX-License-Identifier: Apache-2.0
//
// Whether the warden launches what the gateway asks for.
//
// The gateway may have been broken into, so the warden takes only arguments from it. A request is launched only if a
// manifest allows it: it names an entry of the table, and its command, variables, mounts, runtimes, level, limits and
// system calls are those of the entry or less. The ceilings of the operator hold beside that. What an earlier manifest
// allowed does not count. Every mount is opened here once more, by the rules of the one door
// (isolation/host_path.h), and must not show what Cofferdam itself relies on.
//
// Not checked: whether the arguments fit the tool's schema, and whose session or tenant it is. The warden cannot know
// these. The worst case is a call of a declared tool with arguments of the gateway's choice.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "call/run/run_request.h"
#include "call/warden/table.h"

namespace coffer::call {

struct WardenRules {
  std::string sessions;  // the directory below which workspaces lie; empty: none
  std::string project;  // of the caller, in place of every workspace; empty: none, as in the daemon
  std::vector<std::string>
      closed;  // no mount shows them, beside the state directory: the daemon's keys
  std::vector<std::string> relied;  // no writable mount shows them: manifests, configuration
  bool allow_broad = false;         // mounts that a manifest grants with dangerously_host
  uint32_t max_running = 256;       // more are refused, not queued
};

// The part of a request that is about processes in the background: whether the entry may run in
// one, how long, and on which ports it is reached; and ports of other processes, which only a call
// that shares their session's files may reach. Class policy.entry.background or policy.entry.ports.
Status CheckBackground(const TableEntry& entry, const RunRequest& request);

// The part that is about tools that the call may call: not others, and not more often, than the
// entry's [calls] say. Class policy.entry.calls.
Status CheckCalls(const TableEntry& entry, const RunRequest& request);

// A call that another one makes: `parent` runs, and its sealed request is `parent`'s. Refused,
// class policy.parent, unless its entry names the child's tool, both are of one tenant, and the
// child's envelope is no wider than the parent's.
Status CheckChild(const WardenTable& table, const RunRequest& parent, const RunRequest& child);

// Refused with the class that says which part of the request is more than its entry: policy.entry, policy.entry.*,
// policy.ceiling, policy.workspace, policy.path.*.
Status CheckRequest(const WardenRules& rules, const WardenTable& table, const RunRequest& request);

// True if `words` can be what the template becomes for some arguments. A word that stands for a parameter may be any
// text, but for an option in a place where the template allows none.
bool MatchesTemplate(const std::vector<policy::WordGroup>& argv,
                     const std::vector<std::string>& words);

}  // namespace coffer::call
