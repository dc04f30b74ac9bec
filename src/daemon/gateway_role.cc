// SPDX-License-Identifier: Apache-2.0
#include "daemon/gateway_role.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/json.h"
#include "base/print.h"
#include "base/sys.h"
#include "call/ladder.h"
#include "call/launcher.h"
#include "call/recovered.h"
#include "call/tool_shelf.h"
#include "daemon/desk.h"
#include "daemon/role.h"
#include "daemon/service.h"
#include "daemon/workers.h"
#include "gateway/jwt.h"
#include "gateway/server.h"
#include "store/key.h"
#include "store/store.h"
#include "store/tenant.h"

namespace coffer::daemon {
namespace {

constexpr int kFailed = 125;
constexpr std::chrono::milliseconds kDrain{10'000};
constexpr size_t kWorkers = 4;
constexpr size_t kMaxQueued = 1024;

Result<gateway::ServerConfig> ServerConfigOf(const Config& config) {
  gateway::ServerConfig made;
  made.tcp.push_back({config.host, config.port});
  made.unix_sockets.push_back({config.socket, 0600});
  if (!config.tls_certificate.empty()) {
    made.tls = gateway::TlsFiles{config.tls_certificate, config.tls_key};
  }
  made.http.names.hosts = config.names;
  if (!config.jwks.empty()) {
    gateway::JwtConfig jwt;
    jwt.issuer = config.jwt_issuer;
    jwt.audience = config.jwt_audience;
    TRY_ASSIGN(jwt.jwks, sys::ReadFile(config.jwks));
    TRY_ASSIGN(made.http.jwt, gateway::JwtVerifier::Make(std::move(jwt)));
  }
  return made;
}

void Announce(const Config& config, uint16_t port, const std::optional<store::NewKey>& key) {
  const std::string scheme = config.tls_certificate.empty() ? "http" : "https";
  const std::string host =
      config.host.find(':') == std::string::npos ? config.host : "[" + config.host + "]";
  const std::string listen = fmt::format("{}://{}:{}", scheme, host, port);
  if (config.json) {
    PrintOut(PrintJson(Json{{"listen", listen},
                            {"socket", config.socket},
                            {"key", key ? Json(key->text) : Json(nullptr)}}) +
             "\n");
    return;
  }
  std::string text = fmt::format("Cofferdam listens on {} and {}\n", listen, config.socket);
  if (key) {
    text += fmt::format(
        "A first key (operator of the tenant local), shown only now:\n\n  {0}\n\nTry:\n\n"
        "  curl -s {1}/v1/calls -H 'Authorization: Bearer {0}' \\\n"
        "    -H 'Content-Type: application/json' -d '{{\"tool\": \"python\", \"args\": {{\"code\": "
        "\"print(2 + 2)\"}}}}'\n\n",
        key->text, listen);
  } else {
    text += "Keys were made before; `coffer key new` makes another.\n";
  }
  PrintOut(text);
}

Status Serve(const Config& config, int warden) {
  const std::unique_ptr<gateway::Loop> loop = gateway::MakeLoop();
  Desk desk(*loop);
  desk.sessions = config.state + "/sessions";
  ServiceOptions options;
  options.owner = ::geteuid();
  DaemonService service(desk, options);
  TRY_ASSIGN(gateway::ServerConfig http, ServerConfigOf(config));
  TRY_ASSIGN(std::unique_ptr<gateway::Server> server,
             gateway::Server::Open(*loop, service, std::move(http)));
  TRY(EnterRole(RoleKind::kGateway));

  // From here on without any privilege.
  TRY_ASSIGN(store::Store store, store::Store::Open(config.state));
  TRY(call::SettleRecovered(store, store.recovered()));
  store::KeyRequest first;
  first.role = store::Role::kOperator;
  first.agent = "operator";
  TRY_ASSIGN(const store::Tenant local, store::EnsureTenant(store, store::TenantId::Local()));
  TRY_ASSIGN(const std::optional<store::NewKey> key, store::CreateFirstKey(store, local.id, first));
  call::ToolShelf shelf(config.tools);
  TRY(shelf.Reload());
  call::LadderOptions ladder_options;
  ladder_options.sessions = desk.sessions;
  call::Ladder ladder(store, shelf, ladder_options);
  call::WardenLauncher launcher(warden);
  Workers workers(kWorkers, kMaxQueued);
  desk.Fill(&store, &shelf, &ladder, &launcher, &workers);

  // No new requests; then the calls that run get the rest of the time, also those nobody waits for.
  std::shared_ptr<void> waiting;
  Nanos deadline{0};
  std::function<void()> finish = [&] {
    const std::shared_ptr<void> keep = std::move(waiting);  // we may be running inside it
    if (service.running() == 0 || BootTime() >= deadline) {
      loop->Stop();
    } else {
      waiting = loop->After(std::chrono::milliseconds(50), finish);
    }
  };
  const auto stop = [&] {
    deadline = BootTime() + kDrain;
    server->Drain(kDrain, finish);
  };
  const std::shared_ptr<void> on_term = loop->WatchSignal(SIGTERM, stop);
  const std::shared_ptr<void> on_int = loop->WatchSignal(SIGINT, stop);
  const std::shared_ptr<void> on_hup =
      loop->WatchSignal(SIGHUP, [&] { (void)workers.Submit([&] { (void)shelf.Reload(); }); });
  const std::shared_ptr<void> on_warden = loop->WatchReadable(warden, [&] { loop->Stop(); });
  Announce(config, server->ports().front(), key);
  loop->Run();
  server.reset();
  return {};
}

}  // namespace

int RunGateway(const Config& config, UniqueFd warden, UniqueFd /*egress*/) {
  if (const Status served = Serve(config, warden.get()); !served.ok()) {
    PrintError(served.error());
    return served.error().kind == ErrorKind::kRefused ? 120 : kFailed;
  }
  return 0;
}

}  // namespace coffer::daemon
