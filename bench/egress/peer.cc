// SPDX-License-Identifier: Apache-2.0
//
// Both ends of what scripts/bench_egress.py measures: an HTTPS server that answers `GET /N` with N bytes, and a client that
// reads one large answer, or many small ones on one connection. Neither does more than it must, so that what lies between them shows.
//
// Usage: bench_egress_peer serve CERTIFICATE KEY          prints its port
//        bench_egress_peer get HOST PORT BYTES            prints seconds
//        bench_egress_peer ask HOST PORT TIMES            prints microseconds of each answer, in one line
//        bench_egress_peer open HOST PORT TIMES           the same for connections, each with one answer
// The client connects to 127.0.0.1, or asks the proxy of HTTPS_PROXY for HOST; it trusts SSL_CERT_FILE.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kPiece = size_t{1} << 18;

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "bench_egress_peer: %s\n", what.c_str());
  ERR_print_errors_fp(stderr);
  std::exit(1);
}

sockaddr_in Loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

void NoDelay(int fd) {
  const int on = 1;
  (void)::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

// One request after the other; heads are small and come in one piece.
void ServeOne(SSL_CTX* context, int fd) {
  NoDelay(fd);
  SSL* const ssl = SSL_new(context);
  SSL_set_fd(ssl, fd);
  static const std::string body(kPiece, 'x');
  if (SSL_accept(ssl) == 1) {
    char head[4096];
    for (;;) {
      const int got = SSL_read(ssl, head, sizeof(head) - 1);
      if (got <= 0) {
        break;
      }
      head[got] = 0;
      const char* const path = std::strchr(head, '/');
      size_t left = path == nullptr ? 0 : std::strtoull(path + 1, nullptr, 10);
      std::string answer =
          "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: " + std::to_string(left) +
          "\r\n\r\n";
      const size_t first = std::min(left, size_t{1024});
      answer.append(body, 0, first);
      left -= first;
      bool sent = SSL_write(ssl, answer.data(), static_cast<int>(answer.size())) > 0;
      while (sent && left > 0) {
        const size_t now = std::min(left, kPiece);
        sent = SSL_write(ssl, body.data(), static_cast<int>(now)) > 0;
        left -= now;
      }
      if (!sent) {
        break;
      }
    }
  }
  SSL_free(ssl);
  ::close(fd);
}

int Serve(const char* certificate, const char* key) {
  SSL_CTX* const context = SSL_CTX_new(TLS_server_method());
  if (SSL_CTX_use_certificate_chain_file(context, certificate) != 1 ||
      SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1) {
    Fail("no certificate");
  }
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof(address);
  if (::bind(listener, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(listener, 128) != 0 ||
      ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    Fail("no listener");
  }
  std::printf("%d\n", ntohs(address.sin_port));
  std::fflush(stdout);
  for (;;) {
    const int fd = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd >= 0) {
      std::thread(ServeOne, context, fd).detach();
    }
  }
}

class Connection {
 public:
  Connection(SSL_CTX* context, const std::string& host, uint16_t port)
      : authority_(host + ":" + std::to_string(port)) {
    uint16_t to = port;
    const char* const proxy = std::getenv("HTTPS_PROXY");
    if (proxy != nullptr) {
      to = static_cast<uint16_t>(std::atoi(std::strrchr(proxy, ':') + 1));
    }
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = Loopback(to);
    if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
      Fail("no connection");
    }
    NoDelay(fd_);
    if (proxy != nullptr) {
      OpenTunnel();
    }
    ssl_ = SSL_new(context);
    SSL_set_fd(ssl_, fd_);
    SSL_set_tlsext_host_name(ssl_, host.c_str());
    SSL_set1_host(ssl_, host.c_str());
    if (SSL_connect(ssl_) != 1) {
      Fail("no TLS");
    }
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() {
    SSL_free(ssl_);
    ::close(fd_);
  }

  void Get(size_t bytes) {
    const std::string request =
        "GET /" + std::to_string(bytes) + " HTTP/1.1\r\nHost: " + authority_ + "\r\n\r\n";
    if (SSL_write(ssl_, request.data(), static_cast<int>(request.size())) <= 0) {
      Fail("not sent");
    }
    size_t got = Read();
    const size_t end = std::string_view(buffer_.data(), got).find("\r\n\r\n");
    if (end == std::string_view::npos ||
        !std::string_view(buffer_.data(), got).starts_with("HTTP/1.1 200")) {
      Fail("answered " + std::string(buffer_.data(), std::min(got, size_t{200})));
    }
    for (got -= end + 4; got < bytes;) {
      got += Read();
    }
  }

 private:
  void OpenTunnel() {
    const std::string request =
        "CONNECT " + authority_ + " HTTP/1.1\r\nHost: " + authority_ + "\r\n\r\n";
    char answer[4096];
    ssize_t got = 0;
    if (::send(fd_, request.data(), request.size(), MSG_NOSIGNAL) < 0 ||
        (got = ::recv(fd_, answer, sizeof(answer), 0)) < 12 ||
        !std::string_view(answer, static_cast<size_t>(got)).substr(8).starts_with(" 200")) {
      Fail("no tunnel: " + std::string(answer, static_cast<size_t>(std::max<ssize_t>(got, 0))));
    }
  }
  size_t Read() {
    const int got = SSL_read(ssl_, buffer_.data(), static_cast<int>(buffer_.size()));
    if (got <= 0) {
      Fail("the answer ended early");
    }
    return static_cast<size_t>(got);
  }

  const std::string authority_;
  int fd_ = -1;
  SSL* ssl_ = nullptr;
  std::vector<char> buffer_ = std::vector<char>(kPiece);
};

double Since(Clock::time_point began) {
  return std::chrono::duration<double>(Clock::now() - began).count();
}

int Measure(std::string_view what, const std::string& host, uint16_t port, size_t number) {
  SSL_CTX* const context = SSL_CTX_new(TLS_client_method());
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  if (SSL_CTX_set_default_verify_paths(context) != 1) {
    Fail("no certificates");
  }
  if (what == "open") {
    for (size_t i = 0; i < number; ++i) {
      const auto began = Clock::now();
      Connection(context, host, port).Get(16);
      std::printf("%.1f ", Since(began) * 1e6);
    }
    std::printf("\n");
    return 0;
  }
  Connection connection(context, host, port);
  connection.Get(16);  // warm
  if (what == "get") {
    const auto began = Clock::now();
    connection.Get(number);
    std::printf("%.6f\n", Since(began));
    return 0;
  }
  for (size_t i = 0; i < number; ++i) {
    const auto began = Clock::now();
    connection.Get(16);
    std::printf("%.1f ", Since(began) * 1e6);
  }
  std::printf("\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  ::signal(SIGPIPE, SIG_IGN);
  const std::string_view what = argc > 1 ? argv[1] : "";
  if (what == "serve" && argc == 4) {
    return Serve(argv[2], argv[3]);
  }
  if ((what == "get" || what == "ask" || what == "open") && argc == 5) {
    return Measure(what, argv[2], static_cast<uint16_t>(std::atoi(argv[3])),
                   std::strtoull(argv[4], nullptr, 10));
  }
  Fail("serve CERTIFICATE KEY, or get|ask|open HOST PORT NUMBER");
}
