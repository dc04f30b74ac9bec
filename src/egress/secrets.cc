// SPDX-License-Identifier: Apache-2.0
#include "egress/secrets.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sodium.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <new>

#include "base/hex.h"
#include "base/sys.h"

namespace coffer::egress {
namespace {

constexpr size_t kLongestSecret = 4096;
constexpr size_t kLongestHeaders = 16 << 10;
constexpr size_t kShortestSecret = 16;

Result<std::string> ReadSecretFile(const std::string& path, size_t limit) {
  TRY_ASSIGN(const UniqueFd file, sys::Open(path, O_RDONLY | O_NOCTTY | O_NONBLOCK));
  struct stat info{};
  if (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return Refused("policy.config", path + " is not a file");
  }
  if ((info.st_mode & S_IRWXO) != 0) {
    return Refused("policy.config", path + " holds a secret, and every user may read it",
                   "chmod 600 " + path);
  }
  return sys::ReadFd(file.get(), limit);
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) {
    text.remove_suffix(1);
  }
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) {
    text.remove_prefix(1);
  }
  return text;
}

bool IsToken(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
  });
}

// What the request itself decides.
bool IsOurs(std::string_view name) {
  constexpr std::string_view kOurs[] = {"host",       "content-length",    "content-type",
                                        "connection", "transfer-encoding", "expect",
                                        "te",         "trailer",           "upgrade"};
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::find(std::begin(kOurs), std::end(kOurs), lower) != std::end(kOurs);
}

Status LoadInto(EgressReceiver& made) {
  const std::string& path = made.receiver.file;
  if (path.empty()) {
    return {};
  }
  const bool webhook = made.receiver.kind == Receiver::Kind::kWebhook;
  TRY_ASSIGN(std::string text, ReadSecretFile(path, webhook ? kLongestSecret : kLongestHeaders));
  if (webhook) {
    const std::string_view secret = Trim(text);
    if (secret.size() < kShortestSecret) {
      ::sodium_memzero(text.data(), text.size());
      return Refused("policy.config",
                     fmt::format("{} holds less than {} bytes", path, kShortestSecret),
                     "head -c 32 /dev/urandom | base64 > FILE");
    }
    made.secret = Secret(secret);
  } else {
    Result<std::vector<std::pair<std::string, std::string>>> headers = ParseHeaders(text);
    if (!headers.ok()) {
      headers.error().message = path + ": " + headers.error().message;
      return headers.error();
    }
    made.headers = std::move(headers).value();
  }
  ::sodium_memzero(text.data(), text.size());
  return {};
}

}  // namespace

Secret::Secret(std::string_view bytes) : size_(bytes.size()) {
  static const int ready = ::sodium_init();
  void* const room = ready < 0 ? nullptr : ::sodium_malloc(bytes.size());
  if (room == nullptr) {
    throw std::bad_alloc();
  }
  std::memcpy(room, bytes.data(), bytes.size());
  bytes_.reset(static_cast<char*>(room));
}

void Secret::Wipe::operator()(char* bytes) const { ::sodium_free(bytes); }

Result<std::vector<EgressReceiver>> LoadSecrets(std::vector<Receiver> receivers) {
  std::vector<EgressReceiver> loaded;
  for (Receiver& receiver : receivers) {
    EgressReceiver& made = loaded.emplace_back();
    made.receiver = std::move(receiver);
    if (Status read = LoadInto(made); !read.ok()) {
      read.error().kind =
          ErrorKind::kHost;  // no other code reads these files, so the error is reported here
      return read.error();
    }
  }
  return loaded;
}

Result<std::vector<std::pair<std::string, std::string>>> ParseHeaders(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> headers;
  size_t number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = Trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.empty() || line.front() == '#') {
      continue;
    }
    const size_t colon = std::min(line.find(':'), line.size());
    const std::string_view name = line.substr(0, colon);
    const std::string_view value = colon == line.size() ? "" : Trim(line.substr(colon + 1));
    const bool visible =
        std::all_of(value.begin(), value.end(), [](char c) { return c >= ' ' && c < 0x7f; });
    if (!IsToken(name) || value.empty() || !visible || IsOurs(name)) {
      return Refused("policy.config",
                     fmt::format("line {} is not a header that can be set", number),
                     "write NAME: VALUE, one on a line");
    }
    headers.emplace_back(name, value);
  }
  return headers;
}

std::string SignatureOf(const Secret& secret, std::string_view id, int64_t time,
                        std::string_view body) {
  crypto_auth_hmacsha256_state state;
  const auto bytes = [](std::string_view text) {
    return reinterpret_cast<const unsigned char*>(text.data());
  };
  const std::string head = fmt::format("{}.{}.", id, time);
  ::crypto_auth_hmacsha256_init(&state, bytes(secret.bytes()), secret.bytes().size());
  ::crypto_auth_hmacsha256_update(&state, bytes(head), head.size());
  ::crypto_auth_hmacsha256_update(&state, bytes(body), body.size());
  std::array<unsigned char, crypto_auth_hmacsha256_BYTES> mac;
  ::crypto_auth_hmacsha256_final(&state, mac.data());
  ::sodium_memzero(&state, sizeof(state));
  return fmt::format("t={},v1={}", time, HexOf(mac.data(), mac.size()));
}

}  // namespace coffer::egress
