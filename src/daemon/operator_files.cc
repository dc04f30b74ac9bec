// SPDX-License-Identifier: Apache-2.0
#include "daemon/operator_files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <vector>

#include "base/passed_fds.h"
#include "base/sys.h"
#include "call/operator_path.h"

namespace coffer::daemon {
namespace {

using raw::Arg;
using raw::Syscall;

constexpr size_t kFiles = 4;
static_assert(kFiles <= kMostPassedFds);
constexpr size_t kMostOperatorBytes = 1 << 20;

// What the monitor says about each file.
enum Slot : char { kNone = '-', kSent = 'f', kYourself = 'y', kFailed = 'e', kUnchanged = '=' };

struct Named {
  const std::string& path;
  std::optional<std::string> OperatorFiles::* text;
  bool may_be_missing;
};

std::array<Named, kFiles> NamesOf(const Config& config) {
  return {Named{config.file, &OperatorFiles::config, config.file_is_default},
          Named{config.tls_certificate, &OperatorFiles::tls_certificate, false},
          Named{config.tls_key, &OperatorFiles::tls_key, false},
          Named{config.jwks, &OperatorFiles::jwks, false}};
}

bool IsBelow(const std::filesystem::path& path, const std::filesystem::path& directory) {
  const auto [end, rest] =
      std::mismatch(directory.begin(), directory.end(), path.begin(), path.end());
  return end == directory.end();
}

// As it is written, and as its directory really is.
bool GatewayMayWrite(const Config& config, const std::string& path) {
  std::error_code failed;
  const std::filesystem::path state = std::filesystem::weakly_canonical(config.state, failed);
  const std::filesystem::path given = std::filesystem::absolute(path, failed).lexically_normal();
  const std::filesystem::path real =
      std::filesystem::weakly_canonical(given.parent_path(), failed) / given.filename();
  return failed || IsBelow(given, std::filesystem::path(config.state).lexically_normal()) ||
         IsBelow(given, state) || IsBelow(real, state);
}

Result<UniqueFd> OpenFile(const std::string& path) {
  return sys::Open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

bool IsConfig(const Named& name) { return name.text == &OperatorFiles::config; }

Result<UniqueFd> OpenNamed(const Config& config, const Named& name) {
  if (!IsConfig(name)) {
    return OpenFile(name.path);
  }
  // First by name: a default that is not there need not be in a place of the operator's.
  TRY_ASSIGN(const bool there, sys::Exists(name.path));
  if (!there) {
    return sys::ErrnoError("daemon.file", name.path, -ENOENT);
  }
  return call::OpenOperatorFile(name.path, config.operator_uid);
}

Status ReadInto(const Named& name, Result<UniqueFd> opened, OperatorFiles& files) {
  if (!opened.ok()) {
    if (name.may_be_missing && opened.error().sys_errno == ENOENT) {
      return {};
    }
    if (opened.error().kind == ErrorKind::kRefused) {
      return std::move(opened.error());
    }
    return HostFault("daemon.file", "cannot open " + name.path + ": " + opened.error().message);
  }
  Result<std::string> text = sys::ReadFd(opened->get(), kMostOperatorBytes);
  if (!text.ok()) {
    return HostFault("daemon.file", "cannot read " + name.path + ": " + text.error().message);
  }
  files.*name.text = std::move(text).value();
  return {};
}

}  // namespace

Result<OperatorFiles> ReadOperatorFiles(const Config& config) {
  OperatorFiles files;
  for (const Named& name : NamesOf(config)) {
    if (!name.path.empty()) {
      TRY(ReadInto(name, OpenNamed(config, name), files));
    }
  }
  return files;
}

Result<std::optional<std::string>> ReadConfigFile(const Config& config) {
  OperatorFiles files;
  const Named name = NamesOf(config).front();
  if (!name.path.empty()) {
    TRY(ReadInto(name, OpenNamed(config, name), files));
  }
  return std::move(files.config);
}

void SendManifestsChanged(int to_gateway) {
  std::array<char, kFiles> slots{};
  slots.fill(kUnchanged);
  (void)Syscall(SYS_sendto, to_gateway, Arg(slots.data()), slots.size(),
                MSG_DONTWAIT | MSG_NOSIGNAL, 0, 0);
}

void SendOperatorFiles(const Config& config, int to_gateway) {
  std::array<char, kFiles> slots{};
  std::vector<UniqueFd> opened;
  size_t at = 0;
  for (const Named& name : NamesOf(config)) {
    char& slot = slots[at++];
    slot = name.path.empty() ? kNone : kYourself;
    if (slot == kNone || (!IsConfig(name) && GatewayMayWrite(config, name.path))) {
      continue;
    }
    Result<UniqueFd> file = OpenNamed(config, name);
    slot = file.ok() ? kSent : kFailed;
    if (file.ok()) {
      opened.push_back(std::move(file).value());
    }
  }
  std::vector<int> numbers;
  for (const UniqueFd& file : opened) {
    numbers.push_back(file.get());
  }
  (void)SendWithFds(to_gateway, std::as_bytes(std::span(slots)), numbers, MSG_DONTWAIT);
}

Result<std::optional<OperatorFiles>> ReceiveOperatorFiles(const Config& config, int from_monitor) {
  std::array<char, kFiles> slots{};
  MessageWithFds received =
      ReceiveWithFds(from_monitor, std::as_writable_bytes(std::span(slots)), MSG_DONTWAIT);
  if (received.got != static_cast<long>(slots.size())) {
    return Internal(std::string(kMonitorGone), "the monitor is gone");
  }
  if (slots.front() == kUnchanged) {
    return std::optional<OperatorFiles>();
  }
  OperatorFiles files;
  size_t at = 0;
  size_t next = 0;
  for (const Named& name : NamesOf(config)) {
    switch (slots[at++]) {
      case kNone:
        break;
      case kSent:
        if (next >= received.fds.size()) {
          return Internal("daemon.file", "a descriptor is missing");
        }
        TRY(ReadInto(name, std::move(received.fds[next++]), files));
        break;
      default:
        // Also what the monitor could not open: the reason is the same for us, or "permission denied".
        TRY(ReadInto(name, OpenNamed(config, name), files));
        break;
    }
  }
  return std::optional(std::move(files));
}

}  // namespace coffer::daemon
