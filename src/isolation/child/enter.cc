// SPDX-License-Identifier: Apache-2.0
#include "isolation/child/enter.h"

#include "isolation/child/entry.h"

namespace coffer::isolation {

void EnterBoundary(const ChildContext& context) {
  Entry entry(context);
  entry.Begin();

  // First half, beside the supervisor's own work: what the envelope alone decides.
  entry.BeginNetwork();
  entry.TakeIdentity();
  entry.BeginRoot();

  // Second half: what the command needs.
  entry.AwaitPlan();
  entry.EnterRoot();
  entry.OpenTerminal();
  entry.LeaveSession();
  entry.KeepReachOfChildren();
  entry.GainNothingMore();
  entry.MakeRules();

  // The end: what its files still lack, its cgroups, its network, and then no power any more.
  entry.AwaitAdmission();
  entry.EndRoot();
  entry.EnterCgroups();
  entry.EnterNetwork();
  entry.DropPower();
  entry.EnterLandlock();
  entry.EnterFilter();
  entry.LeaveTable();
  entry.BecomeInit();
}

}  // namespace coffer::isolation
