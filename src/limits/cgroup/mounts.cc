// SPDX-License-Identifier: Apache-2.0
#include "limits/cgroup/mounts.h"

namespace coffer::limits {
namespace {

// Cuts the part before `separator` off `rest` and returns it; the last part leaves `rest` empty.
std::string_view NextPart(std::string_view& rest, char separator) {
  const size_t end = rest.find(separator);
  const std::string_view part = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  return part;
}

// mountinfo writes space, tab, newline and backslash as \040, \011, \012, \134.
std::string DecodeOctal(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto digit = [&](size_t at) {
      return at < text.size() && text[at] >= '0' && text[at] <= '7';
    };
    if (text[i] == '\\' && digit(i + 1) && digit(i + 2) && digit(i + 3)) {
      out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                               (text[i + 3] - '0'));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

ControllerBits BitOfName(std::string_view name) {
  for (size_t i = 0; i < kControllerCount; ++i) {
    const auto controller = static_cast<Controller>(i);
    if (name == ControllerName(controller) || (controller == Controller::kIo && name == "blkio")) {
      return Bit(controller);
    }
  }
  return 0;
}

}  // namespace

std::string_view ControllerName(Controller controller) {
  static constexpr std::array<std::string_view, kControllerCount> kNames = {
      "memory", "pids", "cpu", "cpuacct", "io", "freezer"};
  return kNames[static_cast<size_t>(controller)];
}

ControllerBits ParseControllers(std::string_view list, char separator) {
  ControllerBits bits = 0;
  while (!list.empty() && list.back() == '\n') {
    list.remove_suffix(1);
  }
  while (!list.empty()) {
    bits |= BitOfName(NextPart(list, separator));
  }
  return bits;
}

std::vector<Membership> ParseSelfCgroup(std::string_view text) {
  std::vector<Membership> all;
  while (!text.empty()) {
    std::string_view line = NextPart(text, '\n');
    const std::string_view id = NextPart(line, ':');
    const std::string_view controllers = NextPart(line, ':');
    if (line.empty() || line.front() != '/') {
      continue;
    }
    Membership membership;
    membership.v2 = id == "0" && controllers.empty();
    membership.controllers = ParseControllers(controllers, ',');
    membership.names = std::string(controllers);
    membership.path = std::string(line);
    all.push_back(std::move(membership));
  }
  return all;
}

std::vector<CgroupMount> ParseMountinfo(std::string_view text) {
  std::vector<CgroupMount> all;
  while (!text.empty()) {
    std::string_view line = NextPart(text, '\n');
    // id parent major:minor root mount-point options [optional...] - type source super-options
    const size_t dash = line.find(" - cgroup");
    if (dash == std::string_view::npos) {
      continue;
    }
    std::string_view tail = line.substr(dash + 3);
    const std::string_view type = NextPart(tail, ' ');
    NextPart(tail, ' ');  // source
    if (type != "cgroup" && type != "cgroup2") {
      continue;
    }
    line = line.substr(0, dash);
    NextPart(line, ' ');
    NextPart(line, ' ');
    NextPart(line, ' ');
    CgroupMount mount;
    mount.root = DecodeOctal(NextPart(line, ' '));
    mount.mount_point = DecodeOctal(NextPart(line, ' '));
    mount.v2 = type == "cgroup2";
    mount.controllers = mount.v2 ? 0 : ParseControllers(tail, ',');
    if (!mount.root.empty() && !mount.mount_point.empty()) {
      all.push_back(std::move(mount));
    }
  }
  return all;
}

std::vector<CgroupMount> UsualMounts(const std::vector<Membership>& memberships) {
  std::vector<CgroupMount> all;
  for (const Membership& one : memberships) {
    if (one.controllers != 0) {
      all.push_back({false, one.controllers, "/", "/sys/fs/cgroup/" + one.names});
    }
  }
  if (all.empty()) {
    all.push_back({true, 0, "/", "/sys/fs/cgroup"});
  }
  return all;
}

std::string DirInMount(const CgroupMount& mount, std::string_view path) {
  if (path.find("/..") != std::string_view::npos || mount.root.find("/..") != std::string::npos) {
    return {};  // outside our cgroup namespace
  }
  std::string_view below = path;
  if (mount.root != "/") {
    if (path.substr(0, mount.root.size()) != mount.root) {
      return {};
    }
    below = path.substr(mount.root.size());
    if (!below.empty() && below.front() != '/') {
      return {};
    }
  }
  return below.empty() || below == "/" ? mount.mount_point : mount.mount_point + std::string(below);
}

}  // namespace coffer::limits
