// SPDX-License-Identifier: Apache-2.0
#include "call/warden/volumes.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/hex.h"
#include "base/sys.h"
#include "limits/volume.h"

namespace coffer::call {
namespace {

constexpr int kPatience = 30'000;  // milliseconds
constexpr uint32_t kMagic = 0x636f5640;

// One send, well below what a socket takes at once.
struct VolumeAnswer {
  uint32_t magic = kMagic;
  uint32_t failed = 0;
  int32_t sys_errno = 0;
  uint32_t reserved = 0;
  char code[48] = {};  // NUL-terminated
  char message[192] = {};
};

void Copy(const std::string& text, char* to, size_t size) {
  std::copy_n(text.begin(), std::min(text.size(), size - 1), to);
}

bool IsSessionId(const std::string& id) {
  return !id.empty() &&
         std::all_of(id.begin(), id.end(), [](char c) { return HexValue(c) >= 0 || c == '-'; });
}

// `volumes` beside the directory of sessions. The directory above belongs to the gateway, which may have put something
// else there: only a directory that is root's, and closed to other users, is used.
Result<UniqueFd> OpenImages(const std::string& sessions) {
  const std::string path = sessions.substr(0, sessions.rfind('/')) + "/volumes";
  const Status made = sys::MakeDirAt(AT_FDCWD, path, 0700);
  if (!made.ok() && made.error().sys_errno != EEXIST) {
    return made.error();
  }
  TRY_ASSIGN(UniqueFd images, sys::OpenNoLinks(AT_FDCWD, path, O_RDONLY | O_DIRECTORY));
  struct stat info{};
  if (::fstat(images.get(), &info) != 0 || info.st_uid != 0 || (info.st_mode & 077) != 0) {
    return Refused("limits.volume.directory", "the directory of volumes is not root's alone",
                   "remove it: the daemon makes it anew");
  }
  return images;
}

Status Serve(const std::string& sessions, const WardenMessage& message) {
  const std::string id = message.call_id;
  const bool open = message.verb == static_cast<uint32_t>(WardenVerb::kOpenVolume);
  if (::geteuid() != 0 || sessions.empty()) {
    return HostFault(limits::kNoVolumes, "only root can mount file systems of sessions");
  }
  if (!IsSessionId(id) ||
      (open && (message.size < kSmallestVolume || message.size > kLargestVolume))) {
    return Refused("policy.request", "this is not a volume of a session");
  }
  TRY_ASSIGN(const UniqueFd images, OpenImages(sessions));
  TRY_ASSIGN(const UniqueFd mounts, sys::OpenNoLinks(AT_FDCWD, sessions, O_RDONLY | O_DIRECTORY));
  const std::string name = "session-" + id;
  if (!open) {
    return limits::CloseVolume(images.get(), mounts.get(), name);
  }
  TRY_ASSIGN(const std::vector<sys::DirEntry> there, sys::ListDir(images.get()));
  if (there.size() >= kMostVolumes) {
    return Refused("limits.volume", "too many sessions have file systems of their own",
                   "end some of them");
  }
  struct stat owner{};
  if (::fstat(mounts.get(), &owner) != 0) {
    return HostFault("limits.volume", "cannot look at the directory of sessions");
  }
  return limits::OpenVolume({images.get(), mounts.get(), name, message.size, owner.st_uid});
}

}  // namespace

void ServeVolume(const std::string& sessions, const WardenMessage& message, int answer) {
  const Status done = Serve(sessions, message);
  VolumeAnswer said;
  if (!done.ok()) {
    said.failed = 1;
    said.sys_errno = done.error().sys_errno;
    Copy(done.error().code, said.code, sizeof(said.code));
    Copy(done.error().message, said.message, sizeof(said.message));
  }
  // A socket that the gateway filled must not hold this process. O_NONBLOCK would not do: the gateway could clear it.
  (void)::send(answer, &said, sizeof(said), MSG_DONTWAIT | MSG_NOSIGNAL);
  ::_exit(0);
}

Status AskForVolume(int control, WardenVerb verb, const std::string& session_id, uint64_t bytes) {
  WardenMessage message;
  if (session_id.empty() || session_id.size() >= sizeof(message.call_id)) {
    return Internal("internal.wire", "the id of a session is too long");
  }
  TRY_ASSIGN(SocketPair channel, MakeSocketPair(SOCK_STREAM));
  message.verb = static_cast<uint32_t>(verb);
  message.size = bytes;
  memcpy(message.call_id, session_id.data(), session_id.size());
  const int descriptors[kVolumeDescriptors] = {channel.second.get()};
  TRY(SendMessage(control, message, descriptors));
  channel.second.Reset();
  pollfd wait{channel.first.get(), POLLIN, 0};
  VolumeAnswer said;
  if (::poll(&wait, 1, kPatience) != 1 ||
      ::read(channel.first.get(), &said, sizeof(said)) != static_cast<ssize_t>(sizeof(said)) ||
      said.magic != kMagic) {
    return HostFault("limits.volume", "the warden did not make room for the session",
                     "try again when fewer calls run");
  }
  if (said.failed == 0) {
    return {};
  }
  said.code[sizeof(said.code) - 1] = said.message[sizeof(said.message) - 1] = '\0';
  return Error{ErrorKind::kHost, said.code, said.message, "", said.sys_errno};
}

}  // namespace coffer::call
