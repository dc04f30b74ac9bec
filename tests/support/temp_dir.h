// SPDX-License-Identifier: Apache-2.0
//
// A directory for one test, removed with everything in it. Other users may search it, so that a boundary's uid can reach
// what a test puts there on purpose.
#pragma once

#include <string>

namespace coffer::test {

class TempDir {
 public:
  // Below `parent`: a test may need a directory of the system, or one in memory.
  explicit TempDir(const std::string& parent = "/tmp");
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

  // Each makes the directories above `name`, and returns the path of what it made or replaced.
  std::string Write(const std::string& name, const std::string& bytes, unsigned mode = 0644) const;
  std::string MakeDir(const std::string& name, unsigned mode = 0755) const;
  std::string Link(const std::string& name, const std::string& target) const;
  // The whole file; empty if it cannot be read.
  std::string Read(const std::string& name) const;

 private:
  std::string path_;
};

}  // namespace coffer::test
