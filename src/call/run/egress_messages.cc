// SPDX-License-Identifier: Apache-2.0
#include "call/run/egress_messages.h"

#include <string.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/wire_bytes.h"

namespace coffer::call {
namespace {

constexpr size_t kMostText = 480;  // of one field; a path may be longer than a receipt wants it
constexpr uint32_t kEntryMagic = 0x636f5205;
constexpr uint32_t kNoticeMagic = 0x636f5211;
constexpr uint32_t kDecisionMagic = 0x636f5212;

// A value without NUL, which is no part of a text between processes.
std::string Cut(const std::string& text) {
  std::string cut = text.substr(0, kMostText);
  std::replace(cut.begin(), cut.end(), '\0', ' ');
  return cut;
}

EgressEntry ReadEntry(WireReader& reader) {
  EgressEntry entry;
  entry.host = reader.Text();
  entry.port = reader.Number<uint16_t>();
  entry.allowed = reader.Flag();
  for (std::string* const text :
       {&entry.method, &entry.path, &entry.rule, &entry.reason, &entry.fix, &entry.leads_to}) {
    *text = reader.Text();
  }
  entry.bytes_out = reader.Number<uint64_t>();
  entry.bytes_in = reader.Number<uint64_t>();
  entry.millis = reader.Number<uint32_t>();
  entry.held_value = reader.Flag();
  return entry;
}

Json JsonOf(const policy::EgressTexts& grants) {
  Json json = {{"allow", grants.allow},
               {"resolve", grants.resolve},
               {"addresses", grants.addresses},
               {"upstream_ca", grants.upstream_ca}};
  if (!grants.upstream_proxy.empty()) {
    json["upstream_proxy"] = grants.upstream_proxy;
    json["proxied"] = grants.proxied;
  }
  if (grants.hold_seconds > 0) {
    json["hold"] = grants.hold;
    json["hold_seconds"] = grants.hold_seconds;
  }
  if (grants.of_tool) {
    json["lines"] = grants.lines;
    json["connections"] = grants.connections;
    json["deny"] = grants.deny;
    json["most_bytes_out"] = grants.most_bytes_out;
    json["most_bytes_in"] = grants.most_bytes_in;
  }
  return json;
}

}  // namespace

// Without the values of never_send: a hash of this is in the receipt, and a reader could test guesses against it.
std::string EncodeGrants(const policy::EgressTexts& grants) {
  Json json = JsonOf(grants);
  if (!grants.never_send.empty()) {
    json["never_send"] = true;
  }
  return PrintJson(json);
}

std::string EncodeOrder(const EgressOrder& order) {
  Json json = JsonOf(order.grants);
  json["own"] = order.own;
  if (!order.grants.never_send.empty()) {
    json["never_send"] = order.grants.never_send;
  }
  return PrintJson(json);
}

Result<EgressOrder> DecodeOrder(std::string_view text) {
  TRY_ASSIGN(const Json json, ParseJson(text));
  try {
    EgressOrder order;
    policy::EgressTexts& grants = order.grants;
    grants.allow = json.at("allow").get<std::vector<std::string>>();
    grants.resolve = json.at("resolve").get<std::vector<std::string>>();
    grants.addresses = json.at("addresses").get<std::vector<std::string>>();
    grants.upstream_ca = json.at("upstream_ca").get<std::string>();
    order.own = json.at("own").get<std::vector<std::string>>();
    grants.never_send = json.value("never_send", "");
    if (json.contains("upstream_proxy")) {
      grants.upstream_proxy = json.at("upstream_proxy").get<std::string>();
      grants.proxied = json.at("proxied").get<std::vector<std::string>>();
    }
    if (json.contains("hold")) {
      grants.hold = json.at("hold").get<bool>();
      grants.hold_seconds = json.at("hold_seconds").get<uint32_t>();
    }
    if (json.contains("lines")) {
      grants.of_tool = true;
      grants.lines = json.at("lines").get<std::vector<std::string>>();
      grants.connections = json.at("connections").get<uint64_t>();
      grants.deny = json.at("deny").get<std::vector<std::string>>();
      grants.most_bytes_out = json.at("most_bytes_out").get<uint64_t>();
      grants.most_bytes_in = json.at("most_bytes_in").get<uint64_t>();
    }
    return order;
  } catch (const std::exception& problem) {
    return Internal("egress.grants", std::string("not the grants of a call: ") + problem.what());
  }
}

std::string EncodeNotice(const egress::AccessNotice& notice) {
  WireWriter writer(kNoticeMagic);
  writer.Number(static_cast<uint8_t>(notice.kind));
  writer.Number(notice.id);
  writer.Text(Cut(notice.host));
  writer.Number(notice.port);
  writer.Text(Cut(notice.opens));
  return "Q" + writer.Take();
}

std::optional<egress::AccessNotice> DecodeNotice(std::string_view message) {
  if (!message.starts_with('Q')) {
    return std::nullopt;
  }
  WireReader reader(message.substr(1), kNoticeMagic);
  egress::AccessNotice notice;
  notice.kind = reader.Choice(egress::AccessNotice::Kind::kGone);
  notice.id = reader.Number<uint32_t>();
  notice.host = reader.Text();
  notice.port = reader.Number<uint16_t>();
  notice.opens = reader.Text();
  return reader.Complete() ? std::optional(std::move(notice)) : std::nullopt;
}

std::string EncodeDecision(const egress::AccessDecision& decision) {
  WireWriter writer(kDecisionMagic);
  writer.Number(decision.id);
  writer.Number(static_cast<uint8_t>(decision.choice));
  writer.Number(decision.minutes);
  return "D" + writer.Take();
}

std::optional<egress::AccessDecision> DecodeDecision(std::string_view message) {
  if (!message.starts_with('D')) {
    return std::nullopt;
  }
  WireReader reader(message.substr(1), kDecisionMagic);
  egress::AccessDecision decision;
  decision.id = reader.Number<uint32_t>();
  decision.choice = reader.Choice(egress::AccessChoice::kForMinutes);
  decision.minutes = reader.Number<uint32_t>();
  return reader.Complete() ? std::optional(decision) : std::nullopt;
}

std::string EncodeEntry(const EgressEntry& entry) {
  WireWriter writer(kEntryMagic);
  writer.Text(Cut(entry.host));
  writer.Number(entry.port);
  writer.Flag(entry.allowed);
  for (const std::string* const text :
       {&entry.method, &entry.path, &entry.rule, &entry.reason, &entry.fix, &entry.leads_to}) {
    writer.Text(Cut(*text));
  }
  writer.Number(entry.bytes_out);
  writer.Number(entry.bytes_in);
  writer.Number(std::min<uint64_t>(entry.millis, std::numeric_limits<uint32_t>::max()));
  writer.Flag(entry.held_value);
  const std::string values = writer.Take();
  const uint64_t size = values.size();
  return std::string(reinterpret_cast<const char*>(&size), sizeof(size)) + values;
}

EgressLog DecodeLog(std::string_view text) {
  EgressLog log;
  log.broken = true;  // until everything was read
  if (text.size() < sizeof(log.head) || text.size() > kMostLogBytes) {
    return log;
  }
  memcpy(&log.head, text.data(), sizeof(log.head));
  text.remove_prefix(sizeof(log.head));
  while (!text.empty()) {
    uint64_t size = 0;
    if (text.size() < sizeof(size)) {
      return log;
    }
    memcpy(&size, text.data(), sizeof(size));
    text.remove_prefix(sizeof(size));
    if (size > text.size() || size > kMostEntryBytes - sizeof(size)) {
      return log;
    }
    WireReader reader(text.substr(0, size), kEntryMagic);
    text.remove_prefix(size);
    EgressEntry entry = ReadEntry(reader);
    if (!reader.Complete()) {
      return log;
    }
    log.entries.push_back(std::move(entry));
  }
  log.broken = false;
  return log;
}

}  // namespace coffer::call
