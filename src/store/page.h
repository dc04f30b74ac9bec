// SPDX-License-Identifier: Apache-2.0
//
// Lists come in pages: at most `limit` rows after a cursor, newest first.
//
// A cursor is the id of the last row seen, so it stays right while rows are added, and it tells a
// tenant nothing about the others. A cursor from outside may be passed on: a wrong one finds other
// rows of the same tenant, or none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace coffer::store {

struct PageRequest {
  size_t limit = 50;   // 1 to 1000; more is cut
  std::string cursor;  // empty: from the newest

  int64_t Rows() const { return static_cast<int64_t>(std::clamp<size_t>(limit, 1, 1000)); }
  // Ids are hexadecimal digits and '-', so '~' is after all of them.
  std::string_view Before() const { return cursor.empty() ? std::string_view("~") : cursor; }
};

template <typename Row>
struct Page {
  std::vector<Row> rows;
  std::string next;  // empty: that was all
};

}  // namespace coffer::store
