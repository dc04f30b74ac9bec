// SPDX-License-Identifier: Apache-2.0
#include "tests/gateway/harness.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <future>
#include <nlohmann/json.hpp>

namespace coffer::gateway {

RunningServer::RunningServer(ServerConfig config) : loop_(net::MakeLoop()) {
  if (config.tcp.empty() && config.unix_sockets.empty()) {
    config.tcp.emplace_back();
  }
  auto server = Server::Open(*loop_, service, std::move(config));
  EXPECT_TRUE(server.ok()) << (server.ok() ? "" : server.error().message);
  if (server.ok()) {
    server_ = std::move(*server);
    port_ = server_->ports().empty() ? 0 : server_->ports().front();
  }
  thread_ = std::thread([this] { loop_->Run(); });
}

RunningServer::~RunningServer() {
  OnLoop([this] { server_.reset(); });
  loop_->Stop();
  thread_.join();
}

void RunningServer::OnLoop(const std::function<void()>& task) {
  std::promise<void> done;
  loop_->Post([&] {
    task();
    done.set_value();
  });
  done.get_future().wait();
}

bool RunningServer::Eventually(const std::function<bool()>& condition) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  bool met = false;
  while (!met && std::chrono::steady_clock::now() < until) {
    OnLoop([&] { met = condition(); });
    if (!met) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  return met;
}

std::string Reply1::Field(std::string_view name) const {
  size_t at = 0;
  while ((at = head.find("\r\n", at)) != std::string::npos) {
    at += 2;
    const size_t end = head.find("\r\n", at);
    const std::string line = head.substr(at, end == std::string::npos ? end : end - at);
    if (line.size() > name.size() + 1 && line[name.size()] == ':' &&
        ::strncasecmp(line.data(), name.data(), name.size()) == 0) {
      return line.substr(line.find_first_not_of(' ', name.size() + 1));
    }
  }
  return {};
}

std::string Reply1::Code() const {
  const auto json = nlohmann::json::parse(body, nullptr, false);
  return json.is_object() && json.contains("code") ? json["code"].get<std::string>()
                                                   : std::string();
}

RawClient RawClient::Tcp(uint16_t port, uint8_t from) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + from);
  (void)::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  RawClient client(fd);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    client.fd_.Reset();
  }
  return client;
}

RawClient RawClient::Unix(const std::string& path) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  RawClient client(fd);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    client.fd_.Reset();
  }
  return client;
}

bool RawClient::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) {
      return false;
    }
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

void RawClient::FinishSending() { ::shutdown(fd_.get(), SHUT_WR); }

void RawClient::Reset() {
  const linger now{1, 0};
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &now, sizeof(now));
  fd_.Reset();
}

std::string RawClient::ReadSome() {
  if (!pending_.empty()) {
    return std::exchange(pending_, {});
  }
  pollfd wait{fd_.get(), POLLIN, 0};
  if (::poll(&wait, 1, 10'000) != 1) {
    ADD_FAILURE() << "the server said nothing for ten seconds";
    return {};
  }
  std::array<char, 65536> buffer;
  const ssize_t count = ::recv(fd_.get(), buffer.data(), buffer.size(), 0);
  return count > 0 ? std::string(buffer.data(), static_cast<size_t>(count)) : std::string();
}

std::string RawClient::ReadUntil(std::string_view text) {
  std::string all;
  while (all.find(text) == std::string::npos) {
    const std::string more = ReadSome();
    if (more.empty()) {
      break;
    }
    all += more;
  }
  return all;
}

bool RawClient::Ends() {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  pending_.clear();
  while (std::chrono::steady_clock::now() < until) {
    pollfd wait{fd_.get(), POLLIN, 0};
    std::array<char, 65536> buffer;
    if (::poll(&wait, 1, 10'000) == 1 && ::recv(fd_.get(), buffer.data(), buffer.size(), 0) <= 0) {
      return true;
    }
  }
  return false;
}

Reply1 RawClient::Receive(bool head_only) {
  Reply1 reply;
  std::string all = ReadUntil("\r\n\r\n");
  const size_t end = all.find("\r\n\r\n");
  if (end == std::string::npos || all.size() < 12) {
    reply.ended = true;
    return reply;
  }
  reply.head = all.substr(0, end);
  reply.status = std::atoi(all.substr(9, 3).c_str());
  std::string rest = all.substr(end + 4);
  const auto need = [&](size_t size) {
    while (rest.size() < size) {
      const std::string more = ReadSome();
      if (more.empty()) {
        reply.ended = true;
        return false;
      }
      rest += more;
    }
    return true;
  };
  if (head_only || reply.status == 204 || reply.status == 100) {
    pending_ = rest;
  } else if (reply.Field("Transfer-Encoding") == "chunked") {
    while (true) {
      while (rest.find("\r\n") == std::string::npos && need(rest.size() + 1)) {
      }
      const size_t size = std::strtoul(rest.c_str(), nullptr, 16);
      const size_t at = rest.find("\r\n") + 2;
      if (reply.ended || !need(at + size + 2)) {
        return reply;
      }
      reply.body += rest.substr(at, size);
      rest.erase(0, at + size + 2);
      if (size == 0) {
        break;
      }
    }
    pending_ = rest;
  } else {
    const size_t size = std::strtoul(reply.Field("Content-Length").c_str(), nullptr, 10);
    need(size);
    reply.body = rest.substr(0, size);
    pending_ = rest.size() > size ? rest.substr(size) : "";
  }
  return reply;
}

std::string Request(std::string_view method, std::string_view path, std::string_view key,
                    std::string_view more_fields, std::string_view body) {
  std::string text(method);
  text += " " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\n";
  if (!key.empty()) {
    text += "Authorization: Bearer " + std::string(key) + "\r\n";
  }
  text += more_fields;
  if (!body.empty()) {
    text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  }
  return text + "\r\n" + std::string(body);
}

std::string CallOf(std::string_view body, std::string_view more_fields) {
  return Request("POST", "/v1/calls", "agent-key",
                 "Content-Type: application/json\r\n" + std::string(more_fields), body);
}

}  // namespace coffer::gateway
