// SPDX-License-Identifier: Apache-2.0
//
// Which host paths are too broad to be mounted. A mistake behind such a mount reaches everything on the machine.
// Purely by name; aliases are found where the path is opened.
#include <algorithm>
#include <string>
#include <string_view>

#include "policy/envelope.h"

namespace coffer::policy {
namespace {

constexpr std::string_view kBroad[] = {
    "/",        "/bin",     "/boot",    "/data",    "/dev",   "/etc",       "/home",
    "/lib",     "/lib64",   "/media",   "/mnt",     "/opt",   "/proc",      "/root",
    "/run",     "/sbin",    "/srv",     "/sys",     "/tmp",   "/usr",       "/var",
    "/var/lib", "/var/log", "/var/run", "/var/tmp", "/Users", "/var/cache",
};

// Nothing below these is a file one works on.
constexpr std::string_view kClosedTrees[] = {
    "/proc",
    "/sys",
    "/dev",
    "/run",
    "/var/run",
    "/boot",
    "/var/lib/docker",
    "/var/lib/containerd",
    "/var/lib/kubelet",
    "/var/lib/coffer",
    "/etc/shadow",
    "/etc/gshadow",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/ssh",
};

// Directories that hold credentials, wherever they are.
constexpr std::string_view kCredentialNames[] = {
    ".ssh",   ".aws",   ".gnupg",  ".kube",  ".docker",
    ".azure", ".netrc", ".pgpass", ".npmrc", ".git-credentials",
};

bool Below(std::string_view path, std::string_view tree) {
  return path.size() > tree.size() && path.starts_with(tree) && path[tree.size()] == '/';
}

}  // namespace

std::optional<std::string> OverBroadReason(std::string_view path) {
  if (std::find(std::begin(kBroad), std::end(kBroad), path) != std::end(kBroad)) {
    return std::string(path) + " is too broad: it holds far more than one call needs";
  }
  for (const std::string_view tree : kClosedTrees) {
    if (path == tree || Below(path, tree)) {
      return std::string(path) + " belongs to the system (" + std::string(tree) + ")";
    }
  }
  if (path.starts_with("/home/") && path.find('/', 6) == std::string_view::npos) {
    return std::string(path) + " is a whole home directory";
  }
  for (size_t start = 1; start <= path.size();) {
    const size_t end = std::min(path.find('/', start), path.size());
    const std::string_view component = path.substr(start, end - start);
    if (std::find(std::begin(kCredentialNames), std::end(kCredentialNames), component) !=
        std::end(kCredentialNames)) {
      return std::string(path) + " holds credentials (" + std::string(component) + ")";
    }
    start = end + 1;
  }
  return std::nullopt;
}

}  // namespace coffer::policy
