// SPDX-License-Identifier: Apache-2.0
//
// TLS 1.2 and 1.3 with forward secrecy and authenticated encryption only; no compression, no renegotiation, no session
// state kept for clients. Clients are not asked for certificates: who they are is the bearer token's business.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "net/asio.h"

namespace coffer::net {

class TlsContext {
 public:
  // Of PEM texts. Fails if one of them is none, or the key does not belong to the certificate.
  static Result<std::shared_ptr<TlsContext>> Load(const std::string& certificate,
                                                  const std::string& key);
  virtual ~TlsContext() = default;

  virtual std::unique_ptr<Stream> Wrap(Socket socket) = 0;
  // Whether the handshake succeeded. `stream` is one of Wrap.
  virtual Task<bool> Handshake(Stream* stream) = 0;
};

}  // namespace coffer::net
