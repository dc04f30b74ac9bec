// SPDX-License-Identifier: Apache-2.0
#include "call/run/egress_messages.h"

#include <string.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/json.h"

namespace coffer::call {
namespace {

constexpr size_t kMostText = 512;  // of one field; a path may be longer than a receipt wants it

std::string Cut(const std::string& text) { return text.substr(0, kMostText); }

// Throws if it is not an entry.
EgressEntry EntryOf(const Json& json) {
  EgressEntry entry;
  entry.host = json.at("host").get<std::string>();
  const auto port = json.at("port").get<uint64_t>();
  if (port > std::numeric_limits<uint16_t>::max()) {
    throw std::out_of_range("port");
  }
  entry.port = static_cast<uint16_t>(port);
  entry.method = json.at("method").get<std::string>();
  entry.path = json.at("path").get<std::string>();
  entry.allowed = json.at("allowed").get<bool>();
  entry.rule = json.at("rule").get<std::string>();
  entry.reason = json.at("reason").get<std::string>();
  entry.fix = json.at("fix").get<std::string>();
  entry.bytes_out = json.at("out").get<uint64_t>();
  entry.bytes_in = json.at("in").get<uint64_t>();
  entry.millis =
      std::min<uint64_t>(json.at("ms").get<uint64_t>(), std::numeric_limits<uint32_t>::max());
  return entry;
}

}  // namespace

std::string EncodeGrants(const policy::EgressTexts& grants) {
  const Json json = {{"allow", grants.allow},
                     {"resolve", grants.resolve},
                     {"addresses", grants.addresses},
                     {"upstream_ca", grants.upstream_ca}};
  return PrintJson(json);
}

Result<policy::EgressTexts> DecodeGrants(std::string_view text) {
  TRY_ASSIGN(const Json json, ParseJson(text));
  try {
    policy::EgressTexts grants;
    grants.allow = json.at("allow").get<std::vector<std::string>>();
    grants.resolve = json.at("resolve").get<std::vector<std::string>>();
    grants.addresses = json.at("addresses").get<std::vector<std::string>>();
    grants.upstream_ca = json.at("upstream_ca").get<std::string>();
    return grants;
  } catch (const std::exception& problem) {
    return Internal("egress.grants", std::string("not the grants of a call: ") + problem.what());
  }
}

std::string EncodeEntry(const EgressEntry& entry) {
  const Json json = {
      {"host", Cut(entry.host)},     {"port", entry.port},       {"method", Cut(entry.method)},
      {"path", Cut(entry.path)},     {"allowed", entry.allowed}, {"rule", Cut(entry.rule)},
      {"reason", Cut(entry.reason)}, {"fix", Cut(entry.fix)},    {"out", entry.bytes_out},
      {"in", entry.bytes_in},        {"ms", entry.millis}};
  std::string line = PrintJson(json) + "\n";
  if (line.size() > kMostEntryBytes) {  // escapes made it longer: what identifies it is kept
    EgressEntry bare;
    bare.host = "others";
    bare.port = entry.port;
    bare.allowed = entry.allowed;
    bare.bytes_out = entry.bytes_out;
    bare.bytes_in = entry.bytes_in;
    bare.millis = entry.millis;
    return EncodeEntry(bare);
  }
  return line;
}

EgressLog DecodeLog(std::string_view text) {
  EgressLog log;
  if (text.size() < sizeof(log.head) || text.size() > kMostLogBytes) {
    log.broken = true;
    return log;
  }
  memcpy(&log.head, text.data(), sizeof(log.head));
  text.remove_prefix(sizeof(log.head));
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (end >= kMostEntryBytes) {  // or there is none
      log.broken = true;
      return log;
    }
    const Result<Json> json = ParseJson(text.substr(0, end));
    text.remove_prefix(end + 1);
    if (!json.ok()) {
      log.broken = true;
      return log;
    }
    try {
      log.entries.push_back(EntryOf(*json));
    } catch (const std::exception&) {
      log.broken = true;
      return log;
    }
  }
  return log;
}

}  // namespace coffer::call
