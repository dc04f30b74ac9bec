// SPDX-License-Identifier: Apache-2.0
//
// Where no prepared tree can be had, a boundary has the same /dev, /etc and /usr, made for it alone.
#include <gtest/gtest.h>

#include <sstream>

#include "tests/support/run.h"

namespace coffer::test {
namespace {

constexpr const char* kLook =
    "cd / && for f in dev/* etc/* etc/ssl/certs/* usr/* usr/bin/* usr/lib/* usr/lib/*/*; do "
    "if [ -L $f ]; then echo $f: $(readlink $f); elif [ -c $f ]; then stat -c '%n %t %T' $f; "
    "elif [ -f $f ]; then sha256sum $f; elif [ -d $f ]; then ls -d $f; fi; done; "
    "echo x > /dev/null && head -c 4 /dev/urandom | wc -c; echo y > /etc/passwd || echo refused; "
    "echo z > /usr/bin/z || mkdir /usr/z || echo refused too";

// Every file is read, which takes an emulated processor longer than a call may by default.
Strings Command() {
  return {CofferPath(), "run", "--cpu", "60", "--wall", "120",
          "--runtime",  "sh",  "--",    "sh", "-c",     kLook};
}

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

// As root init mounts a runtime's files by name, and they get their attributes together, at the end.
TEST(PreparedTrees, EveryMountOfARuntimeHasItsAttributes) {
  const RunResult result = RunProgram({CofferPath(), "run", "--level", "container", "--runtime",
                                       "sh", "--", "sh", "-c", "cat /proc/self/mountinfo"});
  ASSERT_EQ(result.exit, 0) << result.Describe();
  int mounts = 0;
  for (const std::string& line : Lines(result.out)) {
    std::istringstream words(line);
    std::string id, parent, device, root, at, options;
    words >> id >> parent >> device >> root >> at >> options;
    if (!at.starts_with("/usr")) {
      continue;
    }
    ++mounts;
    const std::string all = "," + options + ",";
    for (const char* wanted : {",ro,", ",nosuid,", ",nodev,"}) {
      EXPECT_TRUE(Contains(all, wanted)) << at << " is " << options;
    }
  }
  EXPECT_GT(mounts, 20) << "the control: there is a runtime to look at\n" << result.out;
}

}  // namespace
}  // namespace coffer::test
