// SPDX-License-Identifier: Apache-2.0
#include "call/never_send_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/regular_file.h"
#include "base/sys.h"
#include "base/text.h"
#include "call/operator_path.h"
#include "policy/never_send.h"

namespace coffer::call {
namespace {

Status CheckAccess(int fd, const std::string& path, uid_t owner) {
  struct stat info{};
  if (::fstat(fd, &info) != 0) {
    return HostFault("policy.file", fmt::format("cannot look at {}", Printable(path)));
  }
  if (info.st_uid != owner && info.st_uid != 0) {
    return Refused("policy.file", fmt::format("{} belongs to another user", Printable(path)),
                   "name a file of yours");
  }
  if ((info.st_mode & (S_IWGRP | S_IRWXO)) != 0) {
    return Refused(
        "policy.file",
        fmt::format("{} holds secrets, and other users may read or change it", Printable(path)),
        fmt::format("chmod 600 {}", Printable(path)));
  }
  // Of the other names nothing is known: a call may be shown one of them.
  if (info.st_nlink > 1) {
    return Refused(
        "policy.file",
        fmt::format("{} has other names (hard links), under which a call may be shown it",
                    Printable(path)),
        "name a copy that has no other name");
  }
  if (info.st_size > static_cast<off_t>(policy::kMostNeverSendBytes)) {
    return Refused("policy.file",
                   fmt::format("{} has {} bytes, and {} are read", Printable(path), info.st_size,
                               policy::kMostNeverSendBytes),
                   "keep at most 64 values of at most 256 bytes");
  }
  return {};
}

Result<std::string> ReadChecked(const std::string& path, std::optional<uid_t> operator_uid) {
  TRY_ASSIGN(const UniqueFd file, operator_uid ? OpenOperatorFile(path, *operator_uid)
                                               : sys::OpenRegular(path, O_RDONLY));
  TRY(CheckAccess(file.get(), path, operator_uid.value_or(::getuid())));
  TRY_ASSIGN(std::string text, sys::ReadFd(file.get(), policy::kMostNeverSendBytes));
  if (const auto values = policy::ParseNeverSend(text); !values.ok()) {
    return Refused("policy.file", fmt::format("{}: {}", Printable(path), values.error().message),
                   values.error().hint);
  }
  return text;
}

}  // namespace

Result<std::string> ReadNeverSendFile(const std::string& path, std::optional<uid_t> operator_uid,
                                      std::string_view said_by) {
  Result<std::string> text = ReadChecked(path, operator_uid);
  if (!text.ok()) {
    const std::string hint = text.error().hint;
    return Refused("policy.egress", fmt::format("{}: {}", said_by, text.error().message),
                   hint.empty() ? "name a file of yours that only you can read and change" : hint);
  }
  return text;
}

}  // namespace coffer::call
