// SPDX-License-Identifier: Apache-2.0
//
// [background]: how long a process may live beside its session's calls, and on which ports they reach it.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/quantity.h"
#include "base/text.h"
#include "policy/manifest/sections.h"

namespace coffer::policy {
namespace {

std::optional<uint16_t> ParsePort(std::string_view text) {
  uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, port);
  return problem == std::errc() && rest == end ? std::optional(port) : std::nullopt;
}

// "3000" or "8000-8099".
std::optional<PortRange> ParsePorts(std::string_view text) {
  const size_t dash = text.find('-');
  const std::optional<uint16_t> first = ParsePort(text.substr(0, dash));
  const std::optional<uint16_t> last =
      dash == std::string_view::npos ? first : ParsePort(text.substr(dash + 1));
  if (!first || !last || *last < *first || *first < kFirstBackgroundPort) {
    return std::nullopt;
  }
  return PortRange{*first, *last};
}

}  // namespace

bool AllowsPorts(const std::vector<PortRange>& ranges, const std::vector<uint16_t>& ports) {
  return std::all_of(ports.begin(), ports.end(), [&](uint16_t port) {
    return std::any_of(ranges.begin(), ranges.end(), [&](const PortRange& range) {
      return port >= range.first && port <= range.last;
    });
  });
}

void ReadBackground(const TomlNode& table, Manifest& manifest, MistakeList& mistakes) {
  TableReader reader(table, "background", mistakes);
  BackgroundSpec background;
  background.cpu = manifest.limits.cpu;
  if (reader.Find("wall") == nullptr) {
    reader.Add("wall", "is missing", "write wall = \"8h\": how long such a process may live");
  }
  reader.Parsed(background.wall, "wall", ParseDuration);
  reader.Parsed(background.cpu, "cpu", ParseDuration);
  if (background.wall > kLongestBackground) {
    reader.Add("wall", "no session lives that long", "write at most \"24h\"");
  }
  if (const auto ports = reader.Strings("ports")) {
    for (const std::string& text : *ports) {
      const std::optional<PortRange> range = ParsePorts(text);
      if (range) {
        background.ports.push_back(*range);
      } else {
        reader.Add(
            "ports", fmt::format("\"{}\" is not a port or a range of ports", Printable(text)),
            fmt::format("write \"3000\" or \"8000-8099\", none below {}", kFirstBackgroundPort));
      }
    }
    if (manifest.isolation.level != Level::kContainer) {
      reader.Add("ports", "a process without a network of its own has no ports",
                 "write isolation.level = \"container\", or leave out background.ports");
    }
  }
  if (manifest.workspace == Workspace::kFresh) {
    reader.Add("wall", "a process in the background belongs to a session",
               "write files.workspace = \"session-read\" or \"session-write\"");
  }
  manifest.background = std::move(background);
}

}  // namespace coffer::policy
