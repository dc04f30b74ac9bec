// SPDX-License-Identifier: Apache-2.0
#include "cli/remote_place.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace coffer::cli {
namespace {

constexpr size_t kShortestSecret = 6;
constexpr std::string_view kInstead = "[redacted]";

}  // namespace

std::string RemotePlace::Line() const {
  Json fields = Json::array();
  for (const auto& [name, value] : headers) {
    fields.push_back(Json::array({name, value}));
  }
  return PrintJson({{"url", url}, {"host", host}, {"headers", fields}}) + "\n";
}

Result<RemotePlace> RemotePlace::Read(std::string_view line) {
  const Result<Json> read = ParseJson(line);
  if (!read.ok() || !read->is_object() || !read->contains("url") || !read->contains("host") ||
      !read->contains("headers")) {
    return Internal("internal", "the first line does not say where the server is");
  }
  RemotePlace place;
  place.url = read->at("url").get<std::string>();
  place.host = read->at("host").get<std::string>();
  for (const Json& field : read->at("headers")) {
    place.headers.emplace_back(field.at(0).get<std::string>(), field.at(1).get<std::string>());
  }
  return place;
}

RemoteSecrets::RemoteSecrets(const RemoteHeaders& headers) {
  for (const auto& [name, value] : headers) {
    const size_t space = value.rfind(' ');
    for (const std::string& part :
         {value, space == std::string::npos ? std::string() : value.substr(space + 1)}) {
      if (part.size() >= kShortestSecret) {
        secrets_.push_back(part);
      }
    }
  }
}

std::string RemoteSecrets::Remove(std::string text) const {
  for (const std::string& secret : secrets_) {
    for (size_t at = text.find(secret); at != std::string::npos; at = text.find(secret, at)) {
      text.replace(at, secret.size(), kInstead);
      at += kInstead.size();
    }
  }
  return text;
}

void RemoteSecrets::Remove(Json& value) const {
  if (secrets_.empty()) {
    return;
  }
  if (value.is_string()) {
    value = Remove(value.get<std::string>());
  } else if (value.is_array()) {
    for (Json& item : value) {
      Remove(item);
    }
  } else if (value.is_object()) {
    Json made = Json::object();
    for (auto& [name, member] : value.items()) {
      Remove(member);
      made[Remove(name)] = std::move(member);
    }
    value = std::move(made);
  }
}

}  // namespace coffer::cli
