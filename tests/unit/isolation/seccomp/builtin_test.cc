// SPDX-License-Identifier: Apache-2.0
//
// The generated file against what it was generated from.
#include "isolation/seccomp/builtin.h"

#include <sys/syscall.h>

#include <cstring>

#include "seccomp_testing.h"

namespace coffer::isolation {
namespace {

using policy::SyscallProfile;

TEST(Builtin, ProgramsAreWhatTheCompilerMakesNow) {
  for (const SyscallProfile profile :
       {SyscallProfile::kStrict, SyscallProfile::kDefault, SyscallProfile::kCompat}) {
    for (unsigned index = 0; index < kFilterOptionSets; ++index) {
      const FilterOptions options = FilterOptionsOf(index);
      EXPECT_EQ(IndexOf(options), index);
      const auto fresh = Compile(BuiltinProfile(profile, options), NativeSyscalls());
      ASSERT_TRUE(fresh.ok());
      const std::span<const sock_filter> built = BuiltinFilter(profile, options);
      ASSERT_EQ(built.size(), fresh->size());
      EXPECT_EQ(std::memcmp(built.data(), fresh->data(), built.size_bytes()), 0);
    }
  }
}

TEST(Builtin, FiltersOfRolesAreWhatTheCompilerMakesNow) {
  for (size_t row = 0; row < kRoleKinds; ++row) {
    const auto kind = static_cast<RoleKind>(row);
    const auto fresh = Compile(RoleProfile(kind), NativeSyscalls());
    ASSERT_TRUE(fresh.ok());
    const std::span<const sock_filter> built = RoleFilter(kind);
    ASSERT_EQ(built.size(), fresh->size());
    EXPECT_EQ(std::memcmp(built.data(), fresh->data(), built.size_bytes()), 0);
  }
  EXPECT_TRUE(RoleFilter(static_cast<RoleKind>(kRoleKinds)).empty());
}

TEST(Builtin, ImportedHasNoProgram) {
  EXPECT_TRUE(BuiltinFilter(SyscallProfile::kImported, {}).empty());
}

TEST(SyscallTable, KnowsThisArchitecture) {
  EXPECT_EQ(SyscallNumber("openat"), SYS_openat);
  EXPECT_EQ(SyscallNumber("getppid"), SYS_getppid);
  EXPECT_EQ(SyscallName(SYS_io_uring_setup), "io_uring_setup");
  EXPECT_EQ(SyscallNumber("no_such_call"), -1);
  EXPECT_EQ(SyscallNumber(""), -1);
  EXPECT_EQ(SyscallName(-1), "");
  EXPECT_EQ(SyscallName(100000), "");
}

TEST(SyscallTable, NamesAndNumbersAreEachOthersInverse) {
  const SyscallTable& table = NativeSyscalls();
  EXPECT_GT(table.by_number.size(), 300U);
  EXPECT_EQ(table.by_number.size(), table.by_name.size());
  for (const SyscallEntry& entry : table.by_number) {
    EXPECT_EQ(table.Find(table.NameOf(entry)), entry.number);
    EXPECT_EQ(table.Find(uint32_t{entry.number}), table.NameOf(entry));
  }
}

}  // namespace
}  // namespace coffer::isolation
