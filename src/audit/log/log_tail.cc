// SPDX-License-Identifier: Apache-2.0
#include "audit/log/log_tail.h"

#include <fcntl.h>
#include <sys/syscall.h>

#include <bit>

#include "audit/log/log_lines.h"
#include "base/hash.h"
#include "base/regular_file.h"
#include "base/sys.h"

namespace coffer::audit {
namespace {

constexpr std::string_view kCacheHeader = "coffer tree 1";
constexpr uint64_t kMostTornBytes = 128 << 20;
constexpr size_t kMostCheckpointBytes = 256;  // "= ", 19 + 44 + 64 + 92 and three spaces: 224

}  // namespace

LogTail TailOfHeader(std::string_view header) {
  LogTail tip;
  tip.end = header.size() + 1;
  tip.last_line = LineHash(header);
  return tip;
}

Result<FoundTails> ReadForward(int records, uint64_t file_size, LogTail from) {
  FoundTails found{from, std::move(from)};
  LogTail& tip = found.last;
  Frontier frontier = tip.frontier;
  RecordLines lines(records, tip.end, file_size);
  for (;;) {
    TRY_ASSIGN(const std::optional<std::string_view> line, lines.Next());
    if (!line) {
      return found;
    }
    if (line->starts_with('{')) {
      frontier.Append(LeafHash(*line));
      continue;
    }
    std::optional<Checkpoint> read = ParseCheckpointLine(*line);
    const bool grows = read && (!tip.last || read->size > tip.last->size);
    if (!grows || read->size != frontier.size() || read->prev != tip.last_line ||
        read->root != frontier.Root()) {
      return found;
    }
    found.before = std::move(tip);
    tip = {lines.offset(), frontier, std::move(read), LineHash(*line)};
  }
}

Result<bool> HasLaterBatch(int records, uint64_t file_size, const LogTail& tip,
                           const PublicKey& key, std::string_view origin) {
  if (file_size - tip.end > kMostTornBytes) {
    return true;  // no batch is that long
  }
  std::string tail(file_size - tip.end, '\0');
  TRY(ReadAt(records, tail.data(), tail.size(), tip.end));
  for (std::string_view rest = tail; !rest.empty();) {
    const size_t end = rest.find('\n');
    const std::optional<Checkpoint> read = ParseCheckpointLine(rest.substr(0, end));
    if (read && read->size > tip.frontier.size() && read->prev != tip.last_line &&
        read->SignedBy(key, origin)) {
      return true;
    }
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  return false;
}

std::string FormatTailCache(const LogTail& tip, std::string_view origin) {
  std::string text = std::string(kCacheHeader) + "\n" + std::string(origin) + "\n" +
                     std::to_string(tip.end) + "\n" + std::to_string(tip.frontier.size()) + "\n";
  for (const Hash& node : tip.frontier.nodes()) {
    text += HexOf(node) + "\n";
  }
  return text + HashOf(text) + "\n";
}

std::optional<LogTail> ReadTailCache(int directory, std::string_view origin) {
  const Result<std::string> text = sys::ReadRegularAt(directory, "tree", 1 << 16);
  if (!text.ok()) {
    return std::nullopt;
  }
  // What stands behind the hash is left of a longer one before.
  std::string_view rest = *text;
  const auto line = [&] {
    const size_t end = rest.find('\n');
    const std::string_view found = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    return found;
  };
  if (line() != kCacheHeader || line() != origin) {
    return std::nullopt;
  }
  const std::optional<uint64_t> end = FromDecimal(line());
  const std::optional<uint64_t> size = FromDecimal(line());
  if (!end || !size) {
    return std::nullopt;
  }
  std::vector<Hash> nodes;
  for (int i = std::popcount(*size); i > 0; --i) {
    const std::optional<Hash> node = HashFromHex(line());
    if (!node) {
      return std::nullopt;
    }
    nodes.push_back(*node);
  }
  const std::string_view hashed(text->data(), static_cast<size_t>(rest.data() - text->data()));
  if (line() != HashOf(hashed)) {
    return std::nullopt;
  }
  LogTail tip;
  tip.end = *end;
  tip.frontier = Frontier(*size, std::move(nodes));
  return tip;
}

bool ConfirmTail(int records, uint64_t file_size, LogTail& tip) {
  if (tip.end > file_size || tip.end == 0) {
    return false;
  }
  const uint64_t begin = tip.end - std::min<uint64_t>(tip.end, kMostCheckpointBytes);
  std::string text(tip.end - begin, '\0');
  const Status read = ReadAt(records, text.data(), text.size(), begin);
  if (!read.ok() || text.back() != '\n') {
    return false;
  }
  text.pop_back();
  const size_t newline = text.rfind('\n');
  if (newline == std::string::npos) {
    return false;
  }
  const std::string_view line = std::string_view(text).substr(newline + 1);
  tip.last = ParseCheckpointLine(line);
  tip.last_line = LineHash(line);
  return tip.last && tip.last->size == tip.frontier.size() && tip.last->root == tip.frontier.Root();
}

}  // namespace coffer::audit
