// SPDX-License-Identifier: Apache-2.0
//
// A real server on a free port with a FakeService behind it, and a client that sends bytes exactly as it is told.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "gateway/server.h"
#include "net/loop.h"
#include "tests/gateway/fake_service.h"

namespace coffer::gateway {

class RunningServer {
 public:
  // Listens on 127.0.0.1:0 unless `config` says otherwise.
  explicit RunningServer(ServerConfig config = {});
  ~RunningServer();

  uint16_t port() const { return port_; }
  // Runs `task` on the loop's thread and waits for it.
  void OnLoop(const std::function<void()>& task);
  // Whether `condition` became true, asked on the loop's thread, within ten seconds.
  bool Eventually(const std::function<bool()>& condition);

  // On the loop's thread: what a daemon does that does not wait.
  void CloseServer() { server_.reset(); }

  net::Loop& loop() { return *loop_; }
  Server& server() { return *server_; }

  FakeService service;

 private:
  std::unique_ptr<net::Loop> loop_;
  std::unique_ptr<Server> server_;
  uint16_t port_ = 0;
  std::thread thread_;
};

struct Reply1 {
  int status = 0;  // 0: the connection ended first
  std::string head;
  std::string body;    // chunks put together
  bool ended = false;  // the server closed before all of it had come

  std::string Field(std::string_view name) const;
  // "code" of a problem's body; "" if it is none.
  std::string Code() const;
};

class RawClient {
 public:
  // From the loopback address with this last number.
  static RawClient Tcp(uint16_t port, uint8_t from = 1);
  static RawClient Unix(const std::string& path);

  bool connected() const { return fd_.valid(); }
  int fd() const { return fd_.get(); }
  // Whether all of it went out.
  bool Send(std::string_view bytes);
  void FinishSending();
  // One response; `head_only` for HEAD.
  Reply1 Receive(bool head_only = false);
  // The next bytes, "" at the end; waits at most ten seconds.
  std::string ReadSome();
  // Reads until `text` was seen; all that was read, or what there was when the connection ended.
  std::string ReadUntil(std::string_view text);
  // Whether the server closes the connection, within ten seconds; what it sends before is thrown away.
  bool Ends();
  void Reset();  // closes with RST

 private:
  explicit RawClient(int fd) : fd_(fd) {}
  UniqueFd fd_;
  std::string pending_;
};

// "GET /x HTTP/1.1" with Host and a key ("" for none), and more lines.
std::string Request(std::string_view method, std::string_view path, std::string_view key = {},
                    std::string_view more_fields = {}, std::string_view body = {});
// POST /v1/calls with a JSON body.
std::string CallOf(std::string_view body, std::string_view more_fields = {});

}  // namespace coffer::gateway
