// SPDX-License-Identifier: Apache-2.0
#include "audit/log/checkpoint.h"

#include <vector>

namespace coffer::audit {
namespace {

constexpr std::string_view kSignatureMark = "\xe2\x80\x94 ";  // an em dash and a space

std::string SignedText(std::string_view origin, uint64_t size, const Hash& root, const Hash& prev) {
  std::string text(origin);
  text += "\n" + std::to_string(size) + "\n" + Base64Of(root) + "\nprev " + HexOf(prev) + "\n";
  return text;
}

std::vector<std::string_view> Split(std::string_view text, char mark) {
  std::vector<std::string_view> parts;
  for (size_t end = text.find(mark); end != std::string_view::npos; end = text.find(mark)) {
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  parts.push_back(text);
  return parts;
}

bool TakeSize(std::string_view text, Checkpoint& into) {
  const std::optional<uint64_t> size = FromDecimal(text);
  into.size = size.value_or(0);
  return size.has_value();
}

bool TakeRoot(std::string_view text, Checkpoint& into) {
  const std::optional<std::string> bytes = FromBase64(text);
  const std::optional<Hash> root = bytes ? HashFromBytes(*bytes) : std::nullopt;
  into.root = root.value_or(Hash{});
  return root.has_value();
}

bool TakePrev(std::string_view text, Checkpoint& into) {
  const std::optional<Hash> prev = HashFromHex(text);
  into.prev = prev.value_or(Hash{});
  return prev.has_value();
}

bool TakeSignature(std::string_view text, Checkpoint& into) {
  const std::optional<std::string> bytes = FromBase64(text);
  if (!bytes || bytes->size() != 4 + kSignatureBytes) {
    return false;
  }
  into.key_id = bytes->substr(0, 4);
  into.signature = bytes->substr(4);
  return true;
}

}  // namespace

std::string Checkpoint::Line() const {
  return "= " + std::to_string(size) + " " + Base64Of(root) + " " + HexOf(prev) + " " +
         Base64Of(key_id + signature);
}

std::string Checkpoint::Note(std::string_view origin) const {
  return SignedText(origin, size, root, prev) + "\n" + std::string(kSignatureMark) +
         std::string(kKeyName) + " " + Base64Of(key_id + signature) + "\n";
}

bool Checkpoint::SignedBy(const PublicKey& key, std::string_view origin) const {
  return key_id == key.IdBytes() && key.Verify(SignedText(origin, size, root, prev), signature);
}

Checkpoint SignCheckpoint(const Signer& signer, std::string_view origin, uint64_t size,
                          const Hash& root, const Hash& prev) {
  return {size, root, prev, signer.public_key().IdBytes(),
          signer.Sign(SignedText(origin, size, root, prev))};
}

std::optional<Checkpoint> ParseCheckpointLine(std::string_view line) {
  const std::vector<std::string_view> parts = Split(line, ' ');
  Checkpoint read;
  if (parts.size() != 5 || parts[0] != "=" || !TakeSize(parts[1], read) ||
      !TakeRoot(parts[2], read) || !TakePrev(parts[3], read) || !TakeSignature(parts[4], read)) {
    return std::nullopt;
  }
  return read;
}

Result<Note> ParseNote(std::string_view text) {
  const Error error = Refused("audit.checkpoint", "not a checkpoint of a log",
                              "`coffer audit checkpoint` writes one");
  const std::vector<std::string_view> lines = Split(text, '\n');
  Note note;
  if (lines.size() < 7 || !lines[4].empty() || !lines.back().empty() ||
      !ParseHeader(std::string(kHeaderPrefix).append(lines[0])) ||
      !TakeSize(lines[1], note.checkpoint) || !TakeRoot(lines[2], note.checkpoint) ||
      !lines[3].starts_with("prev ") || !TakePrev(lines[3].substr(5), note.checkpoint)) {
    return error;
  }
  note.origin = lines[0];
  const std::string mark = std::string(kSignatureMark).append(kKeyName) + " ";
  for (size_t i = 5; i + 1 < lines.size(); ++i) {
    if (!lines[i].starts_with(kSignatureMark)) {
      return error;
    }
    if (note.checkpoint.signature.empty() && lines[i].starts_with(mark) &&
        !TakeSignature(lines[i].substr(mark.size()), note.checkpoint)) {
      return error;
    }
  }
  if (note.checkpoint.signature.empty()) {
    return error;
  }
  return note;
}

std::optional<std::string> ParseHeader(std::string_view line) {
  if (!line.starts_with(kHeaderPrefix)) {
    return std::nullopt;
  }
  const std::string_view origin = line.substr(kHeaderPrefix.size());
  if (!origin.starts_with(kOriginPrefix) || origin.size() != kOriginPrefix.size() + 16 ||
      !FromHex(origin.substr(kOriginPrefix.size()))) {
    return std::nullopt;
  }
  return std::string(origin);
}

}  // namespace coffer::audit
