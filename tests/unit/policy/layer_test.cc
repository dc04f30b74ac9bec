// SPDX-License-Identifier: Apache-2.0
#include "policy/layer.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace coffer::policy {
namespace {

TEST(Layer, NamesRoundTripAndAreUnique) {
  std::set<std::string> names;
  for (int i = 0; i < kLayerCount; ++i) {
    const auto layer = static_cast<Layer>(i);
    const std::string_view name = LayerName(layer);
    ASSERT_FALSE(name.empty()) << i;
    EXPECT_TRUE(names.insert(std::string(name)).second) << name;
    EXPECT_EQ(FindLayer(name), layer) << name;
  }
  // These are in receipts and scripts of other people.
  EXPECT_EQ(LayerName(Layer::kPrivateRoot), "private-root");
  EXPECT_EQ(LayerName(Layer::kNoNewPrivs), "no-new-privs");
  EXPECT_EQ(LayerName(Layer::kCgroupIo), "cgroup-io");
}

TEST(Layer, UnknownNamesAreNotFound) {
  for (const char* name : {"", "Seccomp", "seccomp ", " seccomp", "seccom", "seccompx", "*"}) {
    EXPECT_FALSE(FindLayer(name)) << name;
  }
}

TEST(LayerSet, IsASet) {
  LayerSet set{Layer::kSeccomp, Layer::kUid};
  EXPECT_TRUE(set.Has(Layer::kSeccomp));
  EXPECT_FALSE(set.Has(Layer::kLandlock));
  set.Add(Layer::kSeccomp);
  EXPECT_EQ(set.list().size(), 2U);
  EXPECT_EQ(set.list().front(), Layer::kUid) << "in declaration order";
  set.Remove(Layer::kSeccomp);
  set.Remove(Layer::kSeccomp);
  EXPECT_EQ(set, LayerSet{Layer::kUid});
  set.Remove(Layer::kUid);
  EXPECT_TRUE(set.empty());
}

TEST(LayerSet, Algebra) {
  LayerSet all;
  for (int i = 0; i < kLayerCount; ++i) {
    all.Add(static_cast<Layer>(i));
  }
  EXPECT_EQ(all.list().size(), static_cast<size_t>(kLayerCount));
  for (int i = 0; i < kLayerCount; ++i) {
    const LayerSet one{static_cast<Layer>(i)};
    const LayerSet rest = all.Minus(one);
    EXPECT_FALSE(rest.Has(static_cast<Layer>(i)));
    EXPECT_EQ(rest.list().size(), static_cast<size_t>(kLayerCount - 1));
    EXPECT_EQ(rest.Union(one), all);
    EXPECT_TRUE(one.Minus(all).empty());
  }
  EXPECT_EQ(all.Minus({}), all);
}

}  // namespace
}  // namespace coffer::policy
