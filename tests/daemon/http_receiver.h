// SPDX-License-Identifier: Apache-2.0
//
// Somebody whom the daemon tells things: an HTTP receiver of the test's own on loopback, with or without TLS. It keeps
// what it got and answers as it is told to. Nothing here judges.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/run.h"

struct ssl_ctx_st;

namespace coffer::test {

struct Posted {
  std::string path;
  std::map<std::string, std::string> fields;  // names in lower case
  std::string body;
  Json json() const { return Json::parse(body, nullptr, false); }
};

// A self-signed certificate for these names ("IP:127.0.0.1", "DNS:a.example"), and its key, as files.
enum class Validity { kNow, kOver, kToCome };
void MakeCertificate(const std::string& names, const std::string& certificate,
                     const std::string& key, Validity validity = Validity::kNow);

// HMAC-SHA256 in hex, as in the signature of an event.
std::string HmacHex(const std::string& key, const std::string& text);

class HttpReceiver {
 public:
  // What is sent back, as bytes; empty: nothing at all, and the connection is held.
  using Answerer = std::function<std::string(const Posted&)>;

  // Listens on a free port. `tls_files`: certificate and key.
  explicit HttpReceiver(std::vector<std::string> tls_files = {});
  ~HttpReceiver();
  HttpReceiver(const HttpReceiver&) = delete;
  HttpReceiver& operator=(const HttpReceiver&) = delete;

  std::string Url(const std::string& path = "/") const;
  // For what comes from now on.
  void Answer(Answerer answerer);
  void Answer(int status, const std::string& fields = {});
  // After the answer, this many bytes of nothing, as long as somebody reads.
  void AddBody(uint64_t bytes) { extra_ = bytes; }
  uint64_t body_sent() const { return extra_sent_; }

  // Nobody is there, and there again, on the same port.
  void Leave();
  void ComeBack();

  std::vector<Posted> posts() const;
  size_t connections() const { return connections_; }
  bool WaitForPosts(size_t count, Seconds limit = Seconds(20)) const;

 private:
  void Accept();
  void Serve(int fd);

  uint16_t port_ = 0;
  ssl_ctx_st* tls_ = nullptr;
  mutable std::mutex mutex_;  // of what follows
  std::vector<Posted> posts_;
  Answerer answerer_;
  std::list<std::thread> served_;
  std::vector<int> open_;

  std::atomic<int> listener_{-1};
  std::atomic<bool> stopping_{false};
  std::atomic<size_t> connections_{0};
  std::atomic<uint64_t> extra_{0}, extra_sent_{0};
  std::thread thread_;
};

}  // namespace coffer::test
