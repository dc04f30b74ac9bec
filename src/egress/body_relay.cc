// SPDX-License-Identifier: Apache-2.0
#include "egress/body_relay.h"

#include <fmt/format.h>

#include <algorithm>

#include "egress/proxy_context.h"
#include "net/http_chunks.h"

namespace coffer::egress {
namespace {

using Kind = net::HttpBody::Kind;
using net::Task;

Task<bool> Send(BufferedStream& to, std::string_view data, Kind as) {
  if (data.empty()) {
    co_return true;
  }
  if (as != Kind::kChunked) {
    const bool sent = co_await to.Write(data);
    co_return sent;
  }
  const std::string piece = fmt::format("{:x}\r\n{}\r\n", data.size(), data);
  const bool sent = co_await to.Write(piece);
  co_return sent;
}

Task<BodyEnd> RelayLength(BufferedStream& from, uint64_t left, BufferedStream& to, Kind as,
                          Watchdog& watchdog, std::chrono::seconds idle) {
  while (left > 0) {
    if (from.buffer().empty()) {
      const bool more = co_await from.Fill();
      if (!more) {
        co_return BodyEnd::kSourceBroken;
      }
    }
    watchdog.Within(idle);
    const std::string piece = from.Take(static_cast<size_t>(std::min<uint64_t>(left, SIZE_MAX)));
    left -= piece.size();
    const bool sent = co_await Send(to, piece, as);
    if (!sent) {
      co_return BodyEnd::kTargetGone;
    }
  }
  co_return BodyEnd::kWhole;
}

Task<BodyEnd> RelayChunks(BufferedStream& from, BufferedStream& to, Kind as, Watchdog& watchdog,
                          std::chrono::seconds idle) {
  net::ChunkDecoder decoder;
  while (!decoder.done()) {
    if (from.buffer().empty()) {
      const bool more = co_await from.Fill();
      if (!more) {
        co_return BodyEnd::kSourceBroken;
      }
    }
    watchdog.Within(idle);
    std::string data;
    const size_t used = decoder.Feed(from.buffer(), &data);
    from.buffer().erase(0, used);
    if (decoder.broken()) {
      co_return BodyEnd::kSourceBroken;
    }
    const bool sent = co_await Send(to, data, as);
    if (!sent) {
      co_return BodyEnd::kTargetGone;
    }
  }
  co_return BodyEnd::kWhole;
}

Task<BodyEnd> RelayUntilClose(BufferedStream& from, BufferedStream& to, Kind as, Watchdog& watchdog,
                              std::chrono::seconds idle) {
  for (;;) {
    const std::string piece = std::exchange(from.buffer(), {});
    watchdog.Within(idle);
    const bool sent = co_await Send(to, piece, as);
    if (!sent) {
      co_return BodyEnd::kTargetGone;
    }
    const bool more = co_await from.Fill();
    if (!more) {
      co_return BodyEnd::kWhole;
    }
  }
}

}  // namespace

Task<BodyEnd> RelayBody(BufferedStream& from, const net::HttpBody& body, BufferedStream& to,
                        Kind as, Watchdog& watchdog, std::chrono::seconds idle) {
  BodyEnd end = BodyEnd::kWhole;
  switch (body.kind) {
    case Kind::kNone:
      co_return BodyEnd::kWhole;
    case Kind::kLength:
      end = co_await RelayLength(from, body.length, to, as, watchdog, idle);
      break;
    case Kind::kChunked:
      end = co_await RelayChunks(from, to, as, watchdog, idle);
      break;
    case Kind::kUntilClose:
      end = co_await RelayUntilClose(from, to, as, watchdog, idle);
      break;
  }
  if (end == BodyEnd::kWhole && as == Kind::kChunked) {
    const bool sent = co_await to.Write("0\r\n\r\n");
    end = sent ? BodyEnd::kWhole : BodyEnd::kTargetGone;
  }
  co_return end;
}

}  // namespace coffer::egress
