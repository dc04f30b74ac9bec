// SPDX-License-Identifier: Apache-2.0
#include "policy/manifest/hash.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "base/json.h"

namespace coffer::policy {
namespace {

// Objects sorted by key, so that a table means the same in any order. Depth is bounded by the reader.
Json Sorted(const Json& value) {
  if (value.is_array()) {
    Json array = Json::array();
    for (const Json& item : value) {
      array.push_back(Sorted(item));
    }
    return array;
  }
  if (!value.is_object()) {
    return value;
  }
  std::vector<std::pair<std::string, const Json*>> members;
  for (const auto& member : value.items()) {
    members.emplace_back(member.key(), &member.value());
  }
  std::sort(members.begin(), members.end());
  Json object = Json::object();
  for (const auto& [key, member] : members) {
    object[key] = Sorted(*member);
  }
  return object;
}

Json FromText(const std::string& text) {
  if (text.empty()) {
    return nullptr;
  }
  Result<Json> parsed = ParseJson(text);
  return parsed.ok() ? Sorted(*parsed) : Json(text);
}

Json FormOf(const Word& word) {
  static constexpr std::string_view kKinds[] = {"literal", "parameter", "spread", "all"};
  Json json = Json::object();
  json[std::string(kKinds[static_cast<size_t>(word.kind)])] = word.text;
  return json;
}

Json FormOf(const RunSpec& run) {
  Json json;
  json["runtime"] = run.runtime;
  if (!run.also.empty()) {
    json["also"] = run.also;
  }
  Json& argv = json["argv"] = Json::array();
  for (const WordGroup& group : run.argv) {
    Json words = Json::array();
    for (const Word& word : group.words) {
      words.push_back(FormOf(word));
    }
    argv.push_back({{"group", group.group}, {"words", std::move(words)}});
  }
  Json& env = json["env"] = Json::object();
  for (const auto& [name, word] : run.env) {
    env[name] = FormOf(word);
  }
  json["stdin"] = run.stdin_word ? FormOf(*run.stdin_word) : Json(nullptr);
  json["cwd"] = run.cwd;
  Json& paths = json["paths"] = Json::object();
  for (const PathParameter& path : run.paths) {
    paths[path.parameter] = {{"mount", path.mount},
                             {"mode", path.access == Access::kWrite ? "write" : "read"}};
  }
  return json;
}

Json FormOf(const Limits& limits) {
  return {{"cpu_ns", limits.cpu.count()},    {"wall_ns", limits.wall.count()},
          {"memory", limits.memory},         {"processes", limits.processes},
          {"open_files", limits.open_files}, {"disk", limits.disk},
          {"inodes", limits.inodes},         {"io", limits.io},
          {"output", limits.output},         {"tmp", limits.tmp}};
}

Json FormOf(const NetworkRule& rule) {
  Json ports = Json::array();
  for (const PortRange& range : rule.ports) {
    ports.push_back(Json::array({range.first, range.last}));
  }
  Json json = {{"host", rule.any_host ? "*" : rule.host},
               {"ports", std::move(ports)},
               {"methods", rule.methods},
               {"paths", rule.paths},
               {"rate", rule.rate ? Json(FormatRate(*rule.rate)) : Json(nullptr)},
               {"dangerous", rule.dangerous}};
  if (rule.tls != TlsMode::kIntercept) {
    json["tls"] = TlsModeName(rule.tls);
  }
  if (rule.bytes_out > 0) {
    json["bytes_out"] = rule.bytes_out;
  }
  if (rule.bytes_in > 0) {
    json["bytes_in"] = rule.bytes_in;
  }
  if (rule.connections > 0) {
    json["connections"] = rule.connections;
  }
  if (rule.time > Nanos(0)) {
    json["time_ns"] = rule.time.count();
  }
  if (rule.ask) {
    json["ask"] = true;
  }
  return json;
}

Json FormOf(const std::vector<Example>& examples) {
  Json list = Json::array();
  for (const Example& example : examples) {
    list.push_back({{"args", FromText(example.args)}, {"why", example.why}});
  }
  return list;
}

Json GrantsOf(const Manifest& manifest) {
  Json json;
  json["workspace"] = WorkspaceName(manifest.workspace);
  if (manifest.exec) {
    json["exec"] = true;
  }
  if (manifest.overlay) {
    json["overlay"] = true;
  }
  if (!manifest.exports.empty()) {
    json["exports"] = manifest.exports;
  }
  Json& mounts = json["mounts"] = Json::array();
  for (const FileMount& mount : manifest.mounts) {
    mounts.push_back({{"host", mount.host},
                      {"at", mount.at},
                      {"mode", MountModeName(mount.mode)},
                      {"dangerous", mount.dangerous}});
  }
  Json& network = json["network"] = Json::array();
  for (const NetworkRule& rule : manifest.network) {
    network.push_back(FormOf(rule));
  }
  Json& credentials = json["credentials"] = Json::array();
  for (const CredentialRule& rule : manifest.credentials) {
    credentials.push_back({{"name", rule.name},
                           {"scope", rule.scope},
                           {"hosts", rule.hosts},
                           {"header", rule.header}});
  }
  Json& dangers = json["dangers"] = Json::array();
  for (const Danger& danger : manifest.dangers) {
    dangers.push_back({{"key", danger.key}, {"value", danger.value}, {"reason", danger.reason}});
  }
  return json;
}

}  // namespace

std::string CanonicalForm(const Manifest& manifest) {
  Json json;
  json["tool"] = {{"name", manifest.tool.name},
                  {"version", manifest.tool.version},
                  {"owner", manifest.tool.owner},
                  {"summary", manifest.tool.summary},
                  {"effect", EffectName(manifest.tool.effect)},
                  {"idempotency_key", manifest.NeedsIdempotencyKey() ? "required" : "optional"}};
  if (manifest.tool.record == RecordKind::kHashes) {
    json["tool"]["record"] = "hashes";
  }
  json["input"] = FromText(manifest.input_schema);
  json["run"] = FormOf(manifest.run);
  Json floor = Json::array();
  for (const Layer layer : manifest.isolation.floor.list()) {
    floor.push_back(LayerName(layer));
  }
  json["isolation"] = {{"level", LevelName(manifest.isolation.level)},
                       {"floor", std::move(floor)},
                       {"syscalls", SyscallProfileName(manifest.isolation.syscalls)}};
  json["limits"] = FormOf(manifest.limits);
  json["connections"] = manifest.connections;
  json["grants"] = GrantsOf(manifest);
  const ApprovalSpec& approval = manifest.approval;
  json["approval"] = {{"when", ApprovalWhenName(approval.when)},
                      {"approvers", approval.approvers},
                      {"quorum", approval.quorum},
                      {"expires_ns", approval.expires.count()},
                      {"window_ns", approval.window.count()}};
  json["output"] = FromText(manifest.output_schema);
  Json& calls = json["rate"]["calls"] = Json::array();
  for (const RateRule& rule : manifest.rate.calls) {
    calls.push_back(FormatRate(rule));
  }
  json["rate"]["burst"] = manifest.rate.burst;
  json["rate"]["concurrency"] = manifest.rate.concurrency;
  if (manifest.retry != Manifest().retry) {
    json["rate"]["retry_ns"] = manifest.retry.count();
  }
  if (manifest.background) {
    Json ports = Json::array();
    for (const PortRange& range : manifest.background->ports) {
      ports.push_back(Json::array({range.first, range.last}));
    }
    json["background"] = {{"wall_ns", manifest.background->wall.count()},
                          {"cpu_ns", manifest.background->cpu.count()},
                          {"ports", std::move(ports)}};
  }
  if (!manifest.calls.tools.empty()) {
    json["calls"] = {{"tools", manifest.calls.tools}, {"most", manifest.calls.most}};
  }
  json["allow"] = FormOf(manifest.allow_examples);
  json["deny"] = FormOf(manifest.deny_examples);
  return PrintJson(Sorted(json));
}

std::string ManifestHash(const Manifest& manifest) { return HashOf(CanonicalForm(manifest)); }

}  // namespace coffer::policy
