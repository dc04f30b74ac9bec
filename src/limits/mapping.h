// SPDX-License-Identifier: Apache-2.0
//
// One line of /proc/PID/maps, as far as files without a name are concerned. The name at its end is the payload's to
// choose and may hold anything but a line feed; everything before it is the kernel's.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace coffer::limits {

struct FileId {
  uint64_t device = 0;
  uint64_t inode = 0;
  auto operator<=>(const FileId&) const = default;
};

// "START-END PERM OFFSET MAJOR:MINOR INODE    NAME".
struct Mapping {
  std::string_view range;  // the name of its entry in map_files
  FileId file;
  uint64_t end_offset = 0;
  bool deleted = false;
  bool anonymous = false;  // by its name; shared memory that has no descriptor anywhere
};

// Nothing if the line makes no sense.
std::optional<Mapping> ParseMapping(std::string_view line);

struct MappingWalk {
  bool any = false;      // the thread has memory
  bool complete = true;  // false: out of time
  int error = 0;         // an errno, if the file could not be read
};

// Calls `each` for the mappings in `maps`, piece by piece: a process may have tens of thousands,
// and the file takes as long as the scheduler lets it.
MappingWalk WalkMappings(const std::string& maps, const std::function<bool()>& out_of_time,
                         const std::function<void(const Mapping&)>& each);

}  // namespace coffer::limits
