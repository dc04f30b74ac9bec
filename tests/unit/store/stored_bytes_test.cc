// SPDX-License-Identifier: Apache-2.0
//
// What a tenant keeps is summed with every statement that writes or removes it, and the oldest goes first.
#include "store/stored_bytes.h"

#include "base/sys.h"
#include "tests/support/store_state.h"
#include "tests/unit/store/store_fixture.h"

namespace coffer::store {
namespace {

class StoredBytesTest : public StoreTest {
 protected:
  // A call that ended with a receipt and a result of these sizes.
  std::string Ended(size_t receipt, size_t result, const TenantId& tenant) {
    AdmitRequest request = Request();
    request.identity.tenant = tenant;
    const std::string id = Admitted(request);
    CallEnd end;
    end.outcome = Outcome::kDenied;
    end.receipt = std::string(receipt, 'r');
    end.result = std::string(result, 'o');
    end.log_index = next_++;
    Must(RefuseCall(store(), tenant, id, end));
    Pass(seconds(1));
    return id;
  }
  uint64_t Bytes(const TenantId& tenant) { return Must(StoredBytes(store(), tenant)); }
  uint64_t next_ = 0;
};

TEST_F(StoredBytesTest, AreSummedForEachTenant) {
  EXPECT_EQ(Bytes(a_), 0U);
  Ended(100, 1000, a_);
  Ended(10, 5, b_);
  EXPECT_EQ(Bytes(a_), 1100U);
  EXPECT_EQ(Bytes(b_), 15U);
  // Retention takes from the sum what it takes from the disk.
  Pass(hours(25));
  EXPECT_EQ(Must(Prune(store(), a_, Retention())).results, 1U);
  EXPECT_EQ(Bytes(a_), 100U);
  Pass(hours(24 * 100));
  Must(Prune(store(), a_, Retention()));
  EXPECT_EQ(Bytes(a_), 0U);
  EXPECT_EQ(Bytes(b_), 15U);
}

// Transcripts are counted, and go with the results of their calls.
TEST_F(StoredBytesTest, TranscriptsGoWithResults) {
  const std::string id = Admitted(Request());
  CallEnd end;
  end.outcome = Outcome::kDenied;
  end.receipt = std::string(100, 'r');
  end.transcript = std::string(700, 't');
  end.log_index = next_++;
  Must(RefuseCall(store(), a_, id, end));
  EXPECT_EQ(Bytes(a_), 800U);
  const OldBodies old = Must(FindOldResults(store(), a_, 1));
  EXPECT_EQ(old.calls, std::vector<std::string>{id});
  EXPECT_EQ(old.bytes, 700U);
  Must(RemoveResults(store(), a_, old));
  EXPECT_EQ(Bytes(a_), 100U);
}

TEST_F(StoredBytesTest, CountBytesAndNotCharacters) {
  AdmitRequest request = Request();
  const std::string id = Admitted(request);
  CallEnd end;
  end.outcome = Outcome::kDenied;
  end.result = "\xc3\xa4\xc3\xb6";
  Must(RefuseCall(store(), a_, id, end));
  EXPECT_EQ(Bytes(a_), 4U);
}

TEST_F(StoredBytesTest, TheOldestResultsGoFirst) {
  const std::string first = Ended(100, 1000, a_);
  const std::string second = Ended(100, 1000, a_);
  const std::string third = Ended(100, 1000, a_);
  Ended(100, 1000, b_);
  const OldBodies old = Must(FindOldResults(store(), a_, 1500));
  EXPECT_EQ(old.calls, (std::vector<std::string>{first, second}));
  EXPECT_EQ(old.bytes, 2000U);
  Must(RemoveResults(store(), a_, old));
  EXPECT_EQ(Bytes(a_), 1300U);
  EXPECT_EQ(Bytes(b_), 1100U);
  EXPECT_FALSE(Must(test::FindResult(store(), a_, first)).has_value());
  EXPECT_TRUE(Must(test::FindResult(store(), a_, third)).has_value());
  EXPECT_TRUE(Must(FindReceipt(store(), a_, first)).has_value());
}

// Bytes that this process has read, from the disk or from what the kernel keeps of it.
uint64_t BytesRead() {
  const std::string io = Must(sys::ReadFile("/proc/self/io"));
  return std::stoull(io.substr(io.find("rchar: ") + 7));
}

// A tenant that keeps gigabytes must not make the daemon read them whenever it looks for what is old, or for anything else.
TEST_F(StoredBytesTest, LookingForTheOldestReadsNoMoreThanItFinds) {
  constexpr size_t kBody = size_t{1} << 20;
  constexpr size_t kCalls = 32;
  std::vector<std::string> ids;
  for (size_t i = 0; i < kCalls; ++i) {
    ids.push_back(Ended(100, kBody, a_));
  }
  uint64_t before = BytesRead();
  const OldBodies some = Must(FindOldResults(store(), a_, 1));
  EXPECT_EQ(some.calls, std::vector<std::string>{ids.front()});
  EXPECT_LT(BytesRead() - before, 3 * kBody);
  // Nor does a look at what another tenant keeps beside it.
  const std::string neighbour = Ended(100, 10, b_);
  before = BytesRead();
  EXPECT_TRUE(Must(test::FindResult(store(), b_, neighbour)).has_value());
  EXPECT_TRUE(Must(FindReceipt(store(), b_, neighbour)).has_value());
  EXPECT_LT(BytesRead() - before, kBody);
  // The control: all of them are read if all of them are wanted.
  before = BytesRead();
  EXPECT_EQ(Must(FindOldResults(store(), a_, kCalls * kBody)).calls, ids);
  EXPECT_GT(BytesRead() - before, kCalls * kBody / 2);
}

TEST_F(StoredBytesTest, ThenWholeCallsAndNeverWhatRuns) {
  const std::string first = Ended(100, 0, a_);
  AdmitRequest open = Request();
  open.idempotency_key = "k";
  open.request_hash = "h";
  const std::string running = Admitted(open);
  const std::string last = Ended(100, 0, a_);
  const OldBodies old = Must(FindOldCalls(store(), a_, 1'000'000));
  EXPECT_EQ(old.calls, (std::vector<std::string>{first, last}));
  Must(RemoveCalls(store(), a_, old));
  EXPECT_EQ(Bytes(a_), 0U);
  EXPECT_FALSE(Must(FindCall(store(), a_, first)).has_value());
  EXPECT_TRUE(Must(FindCall(store(), a_, running)).has_value());
}

TEST_F(StoredBytesTest, FarBeyondTheBoundNothingBegins) {
  Ended(100, 10'000, a_);
  AdmitRequest request = Request();
  request.quotas.stored_bytes = 9000;
  EXPECT_EQ(Admit(request).verdict, AdmitVerdict::kAdmitted) << "pruning has time to catch up";
  request.quotas.stored_bytes = 5000;
  const Admission refused = Admit(request);
  EXPECT_EQ(refused.verdict, AdmitVerdict::kBudgetSpent);
  EXPECT_EQ(refused.error_class, "policy.storage");
  request.identity.tenant = b_;
  EXPECT_EQ(Admit(request).verdict, AdmitVerdict::kAdmitted) << "another tenant's is its own";
}

TEST_F(StoredBytesTest, OpenSessionsHaveABoundTogether) {
  SessionRequest request;
  request.agent = "bot";
  request.bytes = 100;
  request.tenant_bytes = 250;
  const Session first = Must(CreateSession(store(), a_, request));
  Must(CreateSession(store(), a_, request));
  EXPECT_EQ(Code(CreateSession(store(), a_, request)), "policy.storage");
  Must(CreateSession(store(), b_, request));
  Must(EndSession(store(), a_, first.id, "done"));
  Must(CreateSession(store(), a_, request));
}

}  // namespace
}  // namespace coffer::store
