// SPDX-License-Identifier: Apache-2.0
#include "isolation/etc.h"

#include <grp.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <stdlib.h>
#include <time.h>

#include <map>
#include <regex>
#include <sstream>

#include "isolation/package_etc.h"
#include "tests/support/run.h"

namespace coffer::isolation {
namespace {

std::map<std::string, std::string> Files(uint32_t uid) {
  std::map<std::string, std::string> files;
  for (const PrivateFile& file : SyntheticEtc(uid, "coffer")) {
    EXPECT_TRUE(file.at.starts_with("/etc/")) << file.at;
    EXPECT_EQ(file.mode, 0444U) << file.at;
    EXPECT_TRUE(files.emplace(file.at, file.content).second) << "twice: " << file.at;
  }
  return files;
}

// What a package links to, and not what an administrator wrote beside it.
TEST(PackageEtc, IsPublicConfigurationOnly) {
  for (const char* path : {"/etc/maven/m2.conf", "/etc/maven/logging/simplelogger.properties",
                           "/etc/ssl/openssl.cnf", "/etc/java-17-openjdk/x", "/etc/fonts"}) {
    EXPECT_TRUE(IsPackageEtc(path)) << path;
  }
  for (const char* path : {"/etc/maven", "/etc/maven/settings.xml", "/etc/maven/m2.conf2",
                           "/etc/ssl/private", "/etc/passwd", "/usr/etc/maven/m2.conf"}) {
    EXPECT_FALSE(IsPackageEtc(path)) << path;
  }
}

TEST(Etc, EveryUserHasAName) {
  const test::TempDir dir;
  for (const uint32_t uid : {0U, 1U, 1000U, 65534U, 65535U}) {
    auto files = Files(uid);
    FILE* passwd = ::fopen(dir.Write("passwd", files["/etc/passwd"]).c_str(), "re");
    FILE* group = ::fopen(dir.Write("group", files["/etc/group"]).c_str(), "re");
    int users = 0;
    int roots = 0;
    while (const struct passwd* entry = ::fgetpwent(passwd)) {
      roots += entry->pw_uid == 0 && std::string(entry->pw_name) == "root" ? 1 : 0;
      if (entry->pw_uid == uid) {
        ++users;
        EXPECT_EQ(entry->pw_gid, uid);
        EXPECT_STREQ(entry->pw_dir, "/workspace");
        EXPECT_STREQ(entry->pw_passwd, "x");
      }
    }
    EXPECT_EQ(users, 1) << uid;
    EXPECT_EQ(roots, 1) << "programs look up root, whoever they are";
    int groups = 0;
    while (const struct group* entry = ::fgetgrent(group)) {
      groups += entry->gr_gid == uid ? 1 : 0;
    }
    EXPECT_EQ(groups, 1) << uid;
    ::fclose(passwd);
    ::fclose(group);
  }
}

TEST(Etc, TheZoneIsUtcForTheCLibrary) {
  const test::TempDir dir;
  const std::string zone = dir.Write("zone", SyntheticLocaltime().content);
  // The control: a zone that is not UTC has its effect on the same call.
  ::setenv("TZ", "XYZ-5", 1);
  ::tzset();
  const time_t noon = 1700000000;
  tm parts{};
  ASSERT_EQ(::localtime_r(&noon, &parts)->tm_gmtoff, 5 * 3600);
  ::setenv("TZ", (":" + zone).c_str(), 1);
  ::tzset();
  ASSERT_NE(::localtime_r(&noon, &parts), nullptr);
  EXPECT_EQ(parts.tm_gmtoff, 0);
  EXPECT_STREQ(parts.tm_zone, "UTC")
      << "an unreadable file would also give offset 0, but another name";
  ::unsetenv("TZ");
  ::tzset();
}

TEST(Etc, TheZoneFileIsWellFormed) {
  const std::string zone = SyntheticLocaltime().content;
  ASSERT_EQ(zone.size(), 2 * (44 + 6 + 4) + 6U);
  EXPECT_EQ(zone.substr(0, 5), "TZif2");
  EXPECT_EQ(zone.substr(54, 5), "TZif2");
  EXPECT_EQ(zone.substr(108), "\nUTC0\n");
}

TEST(Etc, ServicesAndProtocolsAreWellFormed) {
  auto files = Files(1000);
  for (const char* name : {"/etc/services", "/etc/protocols"}) {
    std::istringstream lines(files[name]);
    std::string line;
    int count = 0;
    while (std::getline(lines, line)) {
      EXPECT_TRUE(
          std::regex_match(line, std::regex("[a-z0-9-]+ [0-9]+(/(tcp|udp))?( [A-Za-z0-9-]+)*")))
          << line;
      ++count;
    }
    EXPECT_GT(count, 10) << name;
  }
  EXPECT_NE(files["/etc/services"].find("\nhttp 80/tcp "), std::string::npos);
}

TEST(Etc, NamesResolveFromFilesOnly) {
  auto files = Files(1000);
  EXPECT_NE(files["/etc/hosts"].find("127.0.0.1 localhost coffer\n"), std::string::npos);
  EXPECT_NE(files["/etc/nsswitch.conf"].find("hosts: files\n"), std::string::npos);
  EXPECT_EQ(files["/etc/nsswitch.conf"].find("dns"), std::string::npos);
  EXPECT_FALSE(files.count("/etc/resolv.conf"));
  EXPECT_FALSE(files.count("/etc/shadow"));
}

}  // namespace
}  // namespace coffer::isolation
