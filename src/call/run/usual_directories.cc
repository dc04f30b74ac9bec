// SPDX-License-Identifier: Apache-2.0
#include "call/run/usual_directories.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "isolation/host_path.h"

namespace coffer::call {
namespace {

std::string FromEnvironment(const char* name) {
  const char* const value = ::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::string UsualStateDir() {
  if (std::string named = FromEnvironment("COFFER_STATE"); !named.empty()) {
    return named;
  }
  if (::geteuid() == 0) {
    return "/var/lib/coffer";
  }
  const std::string state = FromEnvironment("XDG_STATE_HOME");
  const std::string home = FromEnvironment("HOME");
  if (state.empty() && home.empty()) {
    return {};
  }
  return (state.empty() ? home + "/.local/state" : state) + "/coffer";
}

std::string UsualConfigDir() {
  if (std::string named = FromEnvironment("COFFER_CONFIG"); !named.empty()) {
    return named;
  }
  if (::geteuid() == 0) {
    return "/etc/coffer";
  }
  const std::string config = FromEnvironment("XDG_CONFIG_HOME");
  const std::string home = FromEnvironment("HOME");
  if (config.empty() && home.empty()) {
    return {};
  }
  return (config.empty() ? home + "/.config" : config) + "/coffer";
}

Result<std::string> UsualToolDir() {
  const std::string usual = UsualConfigDir();
  return usual.empty() ? Result<std::string>(std::string())
                       : isolation::CleanPath(usual + "/tools");
}

Status CheckNotInState(const std::string& state, const std::string& name) {
  const std::string path = state + "/" + name;
  struct stat info{};
  // What the daemon's gateway may have put there decides nothing, also not whether we start.
  if (::lstat(path.c_str(), &info) != 0 || (info.st_uid != 0 && info.st_uid != ::geteuid())) {
    return {};
  }
  const std::string usual = UsualConfigDir();
  return Refused(
      "policy.config.place",
      fmt::format("{} is in the state directory, where it does not count", path),
      fmt::format("move it to {}/{}, or name it with {}", usual.empty() ? "/etc/coffer" : usual,
                  name, name == "tools" ? "--tools" : "--config"));
}

std::vector<std::string> UsualToolDirs() {
  std::vector<std::string> directories;
  const std::string list = FromEnvironment("COFFER_TOOLS");
  for (size_t at = 0; at < list.size();) {
    const size_t end = std::min(list.find(':', at), list.size());
    if (end > at) {
      directories.push_back(list.substr(at, end - at));
    }
    at = end + 1;
  }
  return directories;
}

}  // namespace coffer::call
