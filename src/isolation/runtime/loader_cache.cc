// SPDX-License-Identifier: Apache-2.0
#include "isolation/runtime/loader_cache.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstdint>

#include "base/ascii.h"
#include "base/sys.h"

namespace coffer::isolation {

namespace {

constexpr std::string_view kMagic = "glibc-ld.so.cache1.1";
constexpr std::string_view kOldMagic = "ld.so-1.7.0";
constexpr size_t kOldHeader = 16;  // magic, padding, count
constexpr size_t kOldEntry = 12;
constexpr size_t kHeader =
    48;  // magic, count, string bytes, flags, padding, extension offset, unused
constexpr size_t kEntry = 24;  // flags, key, value, osversion, hwcap
constexpr off_t kMaxFile = 64 << 20;

// FLAG_ELF_LIBC6 with the machine's flag (glibc, sysdeps/generic/ldconfig.h).
#if defined(__aarch64__)
constexpr uint32_t kNative = 0x0a03;
#elif defined(__x86_64__)
constexpr uint32_t kNative = 0x0303;
#else
#error "unknown machine"
#endif
constexpr uint8_t kLittleEndian = 2;  // cache_file_new_flags_endian_little

template <typename T>
T Load(std::string_view bytes, size_t at) {
  T value;
  ::memcpy(&value, bytes.data() + at, sizeof(value));
  return value;
}

template <typename T>
void Store(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// The order of the entries: like strcmp, but runs of digits compare as numbers, so that libx.so.10 > libx.so.9.
int Compare(std::string_view a, std::string_view b) {
  size_t i = 0;
  size_t j = 0;
  while (i < a.size()) {
    const char left = a[i];
    const char right = j < b.size() ? b[j] : '\0';
    if (IsDigit(left)) {
      if (!IsDigit(right)) {
        return 1;
      }
      uint64_t left_number = 0;
      uint64_t right_number = 0;
      while (i < a.size() && IsDigit(a[i])) {
        left_number = left_number * 10 + static_cast<uint64_t>(a[i++] - '0');
      }
      while (j < b.size() && IsDigit(b[j])) {
        right_number = right_number * 10 + static_cast<uint64_t>(b[j++] - '0');
      }
      if (left_number != right_number) {
        return left_number < right_number ? -1 : 1;
      }
    } else if (IsDigit(right)) {
      return -1;
    } else if (left != right) {
      return static_cast<unsigned char>(left) < static_cast<unsigned char>(right) ? -1 : 1;
    } else {
      ++i;
      ++j;
    }
  }
  return j < b.size() ? -1 : 0;
}

}  // namespace

struct LoaderCache::Entry {
  uint32_t flags = 0;
  uint32_t key = 0;
  uint32_t value = 0;
  uint64_t hwcap = 0;
};

void LoaderCache::Open(const std::string& path) {
  const Result<UniqueFd> fd = sys::Open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  struct stat status{};
  if (!fd.ok() || raw::Syscall(SYS_fstat, fd->get(), raw::Arg(&status)) < 0) {
    return;
  }
  if (!S_ISREG(status.st_mode) || status.st_uid != 0 || (status.st_mode & 022) != 0 ||
      status.st_size <= 0 || status.st_size > kMaxFile) {
    return;
  }
  const auto size = static_cast<size_t>(status.st_size);
  owned_ = std::make_unique_for_overwrite<char[]>(size);
  size_t have = 0;
  while (have < size) {
    const long got = raw::Syscall(SYS_pread64, fd->get(), raw::Arg(owned_.get() + have),
                                  static_cast<long>(size - have), static_cast<long>(have));
    if (got <= 0) {
      break;
    }
    have += static_cast<size_t>(got);
  }
  Use({owned_.get(), have});
}

void LoaderCache::Use(std::string_view bytes) {
  bytes_ = {};
  count_ = 0;
  if (bytes.starts_with(kOldMagic) && bytes.size() >= kOldHeader) {
    const size_t old = kOldHeader + size_t{Load<uint32_t>(bytes, 12)} * kOldEntry;
    const size_t aligned = (old + 7) & ~size_t{7};
    bytes.remove_prefix(std::min(bytes.size(), aligned));
  }
  if (!bytes.starts_with(kMagic) || bytes.size() < kHeader) {
    return;
  }
  const size_t count = Load<uint32_t>(bytes, 20);
  const auto endian = static_cast<uint8_t>(bytes[28] & 3);
  if (endian != 0 && endian != kLittleEndian) {
    return;
  }
  if (count > (bytes.size() - kHeader) / kEntry) {
    return;
  }
  bytes_ = bytes;
  count_ = count;
}

LoaderCache::Entry LoaderCache::At(size_t index) const {
  const size_t at = kHeader + index * kEntry;
  return {Load<uint32_t>(bytes_, at), Load<uint32_t>(bytes_, at + 4),
          Load<uint32_t>(bytes_, at + 8), Load<uint64_t>(bytes_, at + 16)};
}

std::string_view LoaderCache::Text(size_t offset) const {
  if (offset >= bytes_.size()) {
    return {};
  }
  const std::string_view rest = bytes_.substr(offset, 4096);
  const size_t end = rest.find('\0');
  return end == std::string_view::npos ? std::string_view{} : rest.substr(0, end);
}

std::string_view LoaderCache::Find(std::string_view soname) const {
  size_t low = 0;  // the first entry whose name is not greater than soname
  size_t high = count_;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (Compare(Text(At(middle).key), soname) > 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  for (; low < count_; ++low) {
    const Entry entry = At(low);
    if (Compare(Text(entry.key), soname) != 0) {
      break;
    }
    if (entry.flags == kNative && entry.hwcap == 0 && Text(entry.key) == soname) {
      const std::string_view path = Text(entry.value);
      if (path.starts_with('/')) {
        return path;
      }
    }
  }
  return {};
}

std::vector<std::pair<std::string, std::string>> LoaderCache::All() const {
  std::vector<std::pair<std::string, std::string>> all;
  for (size_t i = 0; i < count_; ++i) {
    const Entry entry = At(i);
    if (entry.flags == kNative && entry.hwcap == 0 && Text(entry.value).starts_with('/')) {
      all.emplace_back(Text(entry.key), Text(entry.value));
    }
  }
  return all;
}

std::string BuildLoaderCache(std::vector<std::pair<std::string, std::string>> libraries) {
  std::sort(libraries.begin(), libraries.end(), [](const auto& a, const auto& b) {
    const auto order = Compare(a.first, b.first);
    return order != 0 ? order > 0 : a.second < b.second;
  });
  std::string entries;
  std::string strings;
  const size_t base = kHeader + libraries.size() * kEntry;
  for (const auto& [soname, path] : libraries) {
    Store(entries, kNative);
    Store(entries, static_cast<uint32_t>(base + strings.size()));
    strings.append(soname).push_back('\0');
    Store(entries, static_cast<uint32_t>(base + strings.size()));
    strings.append(path).push_back('\0');
    Store(entries, uint32_t{0});  // osversion
    Store(entries, uint64_t{0});  // hwcap
  }
  std::string file(kMagic);
  file.reserve(base + strings.size());
  Store(file, static_cast<uint32_t>(libraries.size()));
  Store(file, static_cast<uint32_t>(strings.size()));
  file.push_back(static_cast<char>(kLittleEndian));
  file.resize(kHeader, '\0');
  return file + entries + strings;
}

}  // namespace coffer::isolation
