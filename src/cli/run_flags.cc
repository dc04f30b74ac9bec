// SPDX-License-Identifier: Apache-2.0
#include "cli/run_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/quantity.h"
#include "base/text.h"
#include "call/run/port_forwarder.h"
#include "cli/egress_flags.h"
#include "cli/foreign_flags.h"
#include "cli/tool_flags.h"
#include "egress/access.h"
#include "policy/envelope.h"
#include "policy/manifest/manifest.h"
#include "policy/manifest/mistake.h"
#include "policy/reason.h"

namespace coffer::cli {
namespace {

using call::RunRequest;
using Words = std::span<const std::string_view>;

class Parser {
 public:
  explicit Parser(Words words) : words_(words) {
    has_separator_ = std::find(words.begin(), words.end(), "--") != words.end();
  }

  Result<RunRequest> Parse() {
    while (at_ < words_.size()) {
      const std::string_view word = words_[at_];
      if (word == "--") {
        ++at_;
        return Finish(/*script=*/false);
      }
      if (word.size() < 2 || word[0] != '-') {
        return Finish(/*script=*/true);
      }
      ++at_;
      TRY(Flag(word));
    }
    return Refused("policy.usage", "no command was given",
                   "write: coffer run FILE, or coffer run -- CMD ARG...");
  }

 private:
  Result<RunRequest> Finish(bool script) {
    if (at_ >= words_.size()) {
      return Refused("policy.usage", "no command was given after --",
                     "write: coffer run -- CMD ARG...");
    }
    for (; at_ < words_.size(); ++at_) {
      request_.command.emplace_back(words_[at_]);
    }
    if (request_.command.front().empty()) {
      return Refused("policy.usage", "the command is an empty word");
    }
    request_.script = script;
    if (!request_.project.empty()) {
      UseProjectDefaults(given_, request_);
    } else if (request_.keep_planted || !request_.caches.empty()) {
      return Refused(
          "policy.usage",
          fmt::format("{} needs --project", request_.keep_planted ? "--keep-planted" : "--cache"),
          "write --project . for the current directory");
    }
    if (request_.envelope.runtimes.empty()) {
      request_.envelope.runtimes = {"host-usr"};  // --runtime narrows to listed files
    }
    request_.envelope.exec = !no_exec_;
    TRY(CheckEgressFlags(request_));
    TRY(CheckToolFlags(given_, request_));
    return std::move(request_);
  }

  // The value of a flag: after "=", or the next word.
  Result<std::string_view> Value(std::string_view flag) {
    if (inline_value_) {
      return *inline_value_;
    }
    if (at_ >= words_.size() || words_[at_] == "--") {
      return Refused("policy.usage", fmt::format("{} needs a value", flag),
                     "`coffer run --help` lists the flags");
    }
    return words_[at_++];
  }

  // One word, or with "--" later on, every word up to the next flag; each may be a comma-separated list.
  Result<std::vector<std::string_view>> Values(std::string_view flag) {
    std::vector<std::string_view> values;
    TRY_ASSIGN(const std::string_view first, Value(flag));
    values.push_back(first);
    while (!inline_value_ && has_separator_ && at_ < words_.size() &&
           !words_[at_].starts_with("-")) {
      values.push_back(words_[at_++]);
    }
    return values;
  }

  static std::vector<std::string_view> SplitCommas(const std::vector<std::string_view>& values) {
    std::vector<std::string_view> parts;
    for (std::string_view value : values) {
      for (size_t comma = 0; comma != std::string_view::npos; value.remove_prefix(comma + 1)) {
        comma = value.find(',');
        parts.push_back(value.substr(0, comma));
        if (comma == std::string_view::npos) {
          break;
        }
      }
    }
    return parts;
  }

  template <typename T>
  Status Into(T& place, std::string_view flag, Result<T> (*parse)(std::string_view)) {
    TRY_ASSIGN(const std::string_view text, Value(flag));
    Result<T> parsed = parse(text);
    if (!parsed.ok()) {
      parsed.error().message = fmt::format("{}: {}", flag, Printable(parsed.error().message));
      return std::move(parsed.error());
    }
    place = *parsed;
    return {};
  }

  Status Mount(std::string_view flag, policy::Access access, bool system = false) {
    TRY_ASSIGN(const std::string_view text, Value(flag));
    policy::Mount mount;
    mount.access = access;
    mount.system = system;
    const size_t colon = text.rfind(':');
    mount.host = std::string(text.substr(0, colon));
    if (colon != std::string_view::npos) {
      mount.at = std::string(text.substr(colon + 1));
      if (mount.at.empty()) {
        return Refused("policy.usage", fmt::format("{}: nothing after the colon", flag),
                       "write PATH:AT, such as ./src:/src");
      }
    }
    if (mount.host.empty()) {
      return Refused("policy.usage", fmt::format("{} needs a path", flag));
    }
    request_.envelope.mounts.push_back(std::move(mount));
    return {};
  }

  Status Out(std::string_view flag) {
    TRY_ASSIGN(const std::string_view text, Value(flag));
    if (!request_.out_dir.empty()) {
      return Refused("policy.usage", "--out was given twice", "a call has one output directory");
    }
    if (text.empty()) {
      return Refused("policy.usage", "--out needs a directory");
    }
    request_.out_dir = std::string(text);
    request_.envelope.mounts.push_back({request_.out_dir, "/out", policy::Access::kWrite});
    return {};
  }

  Status ProjectDirectory(std::string_view flag) {
    TRY_ASSIGN(const std::string_view text, Value(flag));
    if (!request_.project.empty()) {
      return Refused("policy.usage", "--project was given twice",
                     "a call has one project; use --rw for another directory");
    }
    if (text.empty()) {
      return Refused("policy.usage", "--project needs a directory", "write --project .");
    }
    request_.project = std::string(text);
    request_.envelope.mounts.push_back({request_.project, "", policy::Access::kWrite});
    return {};
  }

  Status Env(std::string_view flag) {
    TRY_ASSIGN(const std::string_view text, Value(flag));
    const size_t equals = text.find('=');
    const std::string_view name = text.substr(0, equals);
    const bool plain = !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
      return std::isalnum(c) != 0 || c == '_' || c == '.' || c == '-';
    });
    if (equals == std::string_view::npos || !plain) {
      return Refused("policy.usage",
                     fmt::format("--env: \"{}\" is not NAME=VALUE", Printable(text)),
                     "values are never taken from your own environment: write them out");
    }
    request_.envelope.env.emplace_back(name, text.substr(equals + 1));
    return {};
  }

  Status Floor(std::string_view flag) {
    TRY_ASSIGN(const std::vector<std::string_view> values, Values(flag));
    for (const std::string_view name : SplitCommas(values)) {
      const auto layer = policy::FindLayer(name);
      if (!layer) {
        return Refused("policy.usage",
                       fmt::format("--floor: there is no layer called \"{}\"", Printable(name)),
                       SuggestLayer(name));
      }
      request_.envelope.floor.Add(*layer);
    }
    return {};
  }

  Status Seccomp(std::string_view flag) {
    TRY_ASSIGN(const std::string_view text, Value(flag));
    for (const auto profile : {policy::SyscallProfile::kStrict, policy::SyscallProfile::kDefault,
                               policy::SyscallProfile::kCompat}) {
      if (policy::SyscallProfileName(profile) == text) {
        request_.envelope.syscalls = profile;
        request_.envelope.imported_seccomp.clear();  // the last one counts
        return {};
      }
    }
    if (text.find_first_of("./") == std::string_view::npos) {
      return Refused(
          "policy.usage",
          fmt::format("--seccomp: there is no profile called \"{}\"", Printable(text)),
          "use strict, default, compat, or the path of an OCI or Docker profile in JSON");
    }
    request_.envelope.syscalls = policy::SyscallProfile::kImported;
    request_.envelope.imported_seccomp = std::string(text);
    return {};
  }

  Status Uid(std::string_view flag) {
    TRY_ASSIGN(const std::string_view text, Value(flag));
    uint32_t uid = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), uid);
    if (problem != std::errc() || end != text.data() + text.size() || uid > 65535) {
      return Refused("policy.value", fmt::format("--uid: \"{}\" is not a uid", Printable(text)),
                     "write a number from 0 to 65535");
    }
    request_.envelope.uid = uid;
    return {};
  }

  // PORT, or HOST:PORT.
  Status Publish(std::string_view flag) {
    TRY_ASSIGN(const std::string_view text, Value(flag));
    TRY_ASSIGN(const RunRequest::Publish port, ParsePublish(text));
    if (request_.publish.size() == call::kMostPorts) {
      return Refused("policy.value", fmt::format("--publish: at most {} ports", call::kMostPorts));
    }
    request_.publish.push_back(port);
    return {};
  }

  // Of a background process (`coffer sessions start`): one, or several with commas.
  Status Port(std::string_view flag) {
    TRY_ASSIGN(const std::vector<std::string_view> values, Values(flag));
    for (const std::string_view text : SplitCommas(values)) {
      uint16_t port = 0;
      const char* const end = text.data() + text.size();
      const auto [stop, problem] = std::from_chars(text.data(), end, port);
      if (problem != std::errc() || stop != end || port < policy::kFirstBackgroundPort) {
        return Refused("policy.value", fmt::format("--port: \"{}\" is not a port", Printable(text)),
                       fmt::format("write a number from {} to 65535, such as --port 8000",
                                   policy::kFirstBackgroundPort));
      }
      std::vector<uint16_t>& ports = request_.ports;
      if (std::find(ports.begin(), ports.end(), port) != ports.end()) {
        return Refused("policy.value", fmt::format("--port: {} was given twice", port));
      }
      if (ports.size() == call::kMostPorts) {
        return Refused("policy.value", fmt::format("--port: at most {} ports", call::kMostPorts));
      }
      ports.push_back(port);
    }
    return {};
  }

  Status Level(std::string_view flag) {
    TRY_ASSIGN(const std::string_view text, Value(flag));
    const auto level = policy::FindLevel(text);
    if (!level) {
      return Refused("policy.usage",
                     fmt::format("--level: there is no level called \"{}\"", Printable(text)),
                     "use process, container or auto");
    }
    request_.envelope.level = *level;
    return {};
  }

  Status Disk(policy::Limits& limits, std::string_view flag) {
    TRY(Into(limits.disk, flag, ParseSize));
    limits.inodes = policy::InodesFor(limits.disk, policy::Limits{}.inodes);
    return {};
  }

  Status Cwd(std::string_view flag) {
    TRY_ASSIGN(const std::string_view text, Value(flag));
    if (!text.starts_with("/") || text.find("/../") != std::string_view::npos ||
        text.ends_with("/..")) {
      return Refused("policy.value",
                     fmt::format("--cwd: \"{}\" is not an absolute path inside", Printable(text)),
                     "write it as /workspace or the target of a mount");
    }
    request_.envelope.cwd = std::string(text);
    return {};
  }

  Status Text(std::string& place, std::string_view flag) {
    TRY_ASSIGN(const std::string_view text, Value(flag));
    if (text.empty()) {
      return Refused("policy.usage", fmt::format("{} needs a value", flag));
    }
    place = std::string(text);
    return {};
  }

  // The last of two would count, and the values of the first would leave.
  Status NeverSend(std::string_view flag) {
    if (!request_.egress.never_send.empty()) {
      return Refused("policy.usage", fmt::format("{} was given twice", flag),
                     "write the values of both files into one");
    }
    return Text(request_.egress.never_send, flag);
  }

  Status Reason(std::string_view flag) {
    TRY(Text(request_.reason, flag));
    return policy::CheckReason(request_.reason);
  }

  Status List(std::vector<std::string>& place, std::string_view flag, bool commas) {
    TRY_ASSIGN(std::vector<std::string_view> values, Values(flag));
    if (commas) {
      values = SplitCommas(values);
    }
    for (const std::string_view value : values) {
      if (value.empty()) {
        return Refused("policy.usage", fmt::format("{}: an empty name", flag));
      }
      place.emplace_back(value);
    }
    return {};
  }

  // A flag that is repeated for more, because its values may hold commas and spaces.
  Status OneMore(std::vector<std::string>& place, std::string_view flag) {
    std::string text;
    TRY(Text(text, flag));
    place.push_back(std::move(text));
    return {};
  }

  Status Switch(bool& place, std::string_view flag) {
    if (inline_value_) {
      return Refused("policy.usage", fmt::format("{} takes no value", flag));
    }
    place = true;
    return {};
  }

  Status Flag(std::string_view word) {
    const size_t equals = word.find('=');
    const std::string_view flag = word.substr(0, equals);
    inline_value_.reset();
    if (equals != std::string_view::npos) {
      inline_value_ = word.substr(equals + 1);
    }
    policy::Envelope& envelope = request_.envelope;
    policy::Limits& limits = envelope.limits;
    given_.push_back(flag);
    // NOLINTBEGIN(readability-braces-around-statements): a table
    if (flag == "--ro")
      return Mount(flag, policy::Access::kRead);
    if (flag == "--rw")
      return Mount(flag, policy::Access::kWrite);
    if (flag == "--dangerously-rw")
      return Mount(flag, policy::Access::kWrite, /*system=*/true);
    if (flag == "--in")
      return List(envelope.inputs, flag, /*commas=*/false);
    if (flag == "--out")
      return Out(flag);
    if (flag == "--project")
      return ProjectDirectory(flag);
    if (flag == "--keep-planted")
      return Switch(request_.keep_planted, flag);
    if (flag == "--cache")
      return List(request_.caches, flag, /*commas=*/true);
    if (flag == "--profile")
      return Text(request_.profile, flag);
    if (flag == "--fail-on-cut")
      return Switch(request_.cut_is_breach, flag);
    if (flag == "--level")
      return Level(flag);
    if (flag == "--runtime")
      return List(envelope.runtimes, flag, /*commas=*/true);
    if (flag == "--cpu")
      return Into(limits.cpu, flag, ParseDuration);
    if (flag == "--wall")
      return Into(limits.wall, flag, ParseDuration);
    if (flag == "--memory")
      return Into(limits.memory, flag, ParseSize);
    if (flag == "--processes")
      return Into(limits.processes, flag, ParseCount);
    if (flag == "--open-files")
      return Into(limits.open_files, flag, ParseCount);
    if (flag == "--disk")
      return Disk(limits, flag);
    if (flag == "--tmp")
      return Into(limits.tmp, flag, ParseSize);
    if (flag == "--io")
      return Into(limits.io, flag, ParseSize);
    if (flag == "--output")
      return Into(limits.output, flag, ParseSize);
    if (flag == "--env")
      return Env(flag);
    if (flag == "--cwd")
      return Cwd(flag);
    if (flag == "--uid")
      return Uid(flag);
    if (flag == "--publish")
      return Publish(flag);
    if (flag == "--port")
      return Port(flag);
    if (flag == "--allow")
      return OneMore(request_.egress.allow, flag);
    if (flag == "--hold")
      return Switch(request_.egress.hold, flag);
    if (flag == "--hold-time")
      return Into(request_.egress.hold_seconds, flag, ParseHoldTime);
    if (flag == "--tools")
      return List(request_.tools, flag, /*commas=*/true);
    if (flag == "--tools-dir")
      return OneMore(request_.tool_dirs, flag);
    if (flag == "--tool-calls")
      return Into(request_.tool_calls, flag, ParseCount);
    if (flag == "--resolve")
      return OneMore(request_.egress.resolve, flag);
    if (flag == "--dangerously-allow-address")
      return OneMore(request_.egress.addresses, flag);
    if (flag == "--upstream-ca")
      return Text(request_.egress.upstream_ca, flag);
    if (flag == "--upstream-proxy")
      return Text(request_.egress.upstream_proxy, flag);
    if (flag == "--never-send")
      return NeverSend(flag);
    if (flag == "--floor")
      return Floor(flag);
    if (flag == "--seccomp")
      return Seccomp(flag);
    if (flag == "--receipt")
      return Text(request_.receipt_path, flag);
    if (flag == "--reason")
      return Reason(flag);
    if (flag == "--session")
      return Text(request_.session, flag);
    if (flag == "--state")
      return Text(request_.state, flag);
    if (flag == "--tty")
      return Switch(envelope.tty, flag);
    if (flag == "--no-exec")
      return Switch(no_exec_, flag);
    if (flag == "--ro-overlay")
      return Switch(envelope.overlay, flag);
    if (flag == "--quiet")
      return Switch(request_.quiet, flag);
    if (flag == "--trace")
      return Switch(request_.trace, flag);
    // NOLINTEND(readability-braces-around-statements)
    return UnknownRunFlag(flag);
  }

  static std::string SuggestLayer(std::string_view name) {
    std::vector<std::string_view> known;
    known.reserve(policy::kLayerCount);
    for (int layer = 0; layer < policy::kLayerCount; ++layer) {
      known.push_back(policy::LayerName(static_cast<policy::Layer>(layer)));
    }
    const std::string_view nearest = policy::NearestWord(name, known);
    return nearest.empty() ? "`coffer doctor` lists the layers"
                           : fmt::format("did you mean {}?", nearest);
  }

  Words words_;
  size_t at_ = 0;
  std::vector<std::string_view>
      given_;  // the flags, for what a project changes only if it was not said
  bool has_separator_ = false;
  bool no_exec_ = false;
  std::optional<std::string_view> inline_value_;
  RunRequest request_;
};

}  // namespace

Result<call::RunRequest> ParseRunFlags(Words words) { return Parser(words).Parse(); }

}  // namespace coffer::cli
