// SPDX-License-Identifier: Apache-2.0
//
// How the roles write values for each other: numbers as eight bytes, texts as a length and bytes.
//
// The reader trusts no byte. It stops at the first value that does not fit; from then on every value is empty and
// Complete() is false. A list never has more items than there are bytes for, so no length makes it take memory.
#pragma once

#include <string.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace coffer {

inline constexpr uint32_t kWireVersion = 9;
inline constexpr size_t kMaxWireBytes = 8 << 20;

class WireWriter {
 public:
  explicit WireWriter(uint32_t magic) {
    Number<uint32_t>(magic);
    Number<uint32_t>(kWireVersion);
  }
  template <typename T>
  void Number(T value) {
    const auto wide = static_cast<uint64_t>(value);
    bytes_.append(reinterpret_cast<const char*>(&wide), sizeof(wide));
  }
  // Signed and small, such as an exit status.
  void Signed(int64_t value) { Number(static_cast<uint64_t>(value)); }
  void Flag(bool value) { Number<uint8_t>(value ? 1 : 0); }
  void Text(std::string_view text) {
    Number(text.size());
    bytes_.append(text);
  }
  void Texts(const std::vector<std::string>& texts) {
    Number(texts.size());
    for (const std::string& text : texts) {
      Text(text);
    }
  }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class WireReader {
 public:
  WireReader(std::string_view bytes, uint32_t magic) : bytes_(bytes) {
    const auto found = Number<uint32_t>();
    const auto version = Number<uint32_t>();
    if (bytes.size() > kMaxWireBytes || found != magic || version != kWireVersion) {
      Fail();
    }
  }
  template <typename T>
  T Number() {
    if (bytes_.size() < sizeof(uint64_t)) {
      Fail();
      return T{};
    }
    uint64_t wide = 0;
    memcpy(&wide, bytes_.data(), sizeof(wide));
    bytes_.remove_prefix(sizeof(wide));
    const T value = static_cast<T>(wide);
    if (static_cast<uint64_t>(value) != wide) {
      Fail();
      return T{};
    }
    return value;
  }
  int64_t Signed() { return static_cast<int64_t>(Number<uint64_t>()); }
  // One of 0 .. last.
  template <typename Enum>
  Enum Choice(Enum last) {
    const auto value = Number<uint8_t>();
    if (value > static_cast<uint8_t>(last)) {
      Fail();
      return Enum{};
    }
    return static_cast<Enum>(value);
  }
  bool Flag() { return Number<uint8_t>() == 1; }
  // Paths and words: nothing we send holds a NUL, and the kernel would see another text than our checks.
  std::string Text() {
    const auto size = Number<uint64_t>();
    if (size > bytes_.size() || bytes_.substr(0, size).find('\0') != std::string_view::npos) {
      Fail();
      return {};
    }
    std::string text(bytes_.substr(0, size));
    bytes_.remove_prefix(size);
    return text;
  }
  // How many items follow; never more than there are bytes for.
  uint32_t Count() {
    const auto count = Number<uint64_t>();
    if (count > kMaxItems || count > bytes_.size() / sizeof(uint64_t)) {
      Fail();
      return 0;
    }
    return static_cast<uint32_t>(count);
  }
  std::vector<std::string> Texts() {
    std::vector<std::string> texts;
    for (uint32_t left = Count(); left > 0 && ok_; --left) {
      texts.push_back(Text());
    }
    return texts;
  }
  bool ok() const { return ok_; }
  // Every byte was read, and every value fitted.
  bool Complete() const { return ok_ && bytes_.empty(); }
  // A value fitted and makes no sense.
  void Fail() {
    ok_ = false;
    bytes_ = {};
  }

 private:
  static constexpr uint32_t kMaxItems = 1 << 16;
  std::string_view bytes_;
  bool ok_ = true;
};

}  // namespace coffer
