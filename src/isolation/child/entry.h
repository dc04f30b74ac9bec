// SPDX-License-Identifier: Apache-2.0
//
// The steps of EnterBoundary (enter.cc, which has their order and the reasons for it), and what one
// hands to a later one. Each enters its stages in the report first, so that a failure names itself,
// and ends the child if it cannot be done. After clone: no heap, no locks, no formatting.
#pragma once

#include <cstdint>

#include "isolation/child/enter.h"
#include "isolation/child/helper.h"
#include "isolation/child/init.h"

namespace coffer::isolation {

class Entry {
 public:
  explicit Entry(const ChildContext& context)
      : context_(context),
        start_(*context.plan),
        admission_(*context.admission),
        container_(start_.level == policy::Level::kContainer) {}

  void Begin();
  void BeginNetwork();
  void TakeIdentity();
  void BeginRoot();
  void AwaitPlan();
  void EnterRoot();
  void OpenTerminal();
  void LeaveSession();
  void KeepReachOfChildren();
  void GainNothingMore();
  void MakeRules();
  void AwaitAdmission();
  void EndRoot();
  void EnterCgroups();
  void EnterNetwork();
  void DropPower();
  void EnterLandlock();
  void EnterFilter();
  void LeaveTable();
  [[noreturn]] void BecomeInit() { RunInit(context_, *plan_, duty_); }

 private:
  uint32_t* item() { return &context_.report->item; }
  void Enter(Stage stage);
  // Goes on, or writes the errno and ends the child. There is no third way.
  long Must(long answer);
  void Await(Stage stage, char word);
  // A descriptor of the plan's rules.
  int MakeRuleset();
  // Whether init has power over the host that it must lose.
  bool powerful() const { return container_ || admission_.host_uid != 0; }

  const ChildContext& context_;
  const BoundaryStart& start_;
  const BoundaryAdmission& admission_;
  const bool container_;
  const PlanBlock* plan_ = nullptr;  // the second half, once it has come
  const PlanBlock* MapBlock(int file, uint64_t size);

  Helper helper_;
  bool clock_ = false;  // it has a time namespace
  int root_ = -1;       // of the private root
  int32_t stdio_[3] = {-1, -1, -1};
  InitDuty duty_;
  long children_ = -1;  // the list of init's children, if it is init's way to find them
  int ruleset_ = -1;    // of Landlock, if it was made before the old root was left
};

}  // namespace coffer::isolation
