// SPDX-License-Identifier: Apache-2.0
#include "gateway/server.h"

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "gateway/http/connection.h"
#include "gateway/http/listen.h"
#include "net/asio.h"
#include "net/tls.h"

namespace coffer::gateway {
namespace {

using Acceptor =
    net::asio::basic_socket_acceptor<net::asio::generic::stream_protocol, net::IoExecutor>;
constexpr std::chrono::milliseconds kSweepEvery{200};
constexpr std::chrono::milliseconds kAcceptPause{
    100};  // when descriptors run out, and the next accept would fail too

class PlainStream : public net::Stream {
 public:
  explicit PlainStream(net::Socket socket) : socket_(std::move(socket)) {}
  net::Task<size_t> ReadSome(char* data, size_t size) override {
    const auto [error, count] =
        co_await socket_.async_read_some(net::asio::buffer(data, size), net::kAwaitTuple);
    co_return error ? 0 : count;
  }
  net::Task<bool> Write(std::string_view first, std::string_view second) override {
    const std::array buffers = {net::asio::const_buffer(first.data(), first.size()),
                                net::asio::const_buffer(second.data(), second.size())};
    const auto [error, count] = co_await net::asio::async_write(socket_, buffers, net::kAwaitTuple);
    co_return !error;
  }
  net::Task<void> FinishWriting() override {
    net::error_code ignored;
    socket_.shutdown(net::Socket::shutdown_send, ignored);
    co_return;
  }
  void CancelRead() override {
    net::error_code ignored;
    socket_.cancel(ignored);
  }
  void Close() override {
    net::error_code ignored;
    socket_.close(ignored);
  }

 private:
  net::Socket socket_;
};

// Lives as long as a coroutine needs it; the Server only holds the handle.
class Core : public std::enable_shared_from_this<Core> {
 public:
  Core(net::Loop& loop, Service& service, HttpConfig config)
      : loop_(loop), shared_(std::make_shared<ServerShared>(loop, service, std::move(config))) {}

  Status Open(const ServerConfig& config) {
    if (config.tls.has_value()) {
      TRY_ASSIGN(shared_->tls, net::TlsContext::Load(config.tls->certificate, config.tls->key));
    }
    for (const TcpListen& listen : config.tcp) {
      TRY_ASSIGN(UniqueFd fd, ListenTcp(listen.address, listen.port));
      TRY_ASSIGN(const uint16_t port, PortOf(fd.get()));
      ports_.push_back(port);
      const int family = listen.address.find(':') == std::string::npos ? AF_INET : AF_INET6;
      TRY(Add(std::move(fd), family, shared_->tls != nullptr));
    }
    for (const UnixListen& listen : config.unix_sockets) {
      TRY_ASSIGN(UniqueFd fd, ListenUnix(listen.path, listen.mode));
      socket_files_.push_back(listen.path);
      TRY(Add(std::move(fd), AF_UNIX, false));
    }
    return {};
  }

  void Start() {
    for (const auto& listener : listeners_) {
      net::asio::co_spawn(net::ContextOf(loop_).get_executor(),
                          AcceptAll(shared_from_this(), listener), net::asio::detached);
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
  ServerStats stats() const {
    ServerStats stats = shared_->stats;
    stats.connections = connections_.size();
    return stats;
  }

  void StopListening() {
    stopped_ = true;
    for (const auto& listener : listeners_) {
      net::error_code ignored;
      listener->acceptor.close(ignored);
      listener->pause.cancel();
    }
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
  struct Listener {
    explicit Listener(net::asio::io_context& context) : acceptor(context), pause(context) {}
    Acceptor acceptor;
    net::asio::steady_timer pause;
    bool tls = false;
  };

  Status Add(UniqueFd fd, int family, bool tls) {
    auto listener = std::make_shared<Listener>(net::ContextOf(loop_));
    listener->tls = tls;
    net::error_code error;
    listener->acceptor.assign(net::asio::generic::stream_protocol(family, 0), fd.get(), error);
    if (error) {
      return HostFault("gateway.listen.assign",
                       "cannot watch a listening socket: " + error.message());
    }
    (void)fd.Release();
    listeners_.push_back(std::move(listener));
    return {};
  }

  static net::Task<void> AcceptAll(std::shared_ptr<Core> self, std::shared_ptr<Listener> listener) {
    while (!self->stopped_) {
      auto [error, socket] = co_await listener->acceptor.async_accept(net::kAwaitTuple);
      if (self->stopped_) {
        co_return;
      }
      if (error) {
        listener->pause.expires_after(kAcceptPause);
        co_await listener->pause.async_wait(net::kAwaitTuple);
        continue;
      }
      self->Take(std::move(socket), listener->tls);
    }
  }

  void Take(net::Socket socket, bool tls) {
    ++shared_->stats.accepted;
    Result<Channel> channel = DescribeChannel(socket.native_handle());
    if (!channel.ok()) {
      return;  // gone already
    }
    channel->tls = tls;
    const HttpLimits& limits = shared_->api.config.limits;
    std::string peer = PeerKey(*channel);
    const bool full = connections_.size() >= limits.connections;
    if (full || peers_[peer] >= limits.connections_per_peer) {
      TurnAway(&socket, tls, full);
      ForgetIfNone(peer);
      return;
    }
    ++peers_[peer];
    if (!channel->unix_socket) {
      TuneTcp(socket.native_handle());
    }
    auto stream = tls ? shared_->tls->Wrap(std::move(socket))
                      : std::make_unique<PlainStream>(std::move(socket));
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
      if (connection->Overdue(now)) {
        connection->Expire();  // what follows is posted: nothing leaves the set here
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
  std::vector<std::shared_ptr<Listener>> listeners_;
  std::vector<uint16_t> ports_;
  std::vector<std::string> socket_files_;
  std::unordered_set<std::shared_ptr<Connection>> connections_;
  std::unordered_map<std::string, size_t> peers_;
  std::shared_ptr<void> sweep_timer_;
  std::shared_ptr<void> drain_timer_;
  std::function<void()> drained_;
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
  ServerStats stats() const override { return core_->stats(); }
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
  core->Start();
  return std::unique_ptr<Server>(std::make_unique<AsioServer>(std::move(core)));
}

}  // namespace coffer::gateway
