// SPDX-License-Identifier: Apache-2.0
#include "isolation/git_index.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace coffer::isolation {
namespace {

using std::string_literals::operator""s;

std::string Bytes(uint32_t number, int bytes = 4) {
  std::string text;
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
    text += static_cast<char>(number >> shift & 0xff);
  }
  return text;
}

struct Made {
  std::string bytes;
  std::vector<uint32_t> starts;  // of entries; the last one is their end
};

// An index without its hash. In version 4 each name takes away all of the one before, but for what `taken` says.
Made Make(const std::vector<std::string>& names, uint32_t version = 2, size_t hash = 20,
          const std::vector<int>& taken = {}) {
  Made made{"DIRC" + Bytes(version) + Bytes(static_cast<uint32_t>(names.size())), {}};
  size_t length = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    made.starts.push_back(static_cast<uint32_t>(made.bytes.size()));
    const size_t cut = i < taken.size() ? static_cast<size_t>(taken[i]) : length;
    length = length - cut + names[i].size();
    std::string entry = std::string(40 + hash, '\1') +
                        Bytes(static_cast<uint32_t>(std::min<size_t>(length, 0xfff)), 2) +
                        (version == 4 ? std::string(1, static_cast<char>(cut)) : "") + names[i] +
                        '\0';
    if (version != 4) {
      entry.resize((entry.size() + 7) / 8 * 8, '\0');
    }
    made.bytes += entry;
  }
  made.starts.push_back(static_cast<uint32_t>(made.bytes.size()));
  return made;
}

std::string Extension(const std::string& name, const std::string& bytes) {
  return name + Bytes(static_cast<uint32_t>(bytes.size())) + bytes;
}

bool Keeps(const std::string& bytes, size_t hash = 20) {
  return IndexKeepsToWorktree(bytes + std::string(hash, '\2'), hash);
}

TEST(GitIndex, NamesOfTheWorktreeAreKept) {
  for (const char* name :
       {"a", "a/b", ".gitignore", ".gitmodules", "a/.gitattributes", "git", "...", "a..b", ".g",
        "git~2", ".git-x", ".git.d", "a/.github/x", "GIT", "\xe2\x80\x8cx"}) {
    EXPECT_TRUE(IsWorktreeName(name)) << name;
    EXPECT_TRUE(Keeps(Make({name}).bytes)) << name;
  }
  EXPECT_TRUE(
      Keeps(Make({"a/", ""}).bytes));  // a sparse directory; a name that is in the shared part
  EXPECT_TRUE(Keeps(Make({std::string(5000, 'x'), "y"}).bytes));
  EXPECT_TRUE(Keeps(Make({}).bytes));
  EXPECT_TRUE(Keeps("not an index at all, but longer than one"));
  EXPECT_TRUE(Keeps(""));
}

TEST(GitIndex, OthersAreNot) {
  for (const char* name : {"/a",
                           "a//b",
                           "../a",
                           "a/../b",
                           "..",
                           ".",
                           "./a",
                           ".git",
                           ".git/config",
                           "a/.git/b",
                           ".GIT/x",
                           "a/.Git",
                           ".git /x",
                           ".git./x",
                           ".git. .",
                           ".git:x",
                           ".git\\x",
                           "git~1/x",
                           "a/GIT~1",
                           "a//",
                           "/",
                           "\xe2\x80\x8c.git/x",
                           ".g\xe2\x80\x8ci\xe2\x80\x8ct/x"}) {
    EXPECT_FALSE(IsWorktreeName(name)) << name;
    EXPECT_FALSE(Keeps(Make({"a", name, "z"}).bytes)) << name;
    EXPECT_FALSE(Keeps(Make({name}, 3).bytes)) << name;
    EXPECT_FALSE(Keeps(Make({"a", name}, 4).bytes)) << name;
    EXPECT_FALSE(Keeps(Make({name}, 2, 32).bytes, 32)) << name;
  }
}

TEST(GitIndex, Version4PutsNamesTogether) {
  EXPECT_TRUE(Keeps(Make({"src/a", "b"}, 4, 20, {0, 1}).bytes));
  EXPECT_FALSE(Keeps(Make({".gix", "t/hooks"}, 4, 20, {0, 1}).bytes));
  EXPECT_FALSE(Keeps(Make({"x", "y"}, 4, 20, {0, 2}).bytes));  // more than there is
  // A number of several bytes: 0x80 0x00 is 128.
  Made made = Make({std::string(130, '.') + "git"}, 4, 20);
  made.bytes.replace(4, 8, Bytes(4) + Bytes(2));
  made.bytes += std::string(60, '\1') + Bytes(5, 2) + "\x80\0"s + "x\0"s;
  EXPECT_FALSE(Keeps(made.bytes));  // the length is 6
  made.bytes[made.bytes.size() - 5] = 6;
  EXPECT_TRUE(Keeps(made.bytes)) << "NO-CONTROL";
}

TEST(GitIndex, TwoReadingsAreRefused) {
  std::string shorter = Make({"a/../b"}).bytes;
  shorter[12 + 61] =
      1;  // git copies one byte more than the length, and reads on to the end of the text
  EXPECT_FALSE(Keeps(shorter));
  EXPECT_FALSE(Keeps(Make({"a\0/../b"s}).bytes));
  // Ids of another size: what is a name for one reader is not for the other.
  EXPECT_FALSE(Keeps(Make({"a", "b"}, 2, 32).bytes, 20));
  EXPECT_FALSE(Keeps(Make({"a", "b"}).bytes, 32));
  for (uint32_t version : {0, 1, 5}) {
    EXPECT_FALSE(Keeps(Make({"a"}, version).bytes)) << version;
  }
}

TEST(GitIndex, OffsetsLeadToTheSameEntries) {
  for (const uint32_t version : {2U, 4U}) {
    const Made made = Make({"a", "b", "c"}, version);
    const auto with = [&](const std::vector<std::pair<uint32_t, uint32_t>>& blocks, uint32_t end) {
      std::string offsets = Bytes(1);
      for (const auto& [start, count] : blocks) {
        offsets += Bytes(start) + Bytes(count);
      }
      return made.bytes + Extension("IEOT", offsets) +
             Extension("EOIE", Bytes(end) + std::string(20, 'h'));
    };
    const std::vector<uint32_t>& at = made.starts;
    EXPECT_TRUE(Keeps(with({{at[0], 2}, {at[2], 1}}, at[3])));
    EXPECT_FALSE(Keeps(with({{at[0], 2}, {at[2], 1}}, at[3] + 4)));
    EXPECT_FALSE(Keeps(with({{at[0], 2}, {at[1], 1}}, at[3])));
    EXPECT_FALSE(Keeps(with({{at[0], 1}, {at[1], 1}}, at[3])));
    EXPECT_FALSE(Keeps(with({{at[0], 2}, {at[2], 2}}, at[3])));
    EXPECT_FALSE(Keeps(with({{at[0], 2}, {at[3] + 30, 1}}, at[3])));
    // Found by its place, though it is a part of another extension.
    const std::string hidden = Extension("EOIE", Bytes(at[3] + 8) + std::string(20, 'h'));
    EXPECT_FALSE(Keeps(made.bytes + Extension("ABCD", hidden)));
    EXPECT_TRUE(Keeps(made.bytes + Extension("ABCD", hidden + "x"))) << "NO-CONTROL";
  }
  // A thread begins without the name before.
  const Made joined = Make({"ab", "c"}, 4, 20, {0, 1});
  EXPECT_FALSE(
      Keeps(joined.bytes + Extension("IEOT", Bytes(1) + Bytes(joined.starts[0]) + Bytes(1) +
                                                 Bytes(joined.starts[1]) + Bytes(1))));
}

TEST(GitIndex, AnyBytesAreRead) {
  for (const uint32_t version : {2U, 4U}) {
    const Made made = Make({"a", "b/c", "d"}, version);
    const std::string whole = made.bytes + Extension("TREE", "xyz");
    for (size_t size = 0; size < whole.size(); ++size) {
      const bool kept = Keeps(whole.substr(0, size));
      EXPECT_EQ(kept, size < 12 || size == made.bytes.size()) << size;
    }
    for (size_t at = 0; at < whole.size(); ++at) {
      for (int bit = 0; bit < 8; ++bit) {
        std::string other = whole;
        other[at] = static_cast<char>(other[at] ^ (1 << bit));
        (void)Keeps(other);
      }
    }
  }
}

TEST(GitConflicts, AreWhatGitWrites) {
  const std::string id(40, 'a');
  using Paths = std::vector<std::string>;
  EXPECT_EQ(ConflictPaths(id + "\ta b\0"s, 20), Paths{"a b"});
  EXPECT_EQ(ConflictPaths(id + ".12\ta\0"s + id + "\tb\0"s, 20), (Paths{"a", "b"}));
  EXPECT_EQ(ConflictPaths("", 20), Paths{});
  EXPECT_EQ(ConflictPaths(id + "\ta", 20), Paths{"a"});  // git reads it, too
  for (const std::string& list :
       {id + ".-1\ta\0"s, id + ".\ta\0"s, id + ". 1\ta\0"s, id + "x\ta\0"s, id + "\0"s, "\0"s,
        "\ta\0"s, id.substr(1) + "\ta\0"s, std::string(40, 'g') + "\ta\0"s, id + "\ta\0\0"s,
        "../" + id + "\ta\0"s}) {
    EXPECT_EQ(ConflictPaths(list, 20), std::nullopt) << list;
  }
  EXPECT_EQ(ConflictPaths(id + "\ta\0"s, 32), std::nullopt);
}

}  // namespace
}  // namespace coffer::isolation
