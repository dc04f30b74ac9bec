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

// Where a body goes, and what its bytes go through.
struct BodyTarget {
  BufferedStream& to;
  Kind as;
  WatchedStream* watched;
  Watchdog& watchdog;
  std::chrono::seconds idle;
};

Task<BodyEnd> Write(const BodyTarget& target, std::string data) {
  if (data.empty()) {
    co_return BodyEnd::kWhole;
  }
  if (target.as == Kind::kChunked) {
    data = fmt::format("{:x}\r\n{}\r\n", data.size(), data);
  }
  const bool sent = co_await target.to.Write(data);
  co_return sent ? BodyEnd::kWhole : BodyEnd::kTargetGone;
}

Task<BodyEnd> Send(const BodyTarget& target, std::string data) {
  if (target.watched != nullptr) {
    data = target.watched->Pass(std::move(data));
    if (target.watched->found() != 0) {
      co_return BodyEnd::kValueFound;
    }
  }
  const BodyEnd end = co_await Write(target, std::move(data));
  co_return end;
}

Task<BodyEnd> RelayLength(BufferedStream& from, uint64_t left, const BodyTarget& target) {
  while (left > 0) {
    if (from.buffer().empty()) {
      const bool more = co_await from.Fill();
      if (!more) {
        co_return BodyEnd::kSourceBroken;
      }
    }
    target.watchdog.Within(target.idle);
    std::string piece = from.Take(static_cast<size_t>(std::min<uint64_t>(left, SIZE_MAX)));
    left -= piece.size();
    const BodyEnd sent = co_await Send(target, std::move(piece));
    if (sent != BodyEnd::kWhole) {
      co_return sent;
    }
  }
  co_return BodyEnd::kWhole;
}

Task<BodyEnd> RelayChunks(BufferedStream& from, const BodyTarget& target) {
  net::ChunkDecoder decoder;
  while (!decoder.done()) {
    if (from.buffer().empty()) {
      const bool more = co_await from.Fill();
      if (!more) {
        co_return BodyEnd::kSourceBroken;
      }
    }
    target.watchdog.Within(target.idle);
    std::string data;
    const size_t used = decoder.Feed(from.buffer(), &data);
    from.buffer().erase(0, used);
    if (decoder.broken()) {
      co_return BodyEnd::kSourceBroken;
    }
    const BodyEnd sent = co_await Send(target, std::move(data));
    if (sent != BodyEnd::kWhole) {
      co_return sent;
    }
  }
  co_return BodyEnd::kWhole;
}

Task<BodyEnd> RelayUntilClose(BufferedStream& from, const BodyTarget& target) {
  for (;;) {
    std::string piece = std::exchange(from.buffer(), {});
    target.watchdog.Within(target.idle);
    const BodyEnd sent = co_await Send(target, std::move(piece));
    if (sent != BodyEnd::kWhole) {
      co_return sent;
    }
    const bool more = co_await from.Fill();
    if (!more) {
      co_return from.EndedWell() ? BodyEnd::kWhole : BodyEnd::kSourceBroken;
    }
  }
}

}  // namespace

Task<BodyEnd> RelayBody(BufferedStream& from, const net::HttpBody& body, BufferedStream& to,
                        Kind as, Watchdog& watchdog, std::chrono::seconds idle,
                        WatchedStream* watched) {
  const BodyTarget target{to, as, watched, watchdog, idle};
  BodyEnd end = BodyEnd::kWhole;
  switch (body.kind) {
    case Kind::kNone:
      co_return BodyEnd::kWhole;
    case Kind::kLength:
      end = co_await RelayLength(from, body.length, target);
      break;
    case Kind::kChunked:
      end = co_await RelayChunks(from, target);
      break;
    case Kind::kUntilClose:
      end = co_await RelayUntilClose(from, target);
      break;
  }
  if (end == BodyEnd::kWhole && watched != nullptr) {
    end = co_await Write(target, watched->Rest());
  }
  if (end == BodyEnd::kWhole && as == Kind::kChunked) {
    const bool sent = co_await to.Write("0\r\n\r\n");
    end = sent ? BodyEnd::kWhole : BodyEnd::kTargetGone;
  }
  co_return end;
}

}  // namespace coffer::egress
