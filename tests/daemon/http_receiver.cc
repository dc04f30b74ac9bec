// SPDX-License-Identifier: Apache-2.0
#include "tests/daemon/http_receiver.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace coffer::test {
namespace {

// One connection's bytes, with or without TLS.
struct Wire {
  int fd = -1;
  SSL* ssl = nullptr;
  ~Wire() {
    if (ssl != nullptr) {
      ::SSL_free(ssl);
    }
  }
  long Read(char* into, size_t size) const {
    return ssl != nullptr ? ::SSL_read(ssl, into, static_cast<int>(size))
                          : ::recv(fd, into, size, 0);
  }
  bool Write(const std::string& bytes) const {
    size_t at = 0;
    while (at < bytes.size()) {
      const long sent =
          ssl != nullptr ? ::SSL_write(ssl, bytes.data() + at, static_cast<int>(bytes.size() - at))
                         : ::send(fd, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
      if (sent <= 0) {
        return false;
      }
      at += static_cast<size_t>(sent);
    }
    return true;
  }
};

std::string Lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// False: it ended before a whole request.
bool ReadPost(const Wire& wire, Posted& post) {
  std::string got;
  size_t head = std::string::npos;
  size_t length = 0;
  while (head == std::string::npos || got.size() < head + 4 + length) {
    char buffer[65536];
    const long count = wire.Read(buffer, sizeof(buffer));
    if (count <= 0) {
      return false;
    }
    got.append(buffer, static_cast<size_t>(count));
    if (head != std::string::npos || (head = got.find("\r\n\r\n")) == std::string::npos) {
      continue;
    }
    const size_t end_of_first = got.find("\r\n");
    const std::string first = got.substr(0, end_of_first);
    post.path = first.substr(first.find(' ') + 1);
    post.path.resize(post.path.rfind(' '));
    size_t at = end_of_first + 2;
    while (at < head + 2) {
      const size_t end = got.find("\r\n", at);
      const size_t colon = got.find(": ", at);
      post.fields[Lower(got.substr(at, colon - at))] = got.substr(colon + 2, end - colon - 2);
      at = end + 2;
    }
    length = static_cast<size_t>(std::atol(post.fields["content-length"].c_str()));
  }
  post.body = got.substr(head + 4);
  return true;
}

}  // namespace

std::string HmacHex(const std::string& key, const std::string& text) {
  unsigned char mac[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  ::HMAC(::EVP_sha256(), key.data(), static_cast<int>(key.size()),
         reinterpret_cast<const unsigned char*>(text.data()), text.size(), mac, &size);
  std::string hex;
  for (unsigned i = 0; i < size; ++i) {
    char digits[3];
    std::snprintf(digits, sizeof(digits), "%02x", mac[i]);
    hex += digits;
  }
  return hex;
}

void MakeCertificate(const std::string& names, const std::string& certificate,
                     const std::string& key_path, Validity validity) {
  EVP_PKEY* key = ::EVP_EC_gen("P-256");
  X509* cert = ::X509_new();
  ::X509_set_version(cert, 2);
  ::ASN1_INTEGER_set(::X509_get_serialNumber(cert), 7);
  const long begins = validity == Validity::kOver     ? -7200
                      : validity == Validity::kToCome ? 3600
                                                      : -60;
  ::X509_gmtime_adj(::X509_getm_notBefore(cert), begins);
  ::X509_gmtime_adj(::X509_getm_notAfter(cert), begins + 3600);
  ::X509_set_pubkey(cert, key);
  X509_NAME* subject = ::X509_get_subject_name(cert);
  ::X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>("receiver"), -1, -1, 0);
  ::X509_set_issuer_name(cert, subject);
  X509_EXTENSION* extension =
      ::X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, names.c_str());
  ASSERT_NE(extension, nullptr);
  ::X509_add_ext(cert, extension, -1);
  ::X509_EXTENSION_free(extension);
  ASSERT_GT(::X509_sign(cert, key, ::EVP_sha256()), 0);
  std::FILE* file = std::fopen(certificate.c_str(), "w");
  ASSERT_NE(file, nullptr);
  ::PEM_write_X509(file, cert);
  std::fclose(file);
  file = std::fopen(key_path.c_str(), "w");
  ASSERT_NE(file, nullptr);
  ::PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr);
  std::fclose(file);
  ::X509_free(cert);
  ::EVP_PKEY_free(key);
}

HttpReceiver::HttpReceiver(std::vector<std::string> tls_files) {
  Answer(200);
  if (!tls_files.empty()) {
    tls_ = ::SSL_CTX_new(::TLS_server_method());
    EXPECT_EQ(::SSL_CTX_use_certificate_file(tls_, tls_files[0].c_str(), SSL_FILETYPE_PEM), 1);
    EXPECT_EQ(::SSL_CTX_use_PrivateKey_file(tls_, tls_files[1].c_str(), SSL_FILETYPE_PEM), 1);
  }
  ComeBack();
  thread_ = std::thread([this] { Accept(); });
}

HttpReceiver::~HttpReceiver() {
  stopping_ = true;
  thread_.join();
  Leave();
  {
    const std::lock_guard lock(mutex_);
    for (const int fd : open_) {
      ::shutdown(fd, SHUT_RDWR);
    }
  }
  for (std::thread& one : served_) {
    one.join();
  }
  if (tls_ != nullptr) {
    ::SSL_CTX_free(tls_);
  }
}

std::string HttpReceiver::Url(const std::string& path) const {
  return std::string(tls_ != nullptr ? "https" : "http") + "://127.0.0.1:" + std::to_string(port_) +
         path;
}

void HttpReceiver::Answer(Answerer answerer) {
  const std::lock_guard lock(mutex_);
  answerer_ = std::move(answerer);
}

void HttpReceiver::Answer(int status, const std::string& fields) {
  Answer([status, fields](const Posted&) {
    return "HTTP/1.1 " + std::to_string(status) + " Said\r\nContent-Length: 0\r\n" + fields +
           "\r\n";
  });
}

void HttpReceiver::Leave() {
  const int fd = listener_.exchange(-1);
  if (fd >= 0) {
    ::close(fd);
  }
}

void HttpReceiver::ComeBack() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int yes = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port_);
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(::listen(fd, 128), 0);
  socklen_t size = sizeof(address);
  ASSERT_EQ(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  port_ = ntohs(address.sin_port);
  listener_ = fd;
}

void HttpReceiver::Accept() {
  while (!stopping_) {
    pollfd ready{listener_, POLLIN, 0};
    (void)::poll(&ready, 1, 20);
    const int fd = ready.fd < 0 ? -1 : ::accept4(ready.fd, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) {
      continue;
    }
    ++connections_;
    const std::lock_guard lock(mutex_);
    open_.push_back(fd);
    served_.emplace_back([this, fd] { Serve(fd); });
  }
}

void HttpReceiver::Serve(int fd) {
  {
    Wire wire{fd, nullptr};
    bool good = true;
    if (tls_ != nullptr) {
      wire.ssl = ::SSL_new(tls_);
      ::SSL_set_fd(wire.ssl, fd);
      good = ::SSL_accept(wire.ssl) == 1;
    }
    Posted post;
    if (good && ReadPost(wire, post)) {
      Answerer answerer;
      {
        const std::lock_guard lock(mutex_);
        posts_.push_back(post);
        answerer = answerer_;
      }
      const std::string answer = answerer(post);
      if (answer.empty()) {
        char byte = 0;
        (void)wire.Read(&byte, 1);  // until the other side, or the test, has enough
      } else if (wire.Write(answer)) {
        const std::string nothing(65536, 'x');
        for (uint64_t left = extra_; left > 0; left -= std::min<uint64_t>(left, nothing.size())) {
          if (!wire.Write(nothing)) {
            break;
          }
          extra_sent_ += nothing.size();
        }
      }
    }
    ::ERR_clear_error();
  }
  const std::lock_guard lock(mutex_);
  std::erase(open_, fd);
  ::close(fd);
}

std::vector<Posted> HttpReceiver::posts() const {
  const std::lock_guard lock(mutex_);
  return posts_;
}

bool HttpReceiver::WaitForPosts(size_t count, Seconds limit) const {
  return WaitUntil([&] { return posts().size() >= count; }, limit);
}

}  // namespace coffer::test
