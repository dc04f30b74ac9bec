// SPDX-License-Identifier: Apache-2.0
#include "isolation/runtime/program.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>

#include "base/path_words.h"
#include "base/sys.h"
#include "isolation/runtime/shim.h"
#include "isolation/runtime/trampoline.h"

namespace coffer::isolation {

namespace {

constexpr size_t kMaxShebang = 256;                    // BINPRM_BUF_SIZE
constexpr size_t kMaxTrampoline = 4096 + kMaxShebang;  // with a path of any length

Error NotFound(const std::string& what, std::string hint = {}) {
  return {ErrorKind::kNotFound, "runtime.command.missing", what + ": command not found",
          std::move(hint), ENOENT};
}

Error NotExecutable(std::string_view code, std::string message, std::string hint = {}) {
  return {ErrorKind::kNotExecutable, "runtime.command." + std::string(code), std::move(message),
          std::move(hint), 0};
}

Error PathError(const std::string& path, Error error) {
  switch (error.sys_errno) {
    case 0:
      return error;  // not about this path: the host lacks something
    case ENOENT:
    case ENOTDIR:
      return {ErrorKind::kNotFound,
              "runtime.command.missing",
              PathInWords(path) + ": not found: no such file",
              {},
              error.sys_errno};
    case EISDIR:
      return NotExecutable("directory", PathInWords(path) + " is a directory");
    case EACCES:
      return NotExecutable("access", PathInWords(path) + ": permission denied",
                           "it must be a file that you may read");
    case ELOOP:
      return NotExecutable("loop", PathInWords(path) + ": too many levels of symbolic links");
    default:
      error.message = PathInWords(path) + ": " + sys::ErrnoText(error.sys_errno);
      return error;
  }
}

bool IsSpace(char c) { return c == ' ' || c == '\t'; }

std::string_view Trim(std::string_view text) {
  while (!text.empty() && IsSpace(text.front())) {
    text.remove_prefix(1);
  }
  while (!text.empty() && IsSpace(text.back())) {
    text.remove_suffix(1);
  }
  return text;
}

// A regular file with an x bit; `blocked` is set if there is a file without one.
bool IsProgram(const std::string& path, bool& blocked) {
  struct stat status{};
  if (!Stat(path, status) || !S_ISREG(status.st_mode)) {
    return false;
  }
  const bool executable = (status.st_mode & 0111) != 0;
  blocked = blocked || !executable;
  return executable;
}

}  // namespace

Shebang ParseShebang(std::string_view head) {
  head = head.substr(0, kMaxShebang);
  if (!head.starts_with("#!")) {
    return {};
  }
  const bool cut_off = head.size() == kMaxShebang && head.find('\n') == std::string_view::npos;
  head.remove_prefix(2);
  head = head.substr(0, head.find('\n'));
  if (head.find('\0') != std::string_view::npos || head.find('\r') != std::string_view::npos) {
    const bool windows = head.ends_with('\r');
    return {"", "", windows, windows && Trim(head).find_first_of(" \t") == std::string_view::npos};
  }
  head = Trim(head);
  size_t end = 0;
  while (end < head.size() && !IsSpace(head[end])) {
    ++end;
  }
  if (cut_off && end == head.size()) {
    return {};
  }
  return {std::string(head.substr(0, end)), std::string(Trim(head.substr(end)))};
}

Error EndsInCarriageReturn(const std::string& script) {
  return NotExecutable(
      "windows",
      PathInWords(script) +
          ": its first line ends in a carriage return, and no interpreter has such a name",
      "the file has the line ends of Windows; change them: sed -i 's/\\r$//' " +
          PathInWords(script));
}

Result<Program> OpenProgram(RealPaths& paths, const std::string& host, NeedX need_x,
                            const std::string& shown) {
  const std::string& path = shown.empty() ? host : shown;
  Program program;
  Result<RealPaths::OpenedFile> file = paths.Open(host);
  if (!file.ok()) {
    return PathError(path, std::move(file.error()));
  }
  program.place = std::move(file->place);
  program.status = file->status;
  if (need_x == NeedX::kYes && (file->status.st_mode & 0111) == 0) {
    return NotExecutable("mode", PathInWords(path) + ": permission denied: it is not executable",
                         "chmod +x " + PathInWords(path));
  }
  if ((file->status.st_mode & (S_ISUID | S_ISGID)) != 0) {
    return NotExecutable(
        "setuid",
        PathInWords(path) + " is setuid or setgid, and such programs are never brought in",
        "inside a boundary it would run without its privilege anyway");
  }
  Result<ElfInfo> elf = ReadElf(file->fd.get());
  if (elf.ok()) {
    program.elf = std::move(elf).value();
    return program;
  }
  if (elf.error().code != "runtime.elf.magic") {
    elf.error().message = PathInWords(path) + " is " + elf.error().message;
    return std::move(elf.error());
  }
  std::array<char, kMaxTrampoline> head;
  const long got = raw::Syscall(SYS_pread64, file->fd.get(), raw::Arg(head.data()),
                                static_cast<long>(head.size()), 0);
  if (got < 0) {
    return PathError(path, sys::ErrnoError("runtime.path", path, got));
  }
  const std::string_view start(head.data(), static_cast<size_t>(got));
  program.is_script = true;
  program.shebang = ParseShebang(start);
  if (std::string target = TrampolineTarget(start, DirName(program.place.real)); !target.empty()) {
    program.shebang = {.interpreter = std::move(target)};
  }
  return program;
}

const std::vector<std::string>& SearchPath() {
  // Built when first asked for: nothing may run at load.
  static const std::vector<std::string> path = {"/usr/local/bin",  "/usr/bin",  "/bin",
                                                "/usr/local/sbin", "/usr/sbin", "/sbin"};
  return path;
}

std::string FindSystemProgram(std::string_view name) {
  bool blocked = false;
  for (const std::string& directory : SearchPath()) {
    std::string path = directory + "/";
    path += name;
    if (IsProgram(path, blocked)) {
      return path;
    }
  }
  return {};
}

Result<std::string> FindProgram(const std::string& name) {
  if (name.empty() || name.size() > 255) {
    return NotFound(name.empty() ? "''" : "a name of more than 255 bytes");
  }
  // Behind a directory of PATH it would lead anywhere. A first line may hold one: env takes it as a
  // path, not as a name.
  if (name.find('/') != std::string::npos) {
    return NotFound(name, "a path is not looked up on PATH");
  }
  bool blocked = false;
  const char* const caller = ::getenv("PATH");
  std::string_view rest = caller == nullptr ? "" : caller;
  while (!rest.empty()) {
    const size_t colon = rest.find(':');
    const std::string_view directory = rest.substr(0, colon);
    rest.remove_prefix(colon == std::string_view::npos ? rest.size() : colon + 1);
    if (!directory.starts_with('/')) {
      continue;
    }
    const bool shims = IsShimDirectory(std::string(directory));
    std::string path =
        shims ? FindBehindShim(std::string(directory), name) : std::string(directory) + "/" + name;
    if (!path.empty() && IsProgram(path, blocked)) {
      return path;
    }
  }
  for (const std::string& directory : SearchPath()) {
    std::string path = directory + "/" + name;
    if (IsProgram(path, blocked)) {
      return path;
    }
  }
  if (blocked) {
    return NotExecutable("mode",
                         name + ": permission denied: the file of that name is not executable");
  }
  if (name.find(' ') != std::string::npos) {
    return NotFound(name, "a command and its arguments are words of their own: coffer run -- " +
                              name + "; for a line of the shell: coffer run -- sh -c '...'");
  }
  if (const size_t sign = name.find('='); sign != std::string::npos && sign > 0) {
    return NotFound(name,
                    "a variable of the command is a flag: coffer run --env " + name + " -- CMD");
  }
  constexpr std::array<std::string_view, 9> kShellWords = {
      "cd", "export", "source", ".", "alias", "ulimit", "set", "unset", "exec"};
  if (std::find(kShellWords.begin(), kShellWords.end(), name) != kShellWords.end()) {
    return NotFound(name, "it is a word of the shell: coffer run -- sh -c '" + name +
                              " ...'; --cwd PATH and --env K=V set a command's directory and "
                              "variables");
  }
  return NotFound(
      name,
      "it is searched for on your PATH, then in /usr/local/bin, /usr/bin, /bin and their sbin");
}

Result<std::string> Absolute(const std::string& path) {
  if (path.starts_with('/')) {
    return path;
  }
  std::array<char, 4096> here;
  const long size = raw::Syscall(SYS_getcwd, raw::Arg(here.data()), static_cast<long>(here.size()));
  if (size < 0) {
    return sys::ErrnoError("runtime.cwd", "cannot tell the working directory", size);
  }
  return std::string(here.data()) + "/" + path;
}

}  // namespace coffer::isolation
