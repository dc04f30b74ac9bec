// SPDX-License-Identifier: Apache-2.0
#include "daemon/gateway_role.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/exit_codes.h"
#include "base/json.h"
#include "base/print.h"
#include "base/sys.h"
#include "base/thread_priority.h"
#include "call/config_file.h"
#include "call/ladder.h"
#include "call/recorder.h"
#include "call/tool_shelf.h"
#include "call/warden/launcher.h"
#include "daemon/deliver.h"
#include "daemon/gateway_wall.h"
#include "daemon/operator_files.h"
#include "daemon/receivers.h"
#include "daemon/role.h"
#include "daemon/service.h"
#include "daemon/service_context.h"
#include "daemon/workers.h"
#include "gateway/jwt.h"
#include "gateway/server.h"
#include "limits/cgroup/surrounding.h"
#include "store/key.h"
#include "store/receivers.h"
#include "store/store.h"
#include "store/tenant.h"

namespace coffer::daemon {
namespace {

constexpr std::chrono::milliseconds kDrain{10'000};
constexpr size_t kWorkers = 4;
constexpr std::chrono::milliseconds kTrimMemoryEvery{1000};

using Jwt = std::shared_ptr<const gateway::JwtVerifier>;

Result<Jwt> JwtOf(const Config& config, const OperatorFiles& files) {
  if (!files.jwks) {
    return Jwt();
  }
  gateway::JwtConfig jwt;
  jwt.issuer = config.jwt_issuer;
  jwt.audience = config.jwt_audience;
  jwt.jwks = *files.jwks;
  return gateway::JwtVerifier::Make(std::move(jwt));
}

Result<call::FileConfig> ConfigOf(const Config& config, const OperatorFiles& files) {
  return files.config ? call::ReadConfigText(*files.config, config.file) : call::FileConfig{};
}

Result<gateway::ServerConfig> ServerConfigOf(const Config& config, const OperatorFiles& files,
                                             const call::FileConfig& rules) {
  gateway::ServerConfig made;
  made.tcp.push_back({config.host, config.port});
  // Others may knock only if some of them are to be let in; the kernel says who they are either way.
  made.unix_sockets.push_back({config.socket, rules.peers.empty() ? 0600U : 0666U});
  if (!config.health_host.empty()) {
    made.health.push_back({config.health_host, config.health_port});
  }
  if (files.tls_certificate && files.tls_key) {
    made.tls = gateway::TlsPair{*files.tls_certificate, *files.tls_key};
  }
  made.http.names.hosts = config.names;
  TRY_ASSIGN(made.http.jwt, JwtOf(config, files));
  return made;
}

// The changed keys that only a restart applies; empty if there is none.
std::string NeedRestart(const call::FileConfig& now, const call::FileConfig& wanted) {
  std::string keys;
  const auto add = [&](bool changed, const char* key) {
    keys += !changed ? "" : keys.empty() ? key : std::string(", ") + key;
  };
  add(now.webhooks != wanted.webhooks, "[[webhook]]");
  add(now.otlp != wanted.otlp, "[otlp]");
  add(now.peers.empty() != wanted.peers.empty(), "the first or last [[peer]]");
  return keys;
}

// All of it, or nothing: a mistake in one file leaves everything as it was. Nothing of it if only manifests changed.
Status Reload(const Config& config, int from_monitor, gateway::Server& server,
              LiveConfig& live_config) {
  TRY_ASSIGN(const std::optional<OperatorFiles> sent, ReceiveOperatorFiles(config, from_monitor));
  if (!sent) {
    return {};
  }
  const OperatorFiles& files = *sent;
  TRY_ASSIGN(call::FileConfig parsed, ConfigOf(config, files));
  if (const std::string keys = NeedRestart(*live_config.current(), parsed); !keys.empty()) {
    return Refused("policy.config",
                   fmt::format("{}: {} changed, which needs a restart; nothing was reloaded",
                               config.file, keys),
                   "restart the daemon, or undo that change and send SIGHUP again");
  }
  TRY_ASSIGN(Jwt jwt, JwtOf(config, files));
  if (files.tls_certificate && files.tls_key) {
    TRY(server.ReplaceTls({*files.tls_certificate, *files.tls_key}));
  }
  server.ReplaceJwt(std::move(jwt));
  live_config.Replace(std::move(parsed));
  return {};
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

Status ServeGateway(const Config& config, GatewaySockets sockets) {
  const int warden = sockets.warden.get();
  const int monitor = sockets.monitor.get();
  KeepHeapSmall();
  const std::unique_ptr<net::Loop> loop = net::MakeLoop();
  ServiceContext context(*loop);
  context.sessions = config.state + "/sessions";
  context.warden = warden;
  ServiceOptions options;
  options.owner = ::geteuid();
  DaemonService service(context, options);
  TRY_ASSIGN(const OperatorFiles files, ReadOperatorFiles(config));
  TRY_ASSIGN(call::FileConfig rules, ConfigOf(config, files));
  TRY_ASSIGN(const egress::AddressGuard guard, GuardOf(rules));
  TRY_ASSIGN(const std::vector<egress::Receiver> receivers,
             egress::ReceiversOf(rules.webhooks, rules.otlp, guard));
  TRY_ASSIGN(gateway::ServerConfig http, ServerConfigOf(config, files, rules));
  context.live_config.Replace(std::move(rules));
  http.http.answered = [&context](std::string_view tenant, std::string_view route,
                                  std::string_view method, int status) {
    context.meter.metrics().Answered(tenant, route, method, status);
  };
  // It listens now: the role's filter refuses socket, bind and listen.
  TRY_ASSIGN(std::unique_ptr<gateway::Server> server,
             gateway::Server::Open(*loop, service, std::move(http)));
  // The wall limits the gateway, not the calls: what is around them is around the monitor.
  const Result<std::string> around = sys::ReadFile("/proc/self/cgroup");
  TRY(EnterGatewayWall(sockets.wall));
  sockets.wall.Reset();
  TRY(EnforceWritesOnlyIn(config.state, config.socket.substr(0, config.socket.rfind('/'))));
  {
    const BornFirst
        priority;  // of the thread that answers probes, and of the one it passes connections to
    TRY(EnterRole(RoleKind::kGateway));
    server->StartAccepting();
  }

  // From here on without any privilege.
  context.reserve.Open(config.state);
  const auto limit_host = [&context, &around] {
    context.budget.SetLimits(
        call::CompleteLimits(context.live_config.current()->host,
                             limits::SurroundingMemoryOf(around.ok() ? *around : "")));
  };
  limit_host();
  TRY_ASSIGN(store::Store store, store::Store::Open(config.state));
  audit::LogOptions log_options;
  log_options.appended = [&context](const std::string& tenant, Nanos took, uint64_t size) {
    context.meter.metrics().Appended(tenant, took);
    context.meter.metrics().LogGrew(size);
  };
  std::vector<store::KnownReceiver> known;
  known.reserve(receivers.size());
  for (const egress::Receiver& receiver : receivers) {
    known.push_back(receiver.Known());
  }
  // Before the log is opened: it may have something to tell them.
  TRY(store::KeepReceivers(store, store::AllTenants{}, known));
  TRY_ASSIGN(audit::Log log, call::OpenLog(store, config.state + "/log", log_options));
  call::Recorder recorder(store, log);
  recorder.OnEnd([&context](const audit::Receipt& receipt) { context.meter.CallEnded(receipt); });
  recorder.SetBreaker({[&context](const store::TenantId& tenant) {
                         return context.live_config.current()->RulesOf(tenant).breaker;
                       },
                       [&context](const store::Pause& pause) {
                         context.meter.metrics().BreakerTripped(pause.tenant.name(), pause.tool);
                       }});
  recorder.SetReceivers(
      [&receivers](std::string_view event) { return egress::NamesOfWanting(receivers, event); });
  TRY(recorder.Settle(store.recovered()));
  DelivererOptions delivering;
  delivering.key = log.public_key();
  Deliverer deliverer(store, receivers, sockets.egress.get(), delivering);
  context.meter.WatchRecorder(
      [&recorder] { return RecorderCounts{recorder.pending(), recorder.lost()}; });
  context.meter.WatchDeliveries([&deliverer] { return deliverer.counts(); });
  if (!receivers.empty()) {
    TRY(deliverer.Start());
  }
  store::KeyRequest first;
  first.role = store::Role::kOperator;
  first.agent = "operator";
  TRY_ASSIGN(const store::Tenant local, store::EnsureTenant(store, store::TenantId::Local()));
  TRY_ASSIGN(const std::optional<store::NewKey> key, store::CreateFirstKey(store, local.id, first));
  call::ToolShelf shelf(config.tools, config.default_tools, config.operator_uid);
  TRY(shelf.Reload());
  call::LadderOptions ladder_options;
  ladder_options.sessions = context.sessions;
  ladder_options.quotas = [&context](const store::TenantId& tenant) {
    const std::shared_ptr<const call::FileConfig> now = context.live_config.current();
    store::Quotas quotas = now->QuotasOf(tenant);
    quotas.stored_bytes = now->RulesOf(tenant).storage.Records(context.reserve.disk_bytes());
    return quotas;
  };
  ladder_options.keeps_transcripts = [&context](const store::TenantId& tenant) {
    return context.live_config.current()->RulesOf(tenant).keeps_transcripts;
  };
  ladder_options.budget = &context.budget;
  ladder_options.offers_tools = true;
  ladder_options.may_begin = [&context] { return context.reserve.CheckRoom(); };
  ladder_options.evaluated = [&context](const store::TenantId& tenant, Nanos took) {
    context.meter.metrics().Evaluated(tenant.name(), took);
  };
  context.meter.Begin(store, shelf, context.live_config, [&context](const watch::Alert& alert) {
    // Beside the call that raised it, which does not wait for a record of something else.
    context.workers().SubmitAlways([&context, alert] {
      (void)context.recorder().Happened(alert.tenant.name(), "alert." + alert.measure,
                                        {{"tool", alert.tool}, {"words", alert.words}});
    });
  });
  call::Ladder ladder(recorder, shelf, ladder_options);
  call::WardenLauncher launcher(warden);
  Workers workers(kWorkers);
  context.Fill(&recorder, &shelf, &ladder, &launcher, &workers);

  // No new requests; then the calls that run get the rest of the time, also those whose client has left.
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
    service.EndProcesses();  // they would not end by themselves
    server->Drain(kDrain, finish);
  };
  const std::shared_ptr<void> on_term = loop->WatchSignal(SIGTERM, stop);
  const std::shared_ptr<void> on_int = loop->WatchSignal(SIGINT, stop);
  // The monitor says when something changed, after the warden has the new table. A SIGHUP of our own means nothing.
  const std::shared_ptr<void> on_hup = loop->WatchSignal(SIGHUP, [] {});
  const std::shared_ptr<void> on_monitor = loop->WatchReadable(monitor, [&] {
    if (const Status done = Reload(config, monitor, *server, context.live_config); !done.ok()) {
      PrintError(done.error());
      if (done.error().code == kMonitorGone) {
        loop->Stop();
      }
    }
    limit_host();
    (void)workers.Submit([&] { service.ReloadTools(); });
  });
  const std::shared_ptr<void> on_warden = loop->WatchReadable(warden, [&] { loop->Stop(); });
  // What a flood left in the heap goes back to the system.
  std::shared_ptr<void> trimming;
  std::function<void()> trim = [&] {
    const std::shared_ptr<void> keep = std::move(trimming);
    (void)context.memory.Past();  // looks
    if (context.memory.used() > context.memory.limit() / 4) {
      workers.SubmitAlways(TrimHeap);
    }
    trimming = loop->After(kTrimMemoryEvery, trim);
  };
  trim();
  // On the loop, after its first beat: a probe that follows the announcement hears that it turns.
  loop->Post([&] { Announce(config, server->ports().front(), key); });
  loop->Run();
  context.meter.End();
  server.reset();
  return {};
}

}  // namespace

int RunGateway(const Config& config, GatewaySockets sockets) {
  if (const Status served = ServeGateway(config, std::move(sockets)); !served.ok()) {
    PrintError(served.error());
    return served.error().kind == ErrorKind::kRefused ? kExitRefused : kExitFailed;
  }
  return 0;
}

}  // namespace coffer::daemon
