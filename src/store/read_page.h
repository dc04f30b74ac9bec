// SPDX-License-Identifier: Apache-2.0
//
// A page from a query that asks for one row more than the page holds: that row only says that there is a next page.
#pragma once

#include "base/result.h"
#include "store/page.h"
#include "store/sqlite.h"

namespace coffer::store {

// `read` makes a Row, which has an `id`, of the statement's current row.
template <typename Row, typename Read>
Result<Page<Row>> ReadPage(Statement& query, int64_t limit, const Read& read) {
  Page<Row> page;
  for (;;) {
    TRY_ASSIGN(const bool row, query.Step());
    if (!row) {
      return page;
    }
    if (static_cast<int64_t>(page.rows.size()) == limit) {
      page.next = page.rows.back().id;
      return page;
    }
    page.rows.push_back(read(query));
  }
}

}  // namespace coffer::store
