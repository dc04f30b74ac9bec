// SPDX-License-Identifier: Apache-2.0
#include "tests/support/temp_dir.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace coffer::test {
namespace {

void MakeParents(const std::string& path) {
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
}

}  // namespace

TempDir::TempDir(const std::string& parent) : path_(parent + "/cofft.XXXXXX") {
  if (::mkdtemp(path_.data()) == nullptr) {
    ADD_FAILURE() << "mkdtemp failed";
    ::abort();
  }
  ::chmod(path_.c_str(), 0755);
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TempDir::Write(const std::string& name, const std::string& bytes, unsigned mode) const {
  const std::string path = path_ + "/" + name;
  MakeParents(path);
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << bytes;
  file.close();
  EXPECT_TRUE(file.good()) << "cannot write " << path;
  EXPECT_EQ(::chmod(path.c_str(), mode), 0) << path;
  return path;
}

std::string TempDir::MakeDir(const std::string& name, unsigned mode) const {
  const std::string path = path_ + "/" + name;
  MakeParents(path);
  EXPECT_TRUE(::mkdir(path.c_str(), mode) == 0 || errno == EEXIST) << "cannot make " << path;
  EXPECT_EQ(::chmod(path.c_str(), mode), 0) << path;
  return path;
}

std::string TempDir::Link(const std::string& name, const std::string& target) const {
  const std::string path = path_ + "/" + name;
  MakeParents(path);
  std::filesystem::create_symlink(target, path);
  return path;
}

std::string TempDir::Read(const std::string& name) const {
  std::ifstream file(path_ + "/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace coffer::test
