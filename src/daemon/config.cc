// SPDX-License-Identifier: Apache-2.0
#include "daemon/config.h"

#include <unistd.h>

#include <charconv>
#include <utility>

#include "call/run/run_config.h"
#include "call/run/usual_toolchains.h"
#include "call/verb_flags.h"
#include "isolation/host_path.h"

namespace coffer::daemon {
namespace {

constexpr call::FlagSpec kFlags[] = {
    {"--listen", true},  {"--socket", true},     {"--tls-cert", true},
    {"--tls-key", true}, {"--jwt-issuer", true}, {"--jwt-audience", true},
    {"--jwks", true},    {"--name", true},       {"--allow-dangerous", false},
    {"--warden", true},  {"--config", true},     {"--health-listen", true}};

// "127.0.0.1:7433", "[::1]:0".
Status ReadListen(const std::string& flag, const std::string& given, std::string& to_host,
                  uint16_t& to_port) {
  const size_t colon = given.rfind(':');
  const std::string port = colon == std::string::npos ? "" : given.substr(colon + 1);
  std::string host = given.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  uint16_t number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (host.empty() || port.empty() || error != std::errc() || end != port.data() + port.size()) {
    return Refused("policy.usage", flag + " takes ADDRESS:PORT",
                   "such as 127.0.0.1:7433; port 0 takes any free one");
  }
  to_host = host;
  to_port = number;
  return {};
}

}  // namespace

std::string_view ServeHelp() {
  return R"(The daemon: tools over HTTP, for tenants, with keys.

Usage: coffer serve [flags]

  --listen ADDRESS:PORT   where to listen (127.0.0.1:7433; port 0 takes any free one)
  --health-listen ADDRESS:PORT   answer /healthz, and nothing else, without TLS there too (for probes of a daemon with TLS)
  --socket PATH           the unix socket (coffer.sock in the state directory); its owner is an operator without a key
  --tls-cert FILE --tls-key FILE   serve HTTPS
  --jwks FILE --jwt-issuer ISSUER --jwt-audience AUDIENCE   accept JSON Web Tokens
  --config FILE           quotas, budgets, ceilings and more (/etc/coffer/coffer.toml as root, else
                          ~/.config/coffer/coffer.toml, if it is there)
  --name HOST             a further name that clients may use in their Host header (several)
  --allow-dangerous       let tools have the mounts that their manifests grant with dangerously_host
  --json                  print one line of JSON when ready: {"listen", "socket", "key"}
  --state DIR, --tools DIR         as in `coffer tools --help`

Without any flag it keeps its state in the state directory, offers the shipped tools to the tenant "local", and prints a
first key once. Manifests and the configuration are yours: where other users, or the daemon's own gateway, could change
them, they are refused. SIGTERM and SIGINT end it after the calls that run have ended, at most 10 s later; SIGHUP reads the
manifests, the configuration file, the certificate and the JWKS again.
)";
}

Result<Config> ParseConfig(std::span<const std::string_view> words) {
  TRY_ASSIGN(const call::VerbFlags flags, call::VerbFlags::Parse("serve", words, kFlags));
  if (!flags.words().empty()) {
    return Refused("policy.usage", "coffer serve takes flags only", "`coffer serve --help`");
  }
  Config config;
  TRY_ASSIGN(config.state, flags.StateDir());
  TRY_ASSIGN(config.tools, flags.NamedToolDirs());
  if (config.tools.empty()) {
    TRY(call::CheckNotInState(config.state, "tools"));
    TRY_ASSIGN(config.default_tools, call::UsualToolDir());
  }
  if (flags.Has("--listen")) {
    TRY(ReadListen("--listen", flags.Value("--listen"), config.host, config.port));
  }
  if (flags.Has("--health-listen")) {
    TRY(ReadListen("--health-listen", flags.Value("--health-listen"), config.health_host,
                   config.health_port));
  }
  config.socket = flags.Value("--socket", config.state + "/coffer.sock");
  config.tls_certificate = flags.Value("--tls-cert");
  config.tls_key = flags.Value("--tls-key");
  config.jwks = flags.Value("--jwks");
  config.jwt_issuer = flags.Value("--jwt-issuer");
  config.jwt_audience = flags.Value("--jwt-audience");
  config.names = flags.Values("--name");
  config.allow_dangerous = flags.Has("--allow-dangerous");
  config.warden = flags.Value("--warden");
  TRY_ASSIGN(config.file, flags.ConfigFile());
  config.file_is_default = !flags.Has("--config");
  config.operator_uid = ::geteuid();
  TRY_ASSIGN(call::RunConfig own, call::ReadRunConfig());
  config.toolchains = std::move(own.toolchains);
  for (const std::string& usual : call::UsualToolchainPlaces()) {
    if (Result<std::string> clean = isolation::CleanPath(usual); clean.ok()) {
      config.toolchains.push_back(std::move(clean).value());
    }
  }
  config.json = flags.json();
  if (config.tls_certificate.empty() != config.tls_key.empty()) {
    return Refused("policy.usage", "--tls-cert and --tls-key go together");
  }
  if (!config.jwks.empty() && (config.jwt_issuer.empty() || config.jwt_audience.empty())) {
    return Refused("policy.usage", "--jwks needs --jwt-issuer and --jwt-audience",
                   "a token for another service must not be accepted");
  }
  return config;
}

}  // namespace coffer::daemon
