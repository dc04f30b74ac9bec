// SPDX-License-Identifier: Apache-2.0
//
// A store in a directory of the test's own, with a clock that only the test moves.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "store/admission.h"
#include "store/call.h"
#include "store/call_list.h"
#include "store/key.h"
#include "store/quota.h"
#include "store/recovery.h"
#include "store/retention.h"
#include "store/session.h"
#include "store/store.h"
#include "store/switches.h"
#include "store/tenant.h"
#include "tests/support/run.h"

namespace coffer::store {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

// The value, or a failed test and an exception that ends it.
template <typename T>
T Must(Result<T> result) {
  if (!result.ok()) {
    throw std::runtime_error(result.error().code + ": " + result.error().message);
  }
  return std::move(result).value();
}
inline void Must(const Status& status) {
  if (!status.ok()) {
    throw std::runtime_error(status.error().code + ": " + status.error().message);
  }
}

// The code of the error, or "" if there was none.
template <typename T>
std::string Code(const Result<T>& result) {
  return result.ok() ? "" : result.error().code;
}

inline TenantId Id(const std::string& name) { return Must(TenantId::Parse(name)); }

class StoreTest : public ::testing::Test {
 protected:
  StoreTest() { Reopen(); }

  StoreOptions Options() const {
    StoreOptions options;
    options.clock = [this] { return base_ + ahead_; };
    options.fsync = false;  // what survives a loss of power cannot be seen here
    return options;
  }
  // As a process that ended and one that starts.
  void Reopen() {
    store_.reset();
    store_ = std::make_unique<Store>(Must(Store::Open(Path(), Options())));
    Must(EnsureTenant(store(), a_));
    Must(EnsureTenant(store(), b_));
  }
  std::string Path() const { return dir_ / "state"; }
  Store& store() { return *store_; }
  // Time passes.
  void Pass(Nanos time) { ahead_ += time; }

  AdmitRequest Request(const std::string& tool = "python") const {
    AdmitRequest request;
    request.identity.tenant = a_;
    request.identity.agent = "bot";
    request.identity.tool = tool;
    return request;
  }
  Admission Admit(const AdmitRequest& request) { return Must(AdmitCall(store(), request)); }
  std::string Admitted(const AdmitRequest& request) {
    const Admission admission = Admit(request);
    EXPECT_EQ(admission.verdict, AdmitVerdict::kAdmitted) << admission.reason;
    return admission.call_id;
  }
  void Record(const std::string& id) { Must(RecordCall(store(), a_, id, {})); }
  void Start(const std::string& id) { Must(StartCall(store(), a_, id, {42, 7, "boot"})); }
  void Finish(const std::string& id, Outcome outcome = Outcome::kSuccess) {
    CallEnd end;
    end.outcome = outcome;
    Must(FinishCall(store(), a_, id, end));
  }
  // Through all states.
  std::string Run(const AdmitRequest& request, Outcome outcome = Outcome::kSuccess) {
    const std::string id = Admitted(request);
    Record(id);
    Start(id);
    Finish(id, outcome);
    return id;
  }
  Call Found(const std::string& id) { return Must(FindCall(store(), a_, id)).value(); }

  test::TempDir dir_;
  const Nanos base_ = WallTime();
  Nanos ahead_{0};
  const TenantId a_ = Id("tenant-a");
  const TenantId b_ = Id("tenant-b");
  std::unique_ptr<Store> store_;
};

}  // namespace coffer::store
