// SPDX-License-Identifier: Apache-2.0
//
// What doctor says where containers cannot be made, from recorded settings of such hosts.
#include "isolation/host_support.h"

#include <errno.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temp_dir.h"

namespace coffer::isolation {
namespace {

using testing::HasSubstr;

class ExplainContainerTest : public testing::Test {
 protected:
  void Set(const std::string& name, const std::string& value) { dir_.Write(name, value + "\n"); }
  HostSupport Explain(int error, bool root = false) {
    HostSupport support;
    ExplainContainer(error, root, dir_.path(), support);
    return support;
  }
  test::TempDir dir_;
};

TEST_F(ExplainContainerTest, UbuntusRestrictionIsLiftedByTheProfile) {
  Set("kernel/apparmor_restrict_unprivileged_userns", "1");
  const HostSupport support = Explain(EACCES);
  EXPECT_THAT(support.cause, HasSubstr("AppArmor"));
  EXPECT_THAT(support.fix, HasSubstr("/usr/share/coffer/apparmor/coffer"));
  EXPECT_THAT(support.fix, HasSubstr("apparmor_parser -r /etc/apparmor.d/coffer"));
}

TEST_F(ExplainContainerTest, ARestrictionThatIsOffOrDoesNotHoldIsNotBlamed) {
  Set("kernel/apparmor_restrict_unprivileged_userns", "0");
  EXPECT_THAT(Explain(EPERM).cause, testing::Not(HasSubstr("AppArmor")));
  Set("kernel/apparmor_restrict_unprivileged_userns", "1");
  EXPECT_THAT(Explain(EPERM, true).cause, testing::Not(HasSubstr("AppArmor")));
}

TEST_F(ExplainContainerTest, AHiddenClone3IsDockers) {
  EXPECT_THAT(Explain(ENOSYS).fix, HasSubstr("--security-opt seccomp=unconfined"));
}

TEST_F(ExplainContainerTest, NamespacesThatAreSwitchedOffAreNamed) {
  Set("user/max_user_namespaces", "0");
  EXPECT_THAT(Explain(ENOSPC).fix, HasSubstr("user.max_user_namespaces"));
  Set("user/max_user_namespaces", "100");
  Set("kernel/unprivileged_userns_clone", "0");
  EXPECT_THAT(Explain(EPERM).fix, HasSubstr("kernel.unprivileged_userns_clone=1"));
}

}  // namespace
}  // namespace coffer::isolation
