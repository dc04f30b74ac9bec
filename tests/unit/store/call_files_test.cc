// SPDX-License-Identifier: Apache-2.0
//
// Exported files are kept in pieces, counted, and go with the results of their calls.
#include "store/call_files.h"

#include <sqlite3.h>

#include "base/hash.h"
#include "store/call_list.h"
#include "store/stored_bytes.h"
#include "tests/unit/store/store_fixture.h"

namespace coffer::store {
namespace {

class CallFilesTest : public StoreTest {
 protected:
  std::string Ended(const std::vector<CallEnd::File>& files) {
    const std::string id = Admitted(Request());
    CallEnd end;
    end.outcome = Outcome::kDenied;
    end.receipt = std::string(100, 'r');
    end.result = "result";
    end.files = files;
    end.log_index = next_++;
    Must(RefuseCall(store(), a_, id, end));
    Pass(seconds(1));
    return id;
  }
  uint64_t Bytes() { return Must(StoredBytes(store(), a_)); }
  std::vector<std::string> Paths(const std::string& id) {
    return Must(ListCallFiles(store(), a_, id));
  }
  void Edit(const std::string& sql) {
    sqlite3* db = nullptr;
    ASSERT_EQ(::sqlite3_open((Path() + "/coffer.db").c_str(), &db), SQLITE_OK);
    EXPECT_EQ(::sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sql;
    EXPECT_GT(::sqlite3_total_changes(db), 0) << "it changed nothing: " << sql;
    ::sqlite3_close(db);
  }
  uint64_t next_ = 0;
};

TEST_F(CallFilesTest, ComeBackByteByByte) {
  std::string large(3 * kFilePiece + 7, '\0');
  for (size_t i = 0; i < large.size(); ++i) {
    large[i] = static_cast<char>(i * 31 % 251);
  }
  const std::string exact = large.substr(0, kFilePiece);
  const std::string id = Ended({{"z/large", large}, {"exact", exact}, {"empty", ""}});
  EXPECT_EQ(Paths(id), (std::vector<std::string>{"empty", "exact", "z/large"}));
  RecordPlace place;
  const std::vector<StoredCall> calls = Must(ListByRecord(store(), AllTenants{}, place, 10));
  ASSERT_EQ(calls.size(), 1U);
  EXPECT_EQ(calls[0].files, (std::vector<StoredFile>{{"empty", 0, HashOf("")},
                                                     {"exact", exact.size(), HashOf(exact)},
                                                     {"z/large", large.size(), HashOf(large)}}));
  std::string read;
  for (uint64_t piece = 0; piece < 4; ++piece) {
    read += Must(ReadCallFilePiece(store(), a_, id, "z/large", piece)).value_or("");
  }
  EXPECT_EQ(read, large);
  EXPECT_FALSE(Must(ReadCallFilePiece(store(), a_, id, "z/large", 4)).has_value());
  EXPECT_EQ(Must(HashCallFile(store(), a_, id, "exact"))->sha256, HashOf(exact));
  EXPECT_FALSE(Must(HashCallFile(store(), a_, id, "missing")).has_value());
  EXPECT_TRUE(Must(ListCallFiles(store(), b_, id)).empty()) << "another tenant's";
  EXPECT_FALSE(Must(HashCallFile(store(), b_, id, "exact")).has_value());
}

// A file is listed and read by the numbers of its pieces. One that could not be read has no hash, so that verifying finds it.
TEST_F(CallFilesTest, WhoseNumbersWereEditedHaveNoHash) {
  const std::string large(2 * kFilePiece + 7, 'x');
  for (const char* const edit :
       {"UPDATE call_files SET piece = 1 WHERE path = 'small'",
        "UPDATE call_files SET piece = piece + 9 WHERE path = 'large' AND piece > 0",
        "UPDATE call_files SET piece = 9 WHERE path = 'large' AND piece = 2",
        "UPDATE call_files SET body = substr(body, 2) WHERE path = 'large' AND piece = 1"}) {
    const std::string id = Ended({{"large", large}, {"small", "1"}, {"whole", "2"}});
    const auto hash = [&](const char* path) {
      return Must(HashCallFile(store(), a_, id, path))->sha256;
    };
    EXPECT_EQ(hash("large"), HashOf(large)) << "NO-CONTROL";
    EXPECT_EQ(hash("small"), HashOf("1")) << "NO-CONTROL";
    Edit(edit);
    EXPECT_TRUE(hash("large").empty() != hash("small").empty()) << edit;
    EXPECT_EQ(hash("whole"), HashOf("2")) << edit;
    Edit("DELETE FROM call_files");
  }
}

TEST_F(CallFilesTest, AreCountedAndGoWithResults) {
  const std::string id = Ended({{"a", "12345"}, {"b", "678"}});
  const std::string later = Ended({{"c", "90"}});
  EXPECT_EQ(Bytes(), 2 * (100 + 6) + 10U);
  const OldBodies old = Must(FindOldResults(store(), a_, 1));
  EXPECT_EQ(old.calls, std::vector<std::string>{id});
  EXPECT_EQ(old.bytes, 6 + 8U);
  Must(RemoveResults(store(), a_, old));
  EXPECT_TRUE(Paths(id).empty());
  EXPECT_EQ(Paths(later).size(), 1U) << "the control";
  EXPECT_EQ(Bytes(), 2 * 100 + 6 + 2U);
  Must(RemoveCalls(store(), a_, Must(FindOldCalls(store(), a_, 1000))));
  EXPECT_TRUE(Paths(later).empty());
  EXPECT_EQ(Bytes(), 0U);
}

TEST_F(CallFilesTest, AreKeptAsLongAsResults) {
  const std::string id = Ended({{"a", "12345"}});
  Pass(hours(23));
  Must(Prune(store(), a_, Retention()));
  EXPECT_EQ(Paths(id).size(), 1U) << "the control";
  Pass(hours(2));
  EXPECT_EQ(Must(Prune(store(), a_, Retention())).results, 1U);
  EXPECT_TRUE(Paths(id).empty());
  EXPECT_EQ(Bytes(), 100U);
}

TEST_F(CallFilesTest, AVerifierSeesThemAsTheyAreStored) {
  Ended({{"a", "12345"}});
  Ended({});
  RecordPlace place;
  const std::vector<StoredCall> calls = Must(ListByRecord(store(), AllTenants{}, place, 10));
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_EQ(calls[0].files, (std::vector<StoredFile>{{"a", 5, HashOf("12345")}}));
  EXPECT_EQ(calls[1].files, std::vector<StoredFile>());
}

}  // namespace
}  // namespace coffer::store
