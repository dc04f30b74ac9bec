// SPDX-License-Identifier: Apache-2.0
//
// Answers of the service, and the way they take back to the client.
//
// A Reply has two steps. Prepare turns an answer into what is sent, which may take long: on any
// thread, preferably not the loop's. The function that it returns hands that to the connection: on
// the loop's thread. Invoking a Reply does both. A Reply knows its Asker: whose turn the work is,
// and whether the client still waits for it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "audit/receipt.h"
#include "store/tenant_id.h"

namespace coffer::gateway {

// Why a request was refused, independent of the protocol. HTTP's status is in brackets.
enum class RefusalKind {
  kInvalid,          // [400] malformed in a way only the service can see
  kUnauthenticated,  // [401] no such key, expired, revoked
  kRefused,          // [403] known, and not allowed
  kNotFound,         // [404] does not exist, or belongs to another tenant or agent
  kConflict,         // [409] not in this state: a finished call cannot be cancelled
  kInFlight,         // [409] the same Idempotency-Key is being worked on
  kTooLarge,         // [413] over a quota of bytes
  kUnprocessable,  // [422] well-formed and wrong: arguments against the schema, a key used for another request
  kRateLimited,  // [429] with retry_after
  kInternal,     // [500] Cofferdam failed; the message is for an agent and says nothing of the host
  kUnavailable,  // [503] not now: draining, no store; retry_after if known
};

// One place in the request that is wrong.
struct RefusalDetail {
  std::string pointer;  // JSON Pointer into the request's body: "/args/code"
  std::string message;
};

struct Refusal {
  RefusalKind kind = RefusalKind::kInternal;
  std::string code;     // stable, dotted: "tool.unknown", "idempotency.mismatch", "limit.rate"
  std::string message;  // one line, no host path, no secret
  std::string hint;     // what to do about it; may be empty
  std::optional<std::chrono::milliseconds> retry_after;
  std::string call_id;  // the call that has a receipt of this refusal; may be empty
  std::optional<audit::LogPosition> log;  // of that receipt
  std::vector<RefusalDetail> details;
};

// A T, or why not.
template <typename T>
class [[nodiscard]] Answer {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): values and refusals are returned as they are
  Answer(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  Answer(Refusal refusal) : state_(std::in_place_index<1>, std::move(refusal)) {}

  bool ok() const { return state_.index() == 0; }
  T& value() { return std::get<0>(state_); }
  const T& value() const { return std::get<0>(state_); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  const Refusal& refusal() const { return std::get<1>(state_); }

 private:
  std::variant<T, Refusal> state_;
};

struct Nothing {};

// The client of one request, as its work sees it. Tenant and key are set on the loop's thread
// before work is given away.
struct Asker {
  store::TenantId tenant = store::TenantId::None();  // until the client is known
  std::string key;         // the key, token id or uid; the address before the client is known
  bool only_reads = true;  // nothing is lost if its work is not done
  std::atomic<bool> gone{false};
  // On the loop's thread, once, when the client leaves; for a handler whose work then has to end.
  std::function<void()> left;
};

template <typename T>
class Reply {
 public:
  using Finish = std::function<void()>;
  using Preparing = std::function<Finish(Answer<T>)>;

  Reply() = default;
  // Nothing to prepare.
  template <typename F, typename = std::enable_if_t<std::is_invocable_v<F&, Answer<T>> &&
                                                    !std::is_same_v<std::decay_t<F>, Reply>>>
  // NOLINTNEXTLINE(google-explicit-constructor): a function is a reply
  Reply(F deliver, std::shared_ptr<const Asker> asker = nullptr)
      : prepare_([deliver = std::make_shared<F>(std::move(deliver))](Answer<T> answer) -> Finish {
          return [deliver, answer = std::make_shared<Answer<T>>(std::move(answer))] {
            (*deliver)(std::move(*answer));
          };
        }),
        asker_(std::move(asker)) {}
  static Reply Prepared(Preparing prepare, std::shared_ptr<const Asker> asker) {
    Reply reply;
    reply.prepare_ = std::move(prepare);
    reply.asker_ = std::move(asker);
    return reply;
  }

  explicit operator bool() const { return prepare_ != nullptr; }
  Finish Prepare(Answer<T> answer) const { return prepare_(std::move(answer)); }
  void operator()(Answer<T> answer) const { Prepare(std::move(answer))(); }

  const std::shared_ptr<const Asker>& asker() const { return asker_; }
  // False: no client waits for the answer, and nothing is lost without it.
  bool wanted() const { return asker_ == nullptr || !asker_->only_reads || !asker_->gone; }

 private:
  Preparing prepare_;
  std::shared_ptr<const Asker> asker_;
};

}  // namespace coffer::gateway
