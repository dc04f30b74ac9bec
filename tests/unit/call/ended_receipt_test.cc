// SPDX-License-Identifier: Apache-2.0
#include "call/ended_receipt.h"

#include <gtest/gtest.h>

namespace coffer::call {
namespace {

class EndedReceiptTest : public ::testing::Test {
 protected:
  EndedReceiptTest() {
    before_.blast_radius = "can read /srv/named by the manifest";
    before_.effect = "read-only";
    after_.blast_radius = "can read /srv/bound";
  }
  std::string WorstCase() { return EndedReceipt(before_, after_, Nanos(0)).blast_radius; }

  audit::Receipt before_;
  audit::Receipt after_;
};

TEST_F(EndedReceiptTest, TheWorstCaseIsThatOfWhatWasBound) {
  EXPECT_EQ(WorstCase(), "can read /srv/bound");
  before_.effect = "reversible";
  EXPECT_EQ(WorstCase(), "can read /srv/bound");
  before_.effect = "irreversible";
  EXPECT_EQ(WorstCase(), "can read /srv/bound; counts as irreversible");
  before_.effect = "privileged";
  EXPECT_EQ(WorstCase(), "can read /srv/bound; counts as privileged");
}

TEST_F(EndedReceiptTest, WithoutAnythingBoundItIsTheManifests) {
  after_.blast_radius.clear();
  EXPECT_EQ(WorstCase(), before_.blast_radius);
  EXPECT_EQ(LostReceipt(before_, Nanos(0)).blast_radius, before_.blast_radius);
}

}  // namespace
}  // namespace coffer::call
