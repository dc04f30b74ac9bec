// SPDX-License-Identifier: Apache-2.0
#include "isolation/git_index.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "policy/folded_name.h"

namespace coffer::isolation {
namespace {

constexpr size_t kHeader = 12;          // signature, version, number of entries
constexpr size_t kFieldsOfEntry = 40;   // before the object id
constexpr size_t kExtensionHeader = 8;  // signature, size
constexpr uint16_t kExtendedFlags = 0x4000;
constexpr uint16_t kLengthMask = 0x0fff;  // also: the name is so long or longer

// Nearly every name ends here. Characters that some file systems leave out are not ASCII.
bool MayBeGit(char first) {
  return first == '.' || first == 'g' || first == 'G' || static_cast<unsigned char>(first) >= 0x80;
}

// Also on file systems of Windows: with blanks or dots behind it, with a stream, and by its short name.
bool IsGit(std::string_view folded) {
  if (folded == "git~1") {
    return true;
  }
  if (!folded.starts_with(".git")) {
    return false;
  }
  const size_t end = folded.find_first_not_of(" .", 4);
  return end == std::string_view::npos || folded[end] == ':' || folded[end] == '\\';
}

class IndexReader {
 public:
  IndexReader(std::string_view text, size_t hash_size) : text_(text), hash_size_(hash_size) {}

  bool Run() {
    if (text_.size() < kHeader + hash_size_ || !text_.starts_with("DIRC")) {
      return true;  // git does not read it
    }
    version_ = Number(4);
    const uint32_t count = Number(8);
    if (version_ < 2 || version_ > 4) {
      return false;
    }
    text_.remove_suffix(hash_size_);  // a hash of the rest, which git need not check
    at_ = kHeader;
    for (uint32_t i = 0; i < count; ++i) {
      if (!ReadEntry()) {
        return false;
      }
    }
    end_of_entries_ = at_;
    return ReadExtensions();
  }

 private:
  uint32_t Number(size_t at) const {
    uint32_t number = 0;
    for (size_t i = at; i < at + 4; ++i) {
      number = number << 8 | static_cast<unsigned char>(text_[i]);
    }
    return number;
  }
  uint16_t Flags(size_t at) const {
    return static_cast<uint16_t>(static_cast<unsigned char>(text_[at]) << 8 |
                                 static_cast<unsigned char>(text_[at + 1]));
  }
  bool Has(size_t size) const { return text_.size() - at_ >= size; }

  bool ReadEntry() {
    const size_t start = at_;
    if (!Has(kFieldsOfEntry + hash_size_ + 4)) {
      return false;
    }
    at_ += kFieldsOfEntry + hash_size_;
    const uint16_t flags = Flags(at_);
    at_ += (flags & kExtendedFlags) != 0 ? 4 : 2;
    size_t kept = 0;  // of the name before
    if (version_ == 4 && !ReadKept(kept)) {
      return false;
    }
    const size_t end = text_.find('\0', at_);
    if (end == std::string_view::npos) {
      return false;
    }
    entries_.push_back({start, kept == 0});
    name_.resize(kept);
    name_ += text_.substr(at_, end - at_);
    at_ = version_ == 4 ? end + 1 : start + ((end - start + 8) & ~size_t{7});
    // Git goes by the length and by the end of the text, each in its place.
    const size_t length = flags & kLengthMask;
    return at_ <= text_.size() && length == std::min(name_.size(), size_t{kLengthMask}) &&
           IsKeptName();
  }

  // Version 4: how many bytes to take away from the end of the name before.
  bool ReadKept(size_t& kept) {
    uint64_t taken = 0;
    for (bool more = true, first = true; more; first = false) {
      if (!Has(1) || taken > UINT32_MAX) {
        return false;
      }
      const auto byte = static_cast<unsigned char>(text_[at_++]);
      taken = first ? byte & 0x7f : ((taken + 1) << 7) | (byte & 0x7f);
      more = (byte & 0x80) != 0;
    }
    if (taken > name_.size()) {
      return false;
    }
    kept = name_.size() - taken;
    return true;
  }

  // Directories of a sparse index end with a slash. A split index takes an empty name from its shared part.
  bool IsKeptName() const {
    const std::string_view name = name_;
    return name.empty() ||
           IsWorktreeName(name.substr(0, name.size() - (name.ends_with('/') ? 1 : 0)));
  }

  bool ReadExtensions() {
    // Git looks for the end of the entries here, whatever else these bytes belong to.
    const size_t eoie = kExtensionHeader + 4 + hash_size_;
    if (text_.size() >= end_of_entries_ + eoie && text_.substr(text_.size() - eoie, 4) == "EOIE" &&
        Number(text_.size() - eoie + kExtensionHeader) != end_of_entries_) {
      return false;
    }
    while (at_ < text_.size()) {
      if (!Has(kExtensionHeader)) {
        return false;
      }
      const std::string_view signature = text_.substr(at_, 4);
      const size_t size = Number(at_ + 4);
      at_ += kExtensionHeader;
      if (!Has(size) || (signature == "IEOT" && !ReadOffsets(size))) {
        return false;
      }
      at_ += size;
    }
    return true;
  }

  // Where threads of git begin to read, and how many entries each reads.
  bool ReadOffsets(size_t size) const {
    if (size < 4 || (size - 4) % 8 != 0) {
      return false;
    }
    size_t next = 0;
    for (size_t at = at_ + 4; at < at_ + size; at += 8) {
      const size_t count = Number(at + 4);
      if (count > entries_.size() - next ||
          (count > 0 && (Number(at) != entries_[next].start || !entries_[next].whole))) {
        return false;
      }
      next += count;
    }
    return next == entries_.size();
  }

  struct Entry {
    size_t start;
    bool whole;  // its name is read without the one before
  };

  std::string_view text_;
  size_t hash_size_;
  size_t at_ = 0;
  size_t end_of_entries_ = 0;
  uint32_t version_ = 0;
  std::string name_;
  std::vector<Entry> entries_;
};

bool IsHash(std::string_view text, size_t hash_size) {
  return text.size() == 2 * hash_size && text.find_first_not_of("0123456789abcdef") == text.npos;
}

}  // namespace

bool IsWorktreeName(std::string_view path) {
  for (;;) {
    const std::string_view component = path.substr(0, path.find('/'));
    if (component.empty() || component == "." || component == ".." ||
        (MayBeGit(component[0]) && IsGit(policy::FoldedName(component)))) {
      return false;
    }
    if (component.size() == path.size()) {
      return true;
    }
    path.remove_prefix(component.size() + 1);
  }
}

bool IndexKeepsToWorktree(std::string_view index, size_t hash_size) {
  return IndexReader(index, hash_size).Run();
}

std::optional<std::vector<std::string>> ConflictPaths(std::string_view list, size_t hash_size) {
  std::vector<std::string> paths;
  while (!list.empty()) {
    const std::string_view entry = list.substr(0, list.find('\0'));
    list.remove_prefix(std::min(entry.size() + 1, list.size()));
    const size_t tab = entry.find('\t');
    const std::string_view id = entry.substr(0, tab);
    const size_t dot = std::min(id.find('.'), id.size());
    const std::string_view variant = id.substr(dot);
    if (tab == std::string_view::npos || !IsHash(id.substr(0, dot), hash_size) || variant == "." ||
        variant.find_first_not_of("0123456789", 1) < variant.size()) {
      return std::nullopt;
    }
    paths.emplace_back(entry.substr(tab + 1));
  }
  return paths;
}

}  // namespace coffer::isolation
