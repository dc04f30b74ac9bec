// SPDX-License-Identifier: Apache-2.0
#include "policy/manifest/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/quantity.h"
#include "policy/manifest/hash.h"

namespace coffer::policy {
namespace {

using Changes = std::vector<ManifestChange>;

class Differ {
 public:
  Differ(const Manifest& before, const Manifest& after) : before_(before), after_(after) {}

  Changes Diff() {
    Tool();
    Run();
    Isolation();
    LimitChanges();
    Files();
    Network();
    Credentials();
    Approval();
    Rates();
    Background();
    Calls();
    // Everything else that makes a hash: dangers' reasons, examples, the order of lists.
    if (changes_.empty() && ManifestHash(before_) != ManifestHash(after_)) {
      Add(ChangeKind::kChanged, "examples, reasons or order", "", "", "");
    }
    return std::move(changes_);
  }

 private:
  void Add(ChangeKind kind, std::string what, std::string before, std::string after,
           std::string_view pointer) {
    changes_.push_back(
        {kind, std::move(what), std::move(before), std::move(after), after_.PlaceOf(pointer)});
  }

  void Text(std::string_view what, const std::string& before, const std::string& after,
            std::string_view pointer) {
    if (before != after) {
      Add(ChangeKind::kChanged, std::string(what), before, after, pointer);
    }
  }

  // More of it is wider.
  template <typename T, typename Format>
  void Amount(std::string_view what, T before, T after, std::string_view pointer, Format format) {
    if (before != after) {
      Add(after > before ? ChangeKind::kWidened : ChangeKind::kNarrowed, std::string(what),
          format(before), format(after), pointer);
    }
  }

  void Tool() {
    Text("tool.name", before_.tool.name, after_.tool.name, "/tool/name");
    Text("tool.version", before_.tool.version, after_.tool.version, "/tool/version");
    Text("tool.owner", before_.tool.owner, after_.tool.owner, "/tool/owner");
    Text("tool.summary", before_.tool.summary, after_.tool.summary, "/tool/summary");
    if (before_.tool.effect != after_.tool.effect) {
      // A milder effect asks fewer people.
      Add(after_.tool.effect < before_.tool.effect ? ChangeKind::kWidened : ChangeKind::kNarrowed,
          "tool.effect", std::string(EffectName(before_.tool.effect)),
          std::string(EffectName(after_.tool.effect)), "/tool/effect");
    }
    // What follows from the effect is said with it.
    if (before_.tool.needs_key != after_.tool.needs_key &&
        before_.NeedsIdempotencyKey() != after_.NeedsIdempotencyKey()) {
      const auto word = [](const Manifest& manifest) {
        return std::string(manifest.NeedsIdempotencyKey() ? "required" : "optional");
      };
      Add(after_.NeedsIdempotencyKey() ? ChangeKind::kNarrowed : ChangeKind::kWidened,
          "tool.idempotency_key", word(before_), word(after_), "/tool/idempotency_key");
    }
    if (before_.tool.record != after_.tool.record) {
      const auto word = [](const Manifest& manifest) {
        return std::string(manifest.tool.record == RecordKind::kHashes ? "hashes" : "full");
      };
      Add(after_.tool.record == RecordKind::kHashes ? ChangeKind::kWidened : ChangeKind::kNarrowed,
          "tool.record", word(before_), word(after_), "/tool/record");
    }
    Text("input.schema", before_.input_schema, after_.input_schema, "/input/schema");
    Text("output.schema", before_.output_schema, after_.output_schema, "/output/schema");
  }

  static std::string CommandText(const RunSpec& run) {
    std::string text;
    const auto add = [&](const Word& word) {
      text += fmt::format("{}:{} ", static_cast<int>(word.kind), word.text);
    };
    for (const WordGroup& group : run.argv) {
      text += group.group ? "[" : "";
      std::for_each(group.words.begin(), group.words.end(), add);
      text += group.group ? "] " : "";
    }
    for (const auto& [name, word] : run.env) {
      text += fmt::format("{}=", name);
      add(word);
    }
    if (run.stdin_word) {
      text += "< ";
      add(*run.stdin_word);
    }
    for (const PathParameter& path : run.paths) {
      text += fmt::format("{} under {} {} ", path.parameter, path.mount,
                          path.access == Access::kWrite ? "write" : "read");
    }
    return text;
  }

  void Run() {
    Text("run.runtime", before_.run.runtime, after_.run.runtime, "/run/runtime");
    Text("run.also", fmt::format("{}", fmt::join(before_.run.also, " ")),
         fmt::format("{}", fmt::join(after_.run.also, " ")), "/run/also");
    Text("run.cwd", before_.run.cwd, after_.run.cwd, "/run/cwd");
    Text("run", CommandText(before_.run), CommandText(after_.run), "/run/argv");
  }

  void Isolation() {
    const IsolationSpec& a = before_.isolation;
    const IsolationSpec& b = after_.isolation;
    if (a.level != b.level) {
      const auto rank = [](Level l) {
        return l == Level::kContainer ? 2 : l == Level::kAuto ? 1 : 0;
      };
      Add(rank(b.level) < rank(a.level) ? ChangeKind::kWidened : ChangeKind::kNarrowed,
          "isolation.level", std::string(LevelName(a.level)), std::string(LevelName(b.level)),
          "/isolation/level");
    }
    for (const Layer layer : a.floor.Minus(b.floor).list()) {
      Add(ChangeKind::kWidened, "isolation.floor", std::string(LayerName(layer)), "",
          "/isolation/floor");
    }
    for (const Layer layer : b.floor.Minus(a.floor).list()) {
      Add(ChangeKind::kNarrowed, "isolation.floor", "", std::string(LayerName(layer)),
          "/isolation/floor");
    }
    Amount("isolation.syscalls", a.syscalls, b.syscalls, "/isolation/syscalls",
           [](SyscallProfile p) { return std::string(SyscallProfileName(p)); });
  }

  void LimitChanges() {
    const Limits& a = before_.limits;
    const Limits& b = after_.limits;
    const auto count = [](uint64_t n) { return fmt::format("{}", n); };
    Amount("limits.cpu", a.cpu, b.cpu, "/limits/cpu", FormatDuration);
    Amount("limits.wall", a.wall, b.wall, "/limits/wall", FormatDuration);
    Amount("limits.memory", a.memory, b.memory, "/limits/memory", FormatSize);
    Amount("limits.processes", a.processes, b.processes, "/limits/processes", count);
    Amount("limits.open_files", a.open_files, b.open_files, "/limits/open_files", count);
    Amount("limits.disk", a.disk, b.disk, "/limits/disk", FormatSize);
    Amount("limits.inodes", a.inodes, b.inodes, "/limits/inodes", count);
    Amount("limits.io", a.io, b.io, "/limits/io", FormatSize);
    Amount("limits.output", a.output, b.output, "/limits/output", FormatSize);
    Amount("limits.tmp", a.tmp, b.tmp, "/limits/tmp", FormatSize);
    Amount("limits.connections", before_.connections, after_.connections, "/limits/connections",
           count);
  }

  // Grants by name: new is wider, gone is narrower; the same name with other content is judged by `wider`.
  void Grants(std::string_view what, const std::map<std::string, std::string>& a,
              const std::map<std::string, std::string>& b, std::string_view pointer) {
    for (const auto& [name, content] : a) {
      const auto found = b.find(name);
      if (found == b.end()) {
        Add(ChangeKind::kNarrowed, fmt::format("{} {}", what, name), content, "", pointer);
      } else if (found->second != content) {
        Add(ChangeKind::kChanged, fmt::format("{} {}", what, name), content, found->second,
            pointer);
      }
    }
    for (const auto& [name, content] : b) {
      if (!a.contains(name)) {
        Add(ChangeKind::kWidened, fmt::format("{} {}", what, name), "", content, pointer);
      }
    }
  }

  void Files() {
    Amount("files.workspace", before_.workspace, after_.workspace, "/files/workspace",
           [](Workspace w) { return std::string(WorkspaceName(w)); });
    Amount("files.exec", before_.exec, after_.exec, "/files/exec",
           [](bool exec) { return std::string(exec ? "true" : "false"); });
    Amount("files.overlay", !before_.overlay, !after_.overlay, "/files/overlay",
           [](bool without) { return std::string(without ? "false" : "true"); });
    const auto named = [](const std::vector<std::string>& patterns) {
      std::map<std::string, std::string> grants;
      for (const std::string& pattern : patterns) {
        grants[pattern] = "kept";
      }
      return grants;
    };
    Grants("files.exports", named(before_.exports), named(after_.exports), "/files/exports");
    const auto find = [](const Manifest& manifest, const FileMount& mount) -> const FileMount* {
      const auto found = std::find_if(manifest.mounts.begin(), manifest.mounts.end(),
                                      [&](const FileMount& m) { return m.host == mount.host; });
      return found == manifest.mounts.end() ? nullptr : &*found;
    };
    const auto text = [](const FileMount& mount) {
      return fmt::format("{} at {}", MountModeName(mount.mode), mount.at);
    };
    for (const FileMount& mount : before_.mounts) {
      const FileMount* now = find(after_, mount);
      if (now == nullptr) {
        Add(ChangeKind::kNarrowed, fmt::format("files.mount {}", mount.host), text(mount), "",
            "/files/mount");
      } else if (text(mount) != text(*now)) {
        const ChangeKind kind = now->mode > mount.mode   ? ChangeKind::kWidened
                                : now->mode < mount.mode ? ChangeKind::kNarrowed
                                                         : ChangeKind::kChanged;
        Add(kind, fmt::format("files.mount {}", mount.host), text(mount), text(*now),
            "/files/mount");
      }
    }
    for (const FileMount& mount : after_.mounts) {
      if (find(before_, mount) == nullptr) {
        Add(ChangeKind::kWidened, fmt::format("files.mount {}", mount.host), "", text(mount),
            "/files/mount");
      }
    }
  }

  // How a destination may be used: "any rate", "10/s, splice, 1MiB out".
  static std::string TermsOf(const NetworkRule& rule) {
    std::string terms = rule.rate ? FormatRate(*rule.rate) : "any rate";
    if (rule.tls != TlsMode::kIntercept) {
      terms += fmt::format(", {}", TlsModeName(rule.tls));
    }
    if (rule.bytes_out > 0) {
      terms += fmt::format(", {} out", FormatSize(rule.bytes_out));
    }
    if (rule.bytes_in > 0) {
      terms += fmt::format(", {} in", FormatSize(rule.bytes_in));
    }
    if (rule.connections > 0) {
      terms += fmt::format(", {} at once", rule.connections);
    }
    if (rule.time > Nanos(0)) {
      terms += fmt::format(", {} each", FormatDuration(rule.time));
    }
    return rule.ask ? terms + ", if a person agrees" : terms;
  }

  // One grant for each host, port, method and path, so that a longer list is seen as what it adds.
  static std::map<std::string, std::string> RequestsOf(const Manifest& manifest) {
    std::map<std::string, std::string> requests;
    for (const NetworkRule& rule : manifest.network) {
      const std::vector<std::string> every = {"any method"};
      for (const PortRange& range : rule.ports) {
        for (const std::string& method : rule.methods.empty() ? every : rule.methods) {
          for (const std::string& path : rule.paths) {
            requests[fmt::format("{} {}:{}-{}{}", method, rule.any_host ? "*" : rule.host,
                                 range.first, range.last, path)] = TermsOf(rule);
          }
        }
      }
    }
    return requests;
  }

  void Network() {
    Grants("network.allow", RequestsOf(before_), RequestsOf(after_), "/network/allow");
  }

  void Credentials() {
    const auto grants = [](const Manifest& manifest) {
      std::map<std::string, std::string> map;
      for (const CredentialRule& rule : manifest.credentials) {
        map[rule.name] =
            fmt::format("{} at {} as {}", rule.scope, fmt::join(rule.hosts, " "), rule.header);
      }
      return map;
    };
    Grants("credentials", grants(before_), grants(after_), "/credentials");
  }

  void Approval() {
    const ApprovalSpec& a = before_.approval;
    const ApprovalSpec& b = after_.approval;
    if (a.when != b.when) {
      const ChangeKind kind = b.when == ApprovalWhen::kNever || a.when == ApprovalWhen::kAlways
                                  ? ChangeKind::kWidened
                              : a.when == ApprovalWhen::kNever || b.when == ApprovalWhen::kAlways
                                  ? ChangeKind::kNarrowed
                                  : ChangeKind::kChanged;
      Add(kind, "approval.when", std::string(ApprovalWhenName(a.when)),
          std::string(ApprovalWhenName(b.when)), "/approval/when");
    }
    Text("approval.approvers", fmt::format("{}", fmt::join(a.approvers, " ")),
         fmt::format("{}", fmt::join(b.approvers, " ")), "/approval/approvers");
    // Fewer people, more time, a shorter delay: wider.
    Amount("approval.quorum", ~a.quorum, ~b.quorum, "/approval/quorum",
           [](uint64_t n) { return fmt::format("{}", ~n); });
    Amount("approval.expires", a.expires, b.expires, "/approval/expires", FormatDuration);
    Amount("approval.window", -a.window, -b.window, "/approval/window",
           [](Nanos n) { return FormatDuration(-n); });
  }

  void Rates() {
    const auto grants = [](const RateLimits& rate) {
      std::string text;
      for (const RateRule& rule : rate.calls) {
        text += FormatRate(rule);
        text += ' ';
      }
      return text;
    };
    Text("rate.calls", grants(before_.rate), grants(after_.rate), "/rate/calls");
    // 0 is no limit: the widest.
    const auto widest = [](uint64_t n) { return n == 0 ? UINT64_MAX : n; };
    const auto format = [](uint64_t n) { return n == UINT64_MAX ? "" : fmt::format("{}", n); };
    Amount("rate.burst", widest(before_.rate.burst), widest(after_.rate.burst), "/rate/burst",
           format);
    Amount("rate.concurrency", widest(before_.rate.concurrency), widest(after_.rate.concurrency),
           "/rate/concurrency", format);
    // A shorter wait is wider.
    Amount("rate.retry", -before_.retry, -after_.retry, "/rate/retry",
           [](Nanos n) { return n == Nanos(0) ? "off" : FormatDuration(-n); });
  }

  void Background() {
    const auto grants = [](const Manifest& manifest) {
      std::map<std::string, std::string> map;
      if (manifest.background) {
        map["processes"] =
            fmt::format("for {} with {} of CPU", FormatDuration(manifest.background->wall),
                        FormatDuration(manifest.background->cpu));
        for (const PortRange& range : manifest.background->ports) {
          map[fmt::format("ports {}-{}", range.first, range.last)] = "reachable";
        }
      }
      return map;
    };
    Grants("background", grants(before_), grants(after_), "/background");
  }

  void Calls() {
    const auto grants = [](const Manifest& manifest) {
      std::map<std::string, std::string> map;
      for (const std::string& tool : manifest.calls.tools) {
        map[tool] = "can be called";
      }
      return map;
    };
    Grants("calls", grants(before_), grants(after_), "/calls/tools");
    const auto most = [](const Manifest& manifest) {
      return manifest.calls.tools.empty() ? 0 : manifest.calls.most;
    };
    Amount("calls.most", most(before_), most(after_), "/calls/most",
           [](uint64_t n) { return std::to_string(n); });
  }

  const Manifest& before_;
  const Manifest& after_;
  Changes changes_;
};

}  // namespace

std::vector<ManifestChange> DiffManifests(const Manifest& before, const Manifest& after) {
  return Differ(before, after).Diff();
}

}  // namespace coffer::policy
