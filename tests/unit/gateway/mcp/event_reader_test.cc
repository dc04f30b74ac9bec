// SPDX-License-Identifier: Apache-2.0
#include "gateway/mcp/event_reader.h"

#include <gtest/gtest.h>

#include <vector>

namespace coffer::gateway {
namespace {

using Events = std::vector<std::string>;

Events ReadAll(EventReader& reader, std::string_view text, size_t piece) {
  Events events;
  for (size_t at = 0; at < text.size(); at += piece) {
    EXPECT_TRUE(reader.Feed(text.substr(at, piece),
                            [&](const std::string& data) { events.push_back(data); }));
  }
  return events;
}

TEST(EventReader, EventsComeInPiecesOfAnySize) {
  const std::string text =
      "\xef\xbb\xbf: comment\r\nid: 1\r\ndata: one\r\n\r\ndata:two\ndata: lines\n\nevent: "
      "other\ndata: "
      "no\n\nevent: message\rdata: three\rid: 3\rretry: 250\r\rdata\n\nid: bad id\ndata: "
      "four\n\ndata: cut";
  for (const size_t piece : {size_t{1}, size_t{2}, size_t{7}, text.size()}) {
    EventReader reader(1000);
    EXPECT_EQ(ReadAll(reader, text, piece), (Events{"one", "two\nlines", "three", "four"}))
        << piece;
    EXPECT_EQ(reader.last_id(), "3");
    EXPECT_EQ(reader.retry(), std::chrono::milliseconds(250));
  }
}

TEST(EventReader, NothingGrowsWithoutBound) {
  const auto ignore = [](const std::string&) {};
  for (const std::string_view piece :
       {"data: 0123456789\n", "x", ":", "id: 12345\n", "other: 1234\n"}) {
    EventReader reader(1000);
    bool ends = false;
    for (int i = 0; i < 5000 && !ends; ++i) {
      ends = !reader.Feed(piece, ignore);
    }
    EXPECT_TRUE(ends) << piece;
    EXPECT_FALSE(reader.Feed("\n\ndata: x\n\n", ignore)) << "what is broken stays broken";
  }
  // Comments and whole events are forgotten.
  EventReader reader(1000);
  for (int i = 0; i < 5000; ++i) {
    ASSERT_TRUE(reader.Feed(": still here\n\ndata: x\n\n", ignore));
    ASSERT_TRUE(reader.Feed(": still here\n", ignore));
  }
}

}  // namespace
}  // namespace coffer::gateway
