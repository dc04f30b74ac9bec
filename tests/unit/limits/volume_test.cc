// SPDX-License-Identifier: Apache-2.0
//
// A file system of fixed size: the write itself fails, and nothing of it is left. Needs root, loop devices and mke2fs.
#include "limits/volume.h"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/unique_fd.h"
#include "tests/support/run.h"

namespace coffer::limits {
namespace {

constexpr uint64_t kSize = 8ULL << 20;

class VolumeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) {
      GTEST_SKIP() << "only root can mount";
    }
    images_ = UniqueFd(::open(dir_.MakeDir("images").c_str(), O_RDONLY | O_DIRECTORY));
    mounts_ = UniqueFd(::open(dir_.MakeDir("mounts").c_str(), O_RDONLY | O_DIRECTORY));
    dir_.MakeDir("mounts/v");
    const Status opened = Open();
    if (!opened.ok() && opened.error().code == kNoVolumes) {
      GTEST_SKIP() << opened.error().message;
    }
    ASSERT_TRUE(opened.ok()) << opened.error().message;
  }
  void TearDown() override {
    if (images_) {
      EXPECT_TRUE(CloseVolume(images_.get(), mounts_.get(), "v").ok());
    }
  }
  Status Open() { return OpenVolume({images_.get(), mounts_.get(), "v", kSize, 1234}); }
  std::string At(const std::string& name) { return dir_ / ("mounts/v/" + name); }
  // How many bytes a file takes until a write fails.
  uint64_t Fill(const std::string& path) {
    const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT, 0600));
    const std::string block(65536, 'x');
    uint64_t written = 0;
    while (written < 64ULL << 20) {
      const ssize_t wrote = ::write(file.get(), block.data(), block.size());
      if (wrote <= 0) {
        EXPECT_EQ(errno, ENOSPC);
        break;
      }
      written += static_cast<uint64_t>(wrote);
    }
    return written;
  }

  test::TempDir dir_;
  UniqueFd images_, mounts_;
};

TEST_F(VolumeTest, TheWriteItselfFails) {
  struct stat info{};
  ASSERT_EQ(::stat(At("").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, 1234U);
  const uint64_t written = Fill(At("f"));
  EXPECT_GT(written, kSize / 2);
  EXPECT_LT(written, kSize * 2);
  EXPECT_EQ(Fill(dir_ / "mounts/beside"), 64ULL << 20) << "the control: without it nothing fails";
}

TEST_F(VolumeTest, FilesAreBoundedToo) {
  uint64_t made = 0;
  while (made < 2 * VolumeFiles(kSize)) {
    const UniqueFd file(::open(At("f" + std::to_string(made)).c_str(), O_WRONLY | O_CREAT, 0600));
    if (!file) {
      EXPECT_EQ(errno, ENOSPC);
      break;
    }
    ++made;
  }
  EXPECT_LE(made, VolumeFiles(kSize));
  EXPECT_GT(made, VolumeFiles(kSize) / 2);
}

TEST_F(VolumeTest, NoDevicesAndNoSetUid) {
  EXPECT_EQ(::mknod(At("null").c_str(), S_IFCHR | 0666, makedev(1, 3)), 0);
  EXPECT_LT(::open(At("null").c_str(), O_RDONLY), 0);
  EXPECT_EQ(errno, EACCES);
}

TEST_F(VolumeTest, KeepsItsFilesUntilItIsClosed) {
  dir_.Write("mounts/v/kept", "here", 0600);
  EXPECT_TRUE(Open().ok()) << "again";
  EXPECT_EQ(test::ReadFile(At("kept")).value_or(""), "here");
  ASSERT_TRUE(CloseVolume(images_.get(), mounts_.get(), "v").ok());
  EXPECT_FALSE(IsMounted(mounts_.get(), "v"));
  EXPECT_FALSE(test::Exists(dir_ / "images/v"));
  ASSERT_TRUE(Open().ok());
  EXPECT_FALSE(test::Exists(At("kept")));
}

// Two mounts of one image would destroy it.
TEST_F(VolumeTest, AnImageIsMountedOnce) {
  dir_.MakeDir("others");
  dir_.MakeDir("others/v");
  const UniqueFd others(::open((dir_ / "others").c_str(), O_RDONLY | O_DIRECTORY));
  const VolumeRequest again{images_.get(), others.get(), "v",
                            kSize,         1234,         std::chrono::milliseconds(50)};
  const Status second = OpenVolume(again);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, kVolumeBusy);
  EXPECT_FALSE(IsMounted(others.get(), "v"));
  // The control: when the first mount is gone, the other one is made, with what is in it.
  dir_.Write("mounts/v/kept", "here", 0600);
  ASSERT_EQ(::umount2((dir_ / "mounts/v").c_str(), 0), 0);
  VolumeRequest later = again;
  later.patience = std::chrono::seconds(10);  // the device goes a moment after the mount
  const Status third = OpenVolume(later);
  ASSERT_TRUE(third.ok()) << third.error().message;
  EXPECT_EQ(test::ReadFile(dir_ / "others/v/kept").value_or(""), "here");
  EXPECT_TRUE(CloseVolume(images_.get(), others.get(), "v").ok());
}

TEST_F(VolumeTest, ALinkIsNotCovered) {
  dir_.MakeDir("elsewhere");
  ASSERT_EQ(::symlink((dir_ / "elsewhere").c_str(), (dir_ / "mounts/link").c_str()), 0);
  EXPECT_FALSE(OpenVolume({images_.get(), mounts_.get(), "link", kSize, 0}).ok());
  EXPECT_FALSE(test::Exists(dir_ / "images/link"));
}

}  // namespace
}  // namespace coffer::limits
