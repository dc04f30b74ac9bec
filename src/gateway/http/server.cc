// SPDX-License-Identifier: Apache-2.0
#include "gateway/server.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "gateway/http/accept_thread.h"
#include "gateway/http/connection.h"
#include "gateway/http/connection_door.h"
#include "gateway/http/listen.h"
#include "net/asio.h"
#include "net/tls.h"

namespace coffer::gateway {
namespace {

constexpr std::chrono::milliseconds kSweepEvery{200};
constexpr std::chrono::milliseconds kBeatEvery{100};

// Lives as long as a coroutine needs it; the Server only holds the handle.
class Core : public std::enable_shared_from_this<Core> {
 public:
  Core(net::Loop& loop, Service& service, HttpConfig config)
      : loop_(loop), shared_(std::make_shared<ServerShared>(loop, service, std::move(config))) {}

  Status Open(const ServerConfig& config) {
    const HttpConfig& http = shared_->api.config;
    door_ = std::make_unique<ConnectionDoor>(
        http.limits, *shared_->api.known,
        [weak = weak_from_this(), &loop = loop_](UniqueFd fd, bool tls) {
          auto handed = std::make_shared<UniqueFd>(std::move(fd));
          loop.Post([weak, handed, tls] {
            if (auto self = weak.lock()) {
              self->Adopt(std::move(*handed), tls);
            }
          });
        });
    acceptor_ = std::make_unique<AcceptThread>(http.limits, http.names, *door_);
    if (config.tls.has_value()) {
      TRY_ASSIGN(shared_->tls, net::TlsContext::Load(config.tls->certificate, config.tls->key));
    }
    for (const TcpListen& listen : config.tcp) {
      TRY_ASSIGN(UniqueFd fd, ListenTcp(listen.address, listen.port));
      TRY_ASSIGN(const uint16_t port, PortOf(fd.get()));
      ports_.push_back(port);
      TRY(Add(std::move(fd), shared_->tls != nullptr, false));
    }
    for (const UnixListen& listen : config.unix_sockets) {
      TRY_ASSIGN(UniqueFd fd, ListenUnix(listen.path, listen.mode));
      socket_files_.push_back(listen.path);
      TRY(Add(std::move(fd), false, false));
    }
    for (const TcpListen& listen : config.health) {
      TRY_ASSIGN(UniqueFd fd, ListenTcp(listen.address, listen.port));
      TRY_ASSIGN(const uint16_t port, PortOf(fd.get()));
      health_ports_.push_back(port);
      TRY(Add(std::move(fd), false, true));
    }
    return {};
  }

  void StartWithLoop() {
    loop_.Post([weak = weak_from_this()] {
      if (auto self = weak.lock(); self != nullptr && !self->stopped_) {
        self->Beat();  // first: nothing is `starting` any more
        self->StartAccepting();
      }
    });
  }

  void StartAccepting() {
    if (!accepting_) {
      accepting_ = true;
      acceptor_->Start();
      door_->Start();
    }
  }

  Status ReplaceTls(const TlsPair& pair) {
    if (shared_->tls == nullptr) {
      return Internal("gateway.tls.none", "this server has no TLS");
    }
    TRY_ASSIGN(shared_->tls, net::TlsContext::Load(pair.certificate, pair.key));
    return {};
  }
  void ReplaceJwt(std::shared_ptr<const JwtVerifier> jwt) {
    shared_->api.config.jwt = std::move(jwt);
  }

  const std::vector<uint16_t>& ports() const { return ports_; }
  const std::vector<uint16_t>& health_ports() const { return health_ports_; }
  ServerStats stats() const {
    ServerStats stats = shared_->stats;
    const AcceptThread::Counts counts = acceptor_->counts();
    stats.connections = connections_.size();
    stats.accepted = counts.accepted;
    stats.turned_away += counts.refused + door_->refused();
    stats.requests += counts.healthy + counts.unhealthy;
    return stats;
  }

  void StopListening() {
    stopped_ = true;
    acceptor_->Stop();
    door_->Stop();
    beat_timer_ = nullptr;
    for (const std::string& path : std::exchange(socket_files_, {})) {
      RemoveSocketFile(path);
    }
  }

  void Drain(std::chrono::milliseconds deadline, std::function<void()> drained) {
    shared_->draining = true;
    StopListening();
    drained_ = std::move(drained);
    for (const auto& connection : std::vector(connections_.begin(), connections_.end())) {
      connection->Drain();
    }
    drain_timer_ = loop_.After(deadline, [weak = weak_from_this()] {
      if (auto self = weak.lock()) {
        self->CloseAll();
      }
    });
    CheckDrained();
  }

  void Shutdown() {
    StopListening();
    drained_ = nullptr;
    sweep_timer_ = drain_timer_ = nullptr;
    CloseAll();
  }

 private:
  Status Add(UniqueFd fd, bool tls, bool health_only) {
    return acceptor_->Add({std::move(fd), tls, health_only});
  }

  // On the loop: a connection that the accepting thread handed over.
  void Adopt(UniqueFd fd, bool tls) {
    door_->Taken();
    if (stopped_ || (!tls && IsAbandonedReading(fd.get()))) {
      return;
    }
    const Result<int> family = FamilyOf(fd.get());
    net::Socket socket(net::ContextOf(loop_));
    net::error_code error;
    if (family.ok()) {
      socket.assign(net::asio::generic::stream_protocol(*family, 0), fd.get(), error);
    }
    if (!family.ok() || error) {
      return;
    }
    (void)fd.Release();
    Take(std::move(socket), tls);
  }

  // Tells the accepting thread that the loop turns, and counts what that thread answered.
  void Beat() {
    acceptor_->Beat();
    const AcceptThread::Counts now = acceptor_->counts();
    if (const auto& answered = shared_->api.config.answered; answered != nullptr) {
      for (; told_.healthy < now.healthy; ++told_.healthy) {
        answered({}, "/healthz", "GET", 200);
      }
      for (; told_.unhealthy < now.unhealthy; ++told_.unhealthy) {
        answered({}, "/healthz", "GET", 503);
      }
    }
    beat_timer_ = loop_.After(kBeatEvery, [weak = weak_from_this()] {
      if (auto self = weak.lock()) {
        const std::shared_ptr<void> keep = std::move(self->beat_timer_);  // we run inside it
        self->Beat();
      }
    });
  }

  void Take(net::Socket socket, bool tls) {
    Result<Channel> channel = DescribeChannel(socket.native_handle());
    if (!channel.ok()) {
      return;  // gone already
    }
    channel->tls = tls;
    const HttpLimits& limits = shared_->api.config.limits;
    std::string peer = PeerKey(*channel);
    const bool full = connections_.size() >= limits.connections;
    const bool too_many = full || peers_[peer] >= limits.connections_per_peer;
    if (too_many && !MakeRoom(full ? nullptr : &peer)) {
      TurnAway(&socket, tls, full);
      ForgetIfNone(peer);
      return;
    }
    ++peers_[peer];
    if (!channel->unix_socket) {
      TuneTcp(socket.native_handle());
    }
    auto stream =
        tls ? shared_->tls->Wrap(std::move(socket)) : net::MakePlainStream(std::move(socket));
    auto connection = std::make_shared<Connection>(shared_, std::move(stream), std::move(*channel));
    connections_.insert(connection);
    net::asio::co_spawn(net::ContextOf(loop_).get_executor(), Connection::Serve(connection),
                        [weak = weak_from_this(), connection, peer](const std::exception_ptr&) {
                          connection->Close();
                          if (auto self = weak.lock()) {
                            self->Remove(connection, peer);
                          }
                        });
    SweepLater();
  }

  // Cuts the connection that has waited longest for a request, of this peer or of all. False if there is none.
  bool MakeRoom(const std::string* peer) {
    const auto now = Connection::Clock::now();
    std::shared_ptr<Connection> oldest;
    Connection::Clock::time_point since = now;
    for (const auto& connection : connections_) {
      const auto idle = connection->idle_since(now);
      if (idle && *idle < since && (peer == nullptr || PeerKey(connection->channel()) == *peer)) {
        oldest = connection;
        since = *idle;
      }
    }
    if (oldest != nullptr) {
      oldest->Close();
    }
    return oldest != nullptr;
  }

  void TurnAway(net::Socket* socket, bool tls, bool full) {
    ++shared_->stats.turned_away;
    if (tls) {
      return;  // a handshake just to say no is what an attacker would like
    }
    Problem problem =
        full ? FatalProblem(503, "http.connections", "too many connections")
             : FatalProblem(429, "http.connections_per_peer", "too many connections from you");
    problem.retry_after = 1;
    const Response response = ProblemResponse(problem);
    SendAtOnce(socket->native_handle(),
               FormatResponseHead(response, false, shared_->Date()) + response.body);
  }

  void Remove(const std::shared_ptr<Connection>& connection, const std::string& peer) {
    if (connections_.erase(connection) == 1) {
      --peers_[peer];
      ForgetIfNone(peer);
    }
    CheckDrained();
  }

  void ForgetIfNone(const std::string& peer) {
    if (auto found = peers_.find(peer); found != peers_.end() && found->second == 0) {
      peers_.erase(found);
    }
  }

  void SweepLater() {
    if (sweep_timer_ != nullptr || connections_.empty()) {
      return;
    }
    sweep_timer_ = loop_.After(kSweepEvery, [weak = weak_from_this()] {
      if (auto self = weak.lock()) {
        self->sweep_timer_ = nullptr;
        self->Sweep();
        self->SweepLater();
      }
    });
  }

  void Sweep() {
    const auto now = Connection::Clock::now();
    for (const auto& connection : connections_) {
      // What follows from either is posted: nothing leaves the set here.
      if (connection->Overdue(now)) {
        connection->Expire();
      } else {
        connection->CheckClient();
      }
    }
  }

  void CloseAll() {
    for (const auto& connection : connections_) {
      connection->Close();
    }
  }

  void CheckDrained() {
    if (drained_ != nullptr && connections_.empty()) {
      drain_timer_ = nullptr;
      loop_.Post(std::exchange(drained_, nullptr));
    }
  }

  net::Loop& loop_;
  std::shared_ptr<ServerShared> shared_;
  std::unique_ptr<ConnectionDoor> door_;
  std::unique_ptr<AcceptThread> acceptor_;  // adds to the door's queue
  AcceptThread::Counts told_;               // of its answers, to config.answered
  std::shared_ptr<void> beat_timer_;
  std::vector<uint16_t> ports_, health_ports_;
  std::vector<std::string> socket_files_;
  std::unordered_set<std::shared_ptr<Connection>> connections_;
  std::unordered_map<std::string, size_t> peers_;
  std::shared_ptr<void> sweep_timer_;
  std::shared_ptr<void> drain_timer_;
  std::function<void()> drained_;
  bool accepting_ = false;
  bool stopped_ = false;
};

class AsioServer : public Server {
 public:
  explicit AsioServer(std::shared_ptr<Core> core) : core_(std::move(core)) {}
  ~AsioServer() override {
    try {
      core_->Shutdown();
      // NOLINTNEXTLINE(bugprone-empty-catch): the sockets close with what holds them
    } catch (const std::exception&) {
    }
  }
  std::vector<uint16_t> ports() const override { return core_->ports(); }
  std::vector<uint16_t> health_ports() const override { return core_->health_ports(); }
  ServerStats stats() const override { return core_->stats(); }
  void StartAccepting() override { core_->StartAccepting(); }
  Status ReplaceTls(const TlsPair& pair) override { return core_->ReplaceTls(pair); }
  void ReplaceJwt(std::shared_ptr<const JwtVerifier> jwt) override {
    core_->ReplaceJwt(std::move(jwt));
  }
  void Drain(std::chrono::milliseconds deadline, std::function<void()> drained) override {
    core_->Drain(deadline, std::move(drained));
  }

 private:
  std::shared_ptr<Core> core_;
};

}  // namespace

Result<std::unique_ptr<Server>> Server::Open(net::Loop& loop, Service& service,
                                             ServerConfig config) {
  auto core = std::make_shared<Core>(loop, service, std::move(config.http));
  TRY(core->Open(config));
  core->StartWithLoop();
  return std::unique_ptr<Server>(std::make_unique<AsioServer>(std::move(core)));
}

}  // namespace coffer::gateway
