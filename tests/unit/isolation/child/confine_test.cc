// SPDX-License-Identifier: Apache-2.0
//
// The rlimits of a boundary, set in a child of the test.
#include "isolation/child/confine.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "limits/rlimits.h"

namespace coffer::isolation {
namespace {

BoundaryAdmission RlimitAdmission(const limits::RlimitTable& table) {
  BoundaryAdmission admission;
  for (size_t i = 0; i < table.count; ++i) {
    auto& to = admission.rlimits[admission.rlimit_count++];
    to.resource = table.entries[i].resource;
    to.soft = table.entries[i].soft;
    to.hard = table.entries[i].hard;
  }
  return admission;
}

BoundaryAdmission OpenFilesAdmission(uint64_t most) {
  limits::RlimitTable table;
  table.entries[table.count++] = {RLIMIT_NOFILE, most, most};
  return RlimitAdmission(table);
}

// Runs `body` in a child that has taken the limits; its wait status.
template <typename Body>
int InChildWithRlimits(const BoundaryAdmission& admission, Body body) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    uint32_t item = 0;
    if (EnforceRlimits(admission, &item) != 0) {
      ::_exit(90);
    }
    ::_exit(body());
  }
  int status = -1;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  return status;
}

TEST(EnforceRlimits, SetsEveryEntry) {
  const BoundaryAdmission admission =
      RlimitAdmission(limits::BuildRlimits({}, /*cgroup_memory=*/true));
  ASSERT_GT(admission.rlimit_count, 5U);
  EXPECT_EQ(InChildWithRlimits(admission,
                               [&] {
                                 for (uint32_t i = 0; i < admission.rlimit_count; ++i) {
                                   const auto& wanted = admission.rlimits[i];
                                   rlimit64 now{};
                                   ::prlimit64(0, static_cast<__rlimit_resource>(wanted.resource),
                                               nullptr, &now);
                                   if (now.rlim_cur > wanted.soft || now.rlim_max > wanted.hard) {
                                     return 1 + wanted.resource;
                                   }
                                 }
                                 return 0;
                               }),
            0);
}

TEST(EnforceRlimits, OpenFilesAreRefusedAtTheCap) {
  const int status = InChildWithRlimits(OpenFilesAdmission(20), [] {
    int fd = 0;
    while ((fd = ::dup(0)) >= 0 && fd < 100) {
    }
    return fd < 0 && errno == EMFILE ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
}

TEST(EnforceRlimits, AFileBeyondTheCapIsRefused) {
  policy::Limits caps;
  caps.disk = 1 << 16;
  caps.tmp = 1;
  const BoundaryAdmission admission = RlimitAdmission(limits::BuildRlimits(caps, true));
  const auto write_past = [](bool ignore) {
    ::signal(SIGXFSZ, ignore ? SIG_IGN : SIG_DFL);
    const int fd = ::memfd_create("big", 0);
    static char block[1 << 16];
    const bool fits = ::write(fd, block, sizeof(block)) == sizeof(block);
    const bool refused = ::write(fd, block, 1) < 0 && errno == EFBIG;
    return fits && refused ? 0 : 1;
  };
  EXPECT_EQ(InChildWithRlimits(admission, [&] { return write_past(true); }), 0);
  EXPECT_EQ(WTERMSIG(InChildWithRlimits(admission, [&] { return write_past(false); })), SIGXFSZ);
}

TEST(EnforceRlimits, ACapAboveTheInheritedLimitIsLoweredToIt) {
  if (::geteuid() == 0) {
    // root may raise, so take that away the way an ordinary user lacks it
    EXPECT_EQ(InChildWithRlimits(OpenFilesAdmission(30),
                                 [&] {
                                   if (::setresuid(65534, 65534, 65534) != 0) {
                                     return 91;
                                   }
                                   rlimit now{};
                                   uint32_t item = 0;
                                   const long applied =
                                       EnforceRlimits(OpenFilesAdmission(60), &item);
                                   ::getrlimit(RLIMIT_NOFILE, &now);
                                   return applied == 0 && now.rlim_max == 30 ? 0 : 1;
                                 }),
              0);
    return;
  }
  rlimit now{};
  ::getrlimit(RLIMIT_NOFILE, &now);
  EXPECT_EQ(InChildWithRlimits(OpenFilesAdmission(now.rlim_max + 1), [] { return 0; }), 0);
}

TEST(EnforceRlimits, NamesWhatFailed) {
  limits::RlimitTable table;
  table.entries[table.count++] = {RLIMIT_CORE, 0, RLIM_INFINITY};
  table.entries[table.count++] = {9999, 1, 1};
  uint32_t failed = 0;
  EXPECT_EQ(EnforceRlimits(RlimitAdmission(table), &failed), -EINVAL);
  EXPECT_EQ(failed, 1U);
}

}  // namespace
}  // namespace coffer::isolation
