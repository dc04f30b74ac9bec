// SPDX-License-Identifier: Apache-2.0
#include "isolation/runtime/resolution_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/hex.h"
#include "base/sys.h"
#include "isolation/runtime/real_path.h"

namespace coffer::isolation {

namespace {

constexpr std::string_view kResolutionMagic =
    "coffer-runtime-3\n";  // raised whenever the format or a recipe changes
constexpr size_t kMaxResolutions = 1 << 20;
constexpr uint32_t kMaxEntries = 8192;

uint64_t Fingerprint(
    std::string_view bytes) {  // FNV-1a: finds damage, not malice; the file is ours alone
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : bytes) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  }
  return hash;
}

std::string FileName(std::string_view key) {
  std::string name = "runtime-";
  uint64_t hash = Fingerprint(key);
  for (int i = 0; i < 16; ++i, hash >>= 4) {
    name += kHexDigits[hash & 15];
  }
  return name;
}

template <typename T>
void Put(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void PutText(std::string& bytes, std::string_view text) {
  Put(bytes, static_cast<uint32_t>(text.size()));
  bytes += text;
}

// Takes values from the front; after the first that is not there everything is zero and good() is false.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  template <typename T>
  T Get() {
    T value{};
    const std::string_view bytes = Take(sizeof(T));
    if (good_) {
      ::memcpy(&value, bytes.data(), sizeof(T));
    }
    return value;
  }
  std::string_view Text() { return Take(Get<uint32_t>()); }
  uint32_t Count() {
    const auto count = Get<uint32_t>();
    good_ = good_ && count <= kMaxEntries;
    return good_ ? count : 0;
  }
  // An absolute path without surprises.
  std::string Path() {
    const std::string_view path = Text();
    good_ = good_ && path.starts_with('/') && path.size() < 4096 &&
            path.find('\0') == std::string_view::npos &&
            path.find("/../") == std::string_view::npos && !path.ends_with("/..");
    return std::string(path);
  }
  void Fail() { good_ = false; }
  bool good() const { return good_; }
  bool done() const { return good_ && rest_.empty(); }

 private:
  std::string_view Take(size_t size) {
    good_ = good_ && size <= rest_.size();
    if (!good_) {
      return {};
    }
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  std::string_view rest_;
  bool good_ = true;
};

enum Flag : uint8_t { kExecutable = 1, kDirectory = 2, kSameName = 4 };

// Opened only if it is ours alone.
UniqueFd OpenDirectory(const std::string& path) {
  Result<UniqueFd> fd = sys::Open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  struct stat status{};
  if (!fd.ok() || raw::Syscall(SYS_fstat, fd->get(), raw::Arg(&status)) < 0 ||
      status.st_uid != ::geteuid() || (status.st_mode & 077) != 0) {
    return {};
  }
  return std::move(fd).value();
}

}  // namespace

Witness Observe(const std::string& path) {
  Witness witness;
  witness.path = path;
  struct stat status{};
  if (Stat(path, status)) {
    const auto nanos = [](const timespec& time) {
      return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
    };
    witness.device = status.st_dev;
    witness.inode = status.st_ino;
    witness.size = static_cast<uint64_t>(status.st_size);
    witness.mtime = nanos(status.st_mtim);
    witness.ctime = nanos(status.st_ctim);
    witness.mode = status.st_mode;
  }
  return witness;
}

std::string EncodeResolution(std::string_view key, const std::vector<Witness>& witnesses,
                             const RuntimeSet& set) {
  std::string body;
  PutText(body, key);
  Put(body, static_cast<uint32_t>(witnesses.size()));
  for (const Witness& witness : witnesses) {
    PutText(body, witness.path);
    Put(body, witness.device);
    Put(body, witness.inode);
    Put(body, witness.size);
    Put(body, witness.mtime);
    Put(body, witness.ctime);
    Put(body, witness.mode);
  }
  Put(body, static_cast<uint32_t>(set.files.size()));
  for (const RuntimeFile& file : set.files) {
    const bool same = file.host == file.inside;
    Put(body, static_cast<uint8_t>((file.executable ? kExecutable : 0) |
                                   (file.directory ? kDirectory : 0) | (same ? kSameName : 0)));
    PutText(body, file.inside);
    if (!same) {
      PutText(body, file.host);
    }
  }
  Put(body, static_cast<uint32_t>(set.links.size()));
  for (const auto& [name, target] : set.links) {
    PutText(body, name);
    PutText(body, target);
  }
  std::string bytes(kResolutionMagic);
  Put(bytes, Fingerprint(body));
  return bytes + body;
}

std::optional<Remembered> DecodeResolution(std::string_view key, std::string_view bytes) {
  if (!bytes.starts_with(kResolutionMagic)) {
    return std::nullopt;
  }
  bytes.remove_prefix(kResolutionMagic.size());
  Reader front(bytes);
  const auto fingerprint = front.Get<uint64_t>();
  if (!front.good() || fingerprint != Fingerprint(bytes.substr(sizeof(fingerprint)))) {
    return std::nullopt;
  }
  Reader body(bytes.substr(sizeof(fingerprint)));
  if (body.Text() != key) {
    return std::nullopt;
  }
  Remembered remembered;
  for (uint32_t left = body.Count(); left > 0 && body.good(); --left) {
    Witness witness;
    witness.path = body.Path();
    witness.device = body.Get<uint64_t>();
    witness.inode = body.Get<uint64_t>();
    witness.size = body.Get<uint64_t>();
    witness.mtime = body.Get<int64_t>();
    witness.ctime = body.Get<int64_t>();
    witness.mode = body.Get<uint64_t>();
    remembered.witnesses.push_back(std::move(witness));
  }
  const uint32_t files = body.Count();
  remembered.set.files.reserve(files);
  for (uint32_t left = files; left > 0 && body.good(); --left) {
    const auto flags = body.Get<uint8_t>();
    RuntimeFile file;
    file.executable = (flags & kExecutable) != 0;
    file.directory = (flags & kDirectory) != 0;
    file.inside = body.Path();
    file.host = (flags & kSameName) != 0 ? file.inside : body.Path();
    file.remembered = true;
    remembered.set.files.push_back(std::move(file));
  }
  const uint32_t links = body.Count();
  remembered.set.links.reserve(links);
  for (uint32_t left = links; left > 0 && body.good(); --left) {
    std::string name = body.Path();
    const std::string_view target = body.Text();
    if (target.empty() || target.find('\0') != std::string_view::npos) {
      body.Fail();
    }
    remembered.set.links.emplace_back(std::move(name), target);
  }
  return body.done() ? std::optional(std::move(remembered)) : std::nullopt;
}

ResolutionCache::ResolutionCache(const std::string& directory) : directory_path_(directory) {
  if (!directory.empty()) {
    directory_ = OpenDirectory(directory);
  }
}

std::optional<RuntimeSet> ResolutionCache::Find(std::string_view key) const {
  if (!directory_.valid()) {
    return std::nullopt;
  }
  const Result<UniqueFd> fd =
      sys::OpenAt(directory_.get(), FileName(key), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  struct stat status{};
  if (!fd.ok() || raw::Syscall(SYS_fstat, fd->get(), raw::Arg(&status)) < 0 ||
      !S_ISREG(status.st_mode) || status.st_uid != ::geteuid() || (status.st_mode & 077) != 0) {
    return std::nullopt;
  }
  const Result<std::string> bytes = sys::ReadFd(fd->get(), kMaxResolutions);
  if (!bytes.ok()) {
    return std::nullopt;
  }
  std::optional<Remembered> remembered = DecodeResolution(key, *bytes);
  if (!remembered) {
    return std::nullopt;
  }
  const bool unchanged =
      std::all_of(remembered->witnesses.begin(), remembered->witnesses.end(),
                  [](const Witness& witness) { return Observe(witness.path) == witness; });
  return unchanged && !remembered->witnesses.empty() ? std::optional(std::move(remembered->set))
                                                     : std::nullopt;
}

void ResolutionCache::Keep(std::string_view key, const std::vector<Witness>& witnesses,
                           const RuntimeSet& set) const {
  if (directory_path_.empty()) {
    return;
  }
  if (!directory_.valid()) {
    [[maybe_unused]] const Status made =
        sys::MakeDirAt(AT_FDCWD, std::string(DirName(directory_path_)), 0700);
    if (!sys::MakeDirAt(AT_FDCWD, directory_path_, 0700).ok()) {
      return;  // there, but not ours alone; or the place above it cannot be written
    }
    directory_ = OpenDirectory(directory_path_);
    if (!directory_.valid()) {
      return;
    }
  }
  const std::string bytes = EncodeResolution(key, witnesses, set);
  if (bytes.size() > kMaxResolutions) {
    return;
  }
  const std::string name = FileName(key);
  const std::string draft = name + "." + std::to_string(::getpid());
  raw::Syscall(SYS_unlinkat, directory_.get(), raw::Arg(draft.c_str()), 0);
  {
    const Result<UniqueFd> fd =
        sys::OpenAt(directory_.get(), draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (!fd.ok()) {
      return;
    }
    if (!sys::WriteAll(fd->get(), bytes).ok()) {
      raw::Syscall(SYS_unlinkat, directory_.get(), raw::Arg(draft.c_str()), 0);
      return;
    }
  }
  if (raw::Syscall(SYS_renameat2, directory_.get(), raw::Arg(draft.c_str()), directory_.get(),
                   raw::Arg(name.c_str()), 0) < 0) {
    raw::Syscall(SYS_unlinkat, directory_.get(), raw::Arg(draft.c_str()), 0);
  }
}

}  // namespace coffer::isolation
