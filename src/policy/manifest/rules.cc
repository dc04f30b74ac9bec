// SPDX-License-Identifier: Apache-2.0
#include "policy/manifest/rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "policy/envelope.h"

namespace coffer::policy {
namespace {

// Kernel file systems: mounting one hands the host out, whatever the reason.
constexpr std::string_view kKernelTrees[] = {"/proc", "/sys", "/dev"};

// What the boundary makes itself, or what its runtime lives in.
constexpr std::string_view kOwnTrees[] = {"/proc",      "/sys", "/dev", "/etc",   "/in",
                                          "/usr",       "/bin", "/lib", "/lib64", "/sbin",
                                          "/workspace", "/tmp", "/run"};

bool Within(std::string_view path, std::string_view tree) {
  return path == tree || (path.starts_with(tree) && path[tree.size()] == '/');
}

bool HasControl(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) == 0x7f;
  });
}

std::optional<Objection> ObjectToForm(std::string_view path) {
  if (HasControl(path)) {
    return Objection{"a control character in a path", "", true};
  }
  if (!path.starts_with('/')) {
    return Objection{fmt::format("\"{}\" is not an absolute path", Printable(path)),
                     "write it from the root, such as /srv/invoices", true};
  }
  if (path.find_first_of("*?[") != std::string_view::npos) {
    return Objection{fmt::format("\"{}\" is a pattern, and paths have none", Printable(path)),
                     "name one directory", true};
  }
  if (path != "/" && !IsCleanPath(path)) {
    return Objection{
        fmt::format("\"{}\" has \"..\", \".\", \"//\" or a \"/\" at its end", Printable(path)),
        "write the plain path of the directory itself", true};
  }
  if (path.size() > 4000) {
    return Objection{"a path of more than 4000 bytes", "", true};
  }
  return std::nullopt;
}

}  // namespace

bool IsCleanPath(std::string_view path) {
  if (!path.starts_with('/') || path.size() < 2 || path.ends_with('/') || HasControl(path)) {
    return false;
  }
  for (size_t start = 1; start <= path.size();) {
    const size_t end = std::min(path.find('/', start), path.size());
    const std::string_view part = path.substr(start, end - start);
    if (part.empty() || part == "." || part == ".." || part.size() > 255) {
      return false;
    }
    start = end + 1;
  }
  return true;
}

std::optional<Objection> ObjectToHostPath(std::string_view path) {
  if (auto objection = ObjectToForm(path)) {
    return objection;
  }
  for (const std::string_view tree : kKernelTrees) {
    if (Within(path, tree)) {
      return Objection{fmt::format("{} is the kernel's, and is never mounted", Printable(path)),
                       "name a directory of files", true};
    }
  }
  if (const auto reason = OverBroadReason(path)) {
    return Objection{Printable(*reason),
                     "name the directory the tool needs; if it truly needs this one, write "
                     "dangerously_host instead of host, with a reason"};
  }
  return std::nullopt;
}

std::optional<Objection> ObjectToMountPoint(std::string_view path) {
  if (auto objection = ObjectToForm(path)) {
    return objection;
  }
  const bool own =
      path == "/" || std::any_of(std::begin(kOwnTrees), std::end(kOwnTrees),
                                 [&](std::string_view tree) { return Within(path, tree); });
  if (own) {
    return Objection{fmt::format("{} is a place the boundary makes itself", Printable(path)),
                     "choose another, such as /data", true};
  }
  return std::nullopt;
}

std::optional<Objection> ObjectToUrlPath(std::string_view path) {
  if (!path.starts_with('/') || HasControl(path) ||
      path.find_first_of("?# \\%") != std::string_view::npos) {
    return Objection{fmt::format("\"{}\" is not a path of a URL", Printable(path)),
                     "write it from the root without query or escapes, such as /v1/invoices/**",
                     true};
  }
  for (size_t start = 1; start <= path.size();) {
    const size_t end = std::min(path.find('/', start), path.size());
    const std::string_view part = path.substr(start, end - start);
    if (part == ".." || part == ".") {
      return Objection{fmt::format("\"{}\" has a \"..\" or \".\"", Printable(path)),
                       "write the path as the server sees it", true};
    }
    const bool stars = part.find('*') != std::string_view::npos;
    if (stars && part != "*" && !(part == "**" && end == path.size())) {
      return Objection{
          fmt::format("\"{}\": a star is a whole part, and ** is the last", Printable(path)),
          "write /v1/*/items or /v1/**", true};
    }
    start = end + 1;
  }
  return std::nullopt;
}

bool IsCodeVariable(std::string_view name) {
  static constexpr std::string_view kNames[] = {
      "PATH",           "ENV",       "BASH_ENV", "BASHOPTS",   "SHELLOPTS",
      "PROMPT_COMMAND", "PS4",       "IFS",      "CDPATH",     "GLOBIGNORE",
      "NODE_OPTIONS",   "NODE_PATH", "PERL5OPT", "PERL5LIB",   "PERLLIB",
      "PERL5DB",        "RUBYOPT",   "RUBYLIB",  "GCONV_PATH", "GLIBC_TUNABLES",
      "LOCPATH",        "HOME",      "SHELL",    "TMPDIR",     "EDITOR",
      "VISUAL",         "PAGER",     "LESSOPEN", "LESSCLOSE",  "JAVA_TOOL_OPTIONS",
      "NLSPATH",        "TERMINFO"};
  static constexpr std::string_view kPrefixes[] = {"LD_",     "PYTHON",      "BASH_FUNC_", "GIT_",
                                                   "MALLOC_", "npm_config_", "NPM_CONFIG_"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames) ||
         std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

}  // namespace coffer::policy
