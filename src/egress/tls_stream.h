// SPDX-License-Identifier: Apache-2.0
//
// TLS over another Stream, as client or as server, for a connection whose first bytes may have been read already.
//
// The library never touches a socket: records go through memory, so the same code serves both ends
// of an intercepted connection. One coroutine may read while another writes. Reading can have to
// write too (an answer to a key update), so one of them sends at a time, and what the other has for
// the peer goes with it.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>
#include <string_view>

#include "net/asio.h"

namespace coffer::egress {

struct FreeSsl {
  void operator()(SSL* ssl) const { ::SSL_free(ssl); }
};
using UniqueSsl = std::unique_ptr<SSL, FreeSsl>;

struct FreeSslContext {
  void operator()(SSL_CTX* context) const { ::SSL_CTX_free(context); }
};
using UniqueSslContext = std::unique_ptr<SSL_CTX, FreeSslContext>;

class TlsStream : public net::Stream {
 public:
  // `ssl` is set to accept or connect, with everything it verifies. `first`: bytes already read from `below`.
  TlsStream(std::unique_ptr<net::Stream> below, UniqueSsl ssl, std::string_view first);

  // Whether it succeeded; SSL_get_verify_result of ssl() says why not.
  net::Task<bool> Handshake();
  SSL* ssl() const { return ssl_.get(); }

  net::Task<size_t> ReadSome(char* data, size_t size) override;
  net::Task<bool> Write(std::string_view first, std::string_view second) override;
  net::Task<void> FinishWriting() override;
  bool PeerGone() override { return below_->PeerGone(); }
  void CancelRead() override { below_->CancelRead(); }
  void Close() override { below_->Close(); }

 private:
  net::Task<bool> Flush();  // sends what the library has written
  net::Task<bool> Fill();   // gives it what has come

  std::unique_ptr<net::Stream> below_;
  UniqueSsl ssl_;
  BIO* in_ = nullptr;   // owned by ssl_
  BIO* out_ = nullptr;  // likewise
  std::string came_;    // from below
  std::string leaves_;  // for below, while sending_
  bool sending_ = false;
  bool ended_ = false;  // nothing comes from below any more
};

}  // namespace coffer::egress
