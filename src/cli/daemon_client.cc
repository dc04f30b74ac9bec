// SPDX-License-Identifier: Apache-2.0
#include "cli/daemon_client.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>

#include <array>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/sys.h"
#include "base/text.h"
#include "base/unique_fd.h"

namespace coffer::cli {
namespace {

using raw::Arg;
using raw::Syscall;

constexpr size_t kLongestAnswer = 4 << 20;
constexpr timeval kAnswerPatience{30, 0};

Error NoDaemon(const std::string& socket) {
  return HostFault(
      "daemon.unreachable", fmt::format("no daemon answers at {}", Printable(socket)),
      "`coffer serve` starts one; --state DIR if its state is elsewhere, --socket PATH "
      "if its socket is");
}

Result<UniqueFd> ConnectToDaemon(const std::string& path) {
  // A path of its own may be too long for a socket: state directories lie deep.
  const size_t slash = path.rfind('/');
  const std::string parent = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const long dir =
      Syscall(SYS_openat, AT_FDCWD, Arg(parent.c_str()), O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
  if (dir < 0) {
    return NoDaemon(path);
  }
  const UniqueFd opened(static_cast<int>(dir));
  const std::string place = fmt::format("/proc/self/fd/{}/{}", opened.get(),
                                        slash == std::string::npos ? path : path.substr(slash + 1));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (place.size() >= sizeof(address.sun_path)) {
    return NoDaemon(path);
  }
  memcpy(address.sun_path, place.data(), place.size());
  const long made = Syscall(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (made < 0) {
    return sys::ErrnoError("daemon.socket", "cannot make a socket", made);
  }
  UniqueFd socket(static_cast<int>(made));
  for (const int option : {SO_RCVTIMEO, SO_SNDTIMEO}) {
    (void)::setsockopt(socket.get(), SOL_SOCKET, option, &kAnswerPatience, sizeof(kAnswerPatience));
  }
  if (Syscall(SYS_connect, socket.get(), Arg(&address), sizeof(address)) < 0) {
    return NoDaemon(path);
  }
  return socket;
}

std::string ReadAll(int socket) {
  std::string all;
  std::array<char, 65536> piece;
  for (;;) {
    const long got = Syscall(SYS_read, socket, Arg(piece.data()), piece.size());
    if (got == -EINTR) {
      continue;
    }
    if (got <= 0 || all.size() > kLongestAnswer) {
      return all;
    }
    all.append(piece.data(), static_cast<size_t>(got));
  }
}

// What the daemon says of a refusal (RFC 9457).
Error ProblemOf(int status, const std::string& body) {
  const Result<Json> json = ParseJson(body);
  const auto member = [&](const char* name) {
    return json.ok() && json->is_object() && json->contains(name) && (*json)[name].is_string()
               ? Printable((*json)[name].get<std::string>())
               : std::string();
  };
  const std::string detail = member("detail");
  const std::string code = member("code");
  return Refused(code.empty() ? "daemon.answer" : code,
                 detail.empty() ? fmt::format("the daemon answered {}", status) : detail,
                 member("hint"));
}

}  // namespace

Result<std::string> AskDaemon(const std::string& socket, std::string_view method,
                              std::string_view path, std::string_view json_body) {
  TRY_ASSIGN(const UniqueFd connection, ConnectToDaemon(socket));
  std::string request = fmt::format(
      "{} {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAccept: application/json\r\n",
      method, path);
  if (!json_body.empty()) {
    request +=
        fmt::format("Content-Type: application/json\r\nContent-Length: {}\r\n", json_body.size());
  }
  request += "\r\n";
  request += json_body;
  TRY(sys::WriteAll(connection.get(), request));
  const std::string answer = ReadAll(connection.get());
  const size_t end = answer.find("\r\n\r\n");
  constexpr std::string_view kStart = "HTTP/1.1 ";
  int status = 0;
  if (end == std::string::npos || !answer.starts_with(kStart) ||
      std::from_chars(&answer[kStart.size()], &answer[end], status).ec != std::errc()) {
    return NoDaemon(socket);
  }
  std::string body = answer.substr(end + 4);
  if (status < 200 || status > 299) {
    return ProblemOf(status, body);
  }
  return body;
}

}  // namespace coffer::cli
