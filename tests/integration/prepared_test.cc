// SPDX-License-Identifier: Apache-2.0
//
// Where no prepared tree can be had, a boundary has the same /dev, /etc and /usr, made for it alone.
#include <gtest/gtest.h>

#include "tests/support/run.h"

namespace coffer::test {
namespace {

constexpr const char* kLook =
    "cd / && for f in dev/* etc/* etc/ssl/certs/* usr/* usr/bin/* usr/lib/* usr/lib/*/*; do "
    "if [ -L $f ]; then echo $f: $(readlink $f); elif [ -c $f ]; then stat -c '%n %t %T' $f; "
    "elif [ -f $f ]; then sha256sum $f; elif [ -d $f ]; then ls -d $f; fi; done; "
    "echo x > /dev/null && head -c 4 /dev/urandom | wc -c; echo y > /etc/passwd || echo refused; "
    "echo z > /usr/bin/z || mkdir /usr/z || echo refused too";

Strings Command() { return {CofferPath(), "run", "--runtime", "sh", "--", "sh", "-c", kLook}; }

// The command in a mount namespace of its own, with `mount` done before.
RunResult RunAfter(const std::string& mount) {
  Strings argv = {"/usr/bin/unshare", "--mount", "/bin/sh", "-c", mount + " && exec \"$@\"", "sh"};
  const Strings command = Command();
  argv.insert(argv.end(), command.begin(), command.end());
  return RunProgram(argv);
}

TEST(PreparedTrees, WithoutThemEverythingIsTheSame) {
  if (!IsRoot()) {
    GTEST_SKIP() << "only root has prepared trees";
  }
  const RunResult plain = RunProgram(Command());
  ASSERT_EQ(plain.exit, 0) << plain.Describe();
  EXPECT_TRUE(Contains(plain.out, "dev/null 1 3")) << plain.out;
  EXPECT_TRUE(Contains(plain.out, "dev/stdin: /proc/self/fd/0")) << plain.out;
  EXPECT_TRUE(Contains(plain.out, "etc/passwd")) << plain.out;
  EXPECT_TRUE(Contains(plain.out, "refused\n")) << plain.out;
  EXPECT_TRUE(Contains(plain.out, "refused too\n")) << plain.out;
  EXPECT_TRUE(Contains(plain.out, "  usr/bin/sha256sum\n")) << plain.out;
  EXPECT_TRUE(Exists("/run/coffer-trees")) << "the control: there it was prepared";

  // A /run that cannot be written to; one where the place is somebody else's; one that lets nobody use devices.
  for (const char* mount : {"mount -t tmpfs -o ro none /run",
                            "mount -t tmpfs none /run && mkdir -m 777 /run/coffer-trees",
                            "mount -t tmpfs -o nodev none /run"}) {
    const RunResult other = RunAfter(mount);
    EXPECT_EQ(other.exit, 0) << mount << other.Describe();
    EXPECT_EQ(other.out, plain.out) << mount;
  }
}

}  // namespace
}  // namespace coffer::test
