// SPDX-License-Identifier: Apache-2.0
#include "isolation/runtime/shell_tools.h"

#include <array>

namespace coffer::isolation {

namespace {

constexpr auto kTools = std::to_array<std::string_view>({
    // files
    "ls", "cat", "cp", "mv", "rm", "mkdir", "rmdir", "touch", "ln", "chmod", "mktemp", "dd", "split", "truncate",
    "readlink", "realpath", "stat", "du", "df", "sync", "install",
    // text
    "head", "tail", "wc", "sort", "uniq", "cut", "tr", "tee", "comm", "paste", "join", "fold", "fmt", "nl", "tac", "rev",
    "shuf", "od", "xxd", "expand", "grep", "egrep", "fgrep", "sed", "awk", "mawk", "diff", "cmp",
    // values
    "echo", "printf", "yes", "seq", "expr", "test", "[", "true", "false", "basename", "dirname", "factor", "numfmt",
    "bc", "getopt",
    // the system
    "sleep", "date", "env", "printenv", "pwd", "id", "whoami", "uname", "hostname", "nproc", "timeout", "kill", "nice",
    "nohup", "stty", "tty", "which",
    // sums, archives, finding
    "cksum", "md5sum", "sha1sum", "sha256sum", "sha512sum", "base64", "tar", "gzip", "gunzip", "zcat", "bzip2", "xz",
    "find", "xargs",
    // the shells themselves, whichever was asked for
    "sh", "dash",
});

}  // namespace

std::span<const std::string_view> ShellTools() { return kTools; }

}  // namespace coffer::isolation
