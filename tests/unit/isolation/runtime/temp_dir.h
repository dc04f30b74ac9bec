// SPDX-License-Identifier: Apache-2.0
//
// A directory for one test (tests/support/temp_dir.h), and whole files.
#pragma once

#include <fstream>
#include <iterator>
#include <string>

#include "tests/support/temp_dir.h"

namespace coffer::isolation {

using test::TempDir;

inline std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace coffer::isolation
