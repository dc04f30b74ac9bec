// SPDX-License-Identifier: Apache-2.0
#include "daemon/deliver.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "audit/export/cloud_event.h"
#include "audit/export/otlp.h"
#include "audit/receipt.h"
#include "audit/seal.h"
#include "base/json.h"
#include "base/print.h"
#include "base/sys.h"
#include "egress/deliver_schedule.h"
#include "store/call.h"

namespace coffer::daemon {
namespace {

using store::AllTenants;
using store::OutboxRow;

constexpr Nanos kTrimDeliveriesEvery = std::chrono::seconds(1);
constexpr Nanos kSayEvery = std::chrono::seconds(60);
constexpr size_t kBatchBytes = egress::kMaxDeliverBody - 4096;  // room for what is around the spans

uint64_t Chance() {
  uint64_t number = 0;
  (void)raw::Syscall(SYS_getrandom, raw::Arg(&number), sizeof(number), 0);
  return number;
}

void Say(const std::string& text) { PrintError("coffer: delivery: " + text); }

std::vector<int64_t> IdsOf(const std::vector<OutboxRow>& rows) {
  std::vector<int64_t> ids;
  ids.reserve(rows.size());
  for (const OutboxRow& row : rows) {
    ids.push_back(row.id);
  }
  return ids;
}

template <size_t kSize>
bool PutWord(char (&into)[kSize], const std::string& text) {
  if (text.size() >= kSize) {
    return false;
  }
  memcpy(into, text.c_str(), text.size() + 1);
  return true;
}

}  // namespace

Deliverer::Deliverer(store::Store& store, std::vector<egress::Receiver> receivers, int egress,
                     DelivererOptions options)
    : store_(store), egress_(egress), options_(options) {
  for (egress::Receiver& receiver : receivers) {
    lanes_.emplace_back().receiver = std::move(receiver);
  }
}

Deliverer::~Deliverer() {
  stopping_ = true;
  if (thread_.joinable()) {
    const uint64_t one = 1;
    (void)raw::Syscall(SYS_write, wake_.get(), raw::Arg(&one), sizeof(one));
    thread_.join();
  }
}

Status Deliverer::Start() {
  const long wake = raw::Syscall(SYS_eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake < 0) {
    return sys::ErrnoError("daemon.deliver", "cannot make an eventfd", wake);
  }
  wake_ = UniqueFd(static_cast<int>(wake));
  std::vector<std::string> names;
  names.reserve(lanes_.size());
  for (const Lane& lane : lanes_) {
    names.push_back(lane.receiver.name);
  }
  TRY_ASSIGN(const uint64_t forgotten, store::ForgetOtherReceivers(store_, AllTenants{}, names));
  if (forgotten > 0) {
    dropped_ += forgotten;
    Say(fmt::format("{} events were for receivers that are no longer configured; dropped",
                    forgotten));
  }
  // Signals are for the gateway's loop.
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { Run(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return {};
}

DeliveryCounts Deliverer::counts() const { return {sent_, failed_, dropped_}; }

void Deliverer::Run() {
  while (!stopping_ && !egress_gone_) {
    Nanos wait = options_.look;
    for (Lane& lane : lanes_) {
      const Nanos now = BootTime();
      if (lane.not_before > now) {
        wait = std::min(wait, lane.not_before - now);
      } else if (!Fill(lane)) {
        break;
      }
    }
    if (BootTime() - trimmed_ >= kTrimDeliveriesEvery) {
      Trim();
    }
    pollfd ready[] = {{egress_, POLLIN, 0}, {wake_.get(), POLLIN, 0}};
    const auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(wait).count();
    // A millisecond more, because the time was rounded down: woken too early it would only look
    // again.
    (void)::poll(ready, 2, static_cast<int>(millis) + 1);
    Drain();
  }
}

void Deliverer::Note(const Status& status) {
  if (!status.ok() && BootTime() - said_store_ >= kSayEvery) {
    said_store_ = BootTime();
    Say("the outbox cannot be used: " + status.error().message);
  }
}

bool Deliverer::Fill(Lane& lane) {
  // A receiver that failed gets one at a time, until it takes one.
  const uint32_t window = lane.failures > 0 ? 1 : options_.window;
  if (lane.under_way.size() >= window) {
    return true;
  }
  const bool collector = lane.receiver.kind == egress::Receiver::Kind::kOtlp;
  const auto free = static_cast<uint32_t>(window - lane.under_way.size());
  const uint32_t wanted = collector ? options_.batch : free;
  Result<std::vector<OutboxRow>> due = store::ListDue(
      store_, AllTenants{}, lane.receiver.name, wanted + static_cast<uint32_t>(lane.rows.size()));
  if (!due.ok()) {
    Note(due.error());
    return true;
  }
  std::erase_if(*due, [&](const OutboxRow& row) { return lane.rows.contains(row.id); });
  if (due->size() > wanted) {
    due->resize(wanted);
  }
  if (due->empty()) {
    return true;
  }
  return collector ? FillCollector(lane, *due) : FillWebhook(lane, *due);
}

bool Deliverer::FillWebhook(Lane& lane, const std::vector<OutboxRow>& rows) {
  for (const OutboxRow& row : rows) {
    const Result<std::optional<Message>> message = Compose(row);
    if (!message.ok()) {
      Note(message.error());
      return true;
    }
    if (!*message) {
      const int64_t ids[] = {row.id};
      Drop(lane, ids, "its receipt is gone or differs from its seal");
      continue;
    }
    if (!Ship(lane, {row}, (*message)->id, (*message)->body)) {
      return false;
    }
  }
  return true;
}

// Several calls in one request; one that was refused before goes alone, so that it cannot take others along.
bool Deliverer::FillCollector(Lane& lane, const std::vector<OutboxRow>& rows) {
  std::vector<Json> spans;
  std::vector<OutboxRow> taken;
  size_t bytes = 0;
  for (const OutboxRow& row : rows) {
    const bool alone = row.attempts > 0;
    if (alone && !taken.empty()) {
      break;
    }
    const Result<std::optional<std::string>> receipt = ReceiptOf(row);
    if (!receipt.ok()) {
      Note(receipt.error());
      break;
    }
    const Result<Json> parsed = audit::ParseForExport(receipt->value_or(""));
    std::vector<Json> of_call;
    size_t size = egress::kMaxDeliverBody;
    if (parsed.ok()) {
      of_call = audit::OtlpSpans(*parsed, {});
      size = PrintJson(Json(of_call)).size();
    }
    if (size > kBatchBytes) {
      const int64_t ids[] = {row.id};
      Drop(lane, ids,
           parsed.ok() ? "it is too large" : "its receipt is gone or differs from its seal");
      continue;
    }
    if (bytes + size > kBatchBytes) {
      break;
    }
    bytes += size;
    taken.push_back(row);
    std::move(of_call.begin(), of_call.end(), std::back_inserter(spans));
    if (alone) {
      break;
    }
  }
  if (taken.empty()) {
    return true;
  }
  return Ship(lane, taken, "otlp." + std::to_string(taken.front().id),
              PrintJson(audit::OtlpRequest(std::move(spans))));
}

Result<std::optional<std::string>> Deliverer::ReceiptOf(const OutboxRow& row) {
  const Result<Json> body = ParseJson(row.body);
  const Result<store::TenantId> tenant = store::TenantId::Parse(row.tenant);
  const std::string call = body.ok() ? audit::TextAt(*body, {"call"}) : "";
  if (call.empty() || !tenant.ok()) {
    return std::optional<std::string>();
  }
  TRY_ASSIGN(std::optional<std::string> receipt, store::FindReceipt(store_, *tenant, call));
  if (receipt && options_.key) {
    const Result<audit::Receipt> parsed = audit::ParseReceipt(*receipt);
    if (!parsed.ok() || parsed->identity.call_id != call || parsed->identity.tenant != *tenant ||
        !audit::VerifyReceipt(*receipt, *options_.key).ok()) {
      return std::optional<std::string>();
    }
  }
  return receipt;
}

Result<std::optional<Deliverer::Message>> Deliverer::Compose(const OutboxRow& row) {
  std::optional<Message> message;
  const Result<Json> body = ParseJson(row.body);
  const std::string call = body.ok() ? audit::TextAt(*body, {"call"}) : "";
  const std::string id = body.ok() ? audit::TextAt(*body, {"id"}) : "";
  if (!call.empty()) {
    TRY_ASSIGN(const std::optional<std::string> receipt, ReceiptOf(row));
    Result<std::string> event = audit::CallCloudEvent(receipt.value_or(""));
    if (event.ok()) {
      message = Message{audit::CallEventId(call), std::move(event).value()};
    }
  } else if (!id.empty()) {
    message = Message{id, row.body};  // an event, as it is sent
  }
  return message;
}

bool Deliverer::Ship(Lane& lane, const std::vector<OutboxRow>& rows, const std::string& id,
                     std::string_view body) {
  egress::DeliverHeader header;
  header.number = next_number_;
  header.time = std::chrono::duration_cast<std::chrono::seconds>(WallTime()).count();
  header.size = static_cast<uint32_t>(body.size());
  if (body.size() > egress::kMaxDeliverBody || !PutWord(header.receiver, lane.receiver.name) ||
      !PutWord(header.id, id)) {
    Drop(lane, IdsOf(rows), "it is too large");
    return true;
  }
  const Result<bool> sent = egress::SendDelivery(egress_, header, body);
  if (!sent.ok()) {
    egress_gone_ = true;  // the monitor ends everything
    return false;
  }
  if (!*sent) {
    return false;
  }
  ++next_number_;
  const std::vector<int64_t> ids = IdsOf(rows);
  lane.under_way[header.number] = {ids, rows.front().attempts};
  lane.rows.insert(ids.begin(), ids.end());
  return true;
}

void Deliverer::Drain() {
  for (;;) {
    const Result<egress::ReceivedAnswer> received = egress::ReceiveAnswer(egress_);
    if (!received.ok() || received->ended) {
      egress_gone_ = true;
      return;
    }
    if (received->none) {
      return;
    }
    for (Lane& lane : lanes_) {
      if (lane.under_way.contains(received->answer.number)) {
        Settle(lane, received->answer);
        break;
      }
    }
  }
}

void Deliverer::Settle(Lane& lane, const egress::DeliverAnswer& answer) {
  const Shipment shipment = std::move(lane.under_way.extract(answer.number).mapped());
  const egress::DeliverFate fate = egress::FateOf(answer);
  const auto result = static_cast<egress::DeliverResult>(answer.result);
  if (fate != egress::DeliverFate::kDone) {
    for (const int64_t row : shipment.rows) {
      lane.rows.erase(row);
    }
  }
  if (fate == egress::DeliverFate::kRetry) {
    ++failed_;
    // Those that were sent together fail together, and count once.
    if (lane.not_before <= BootTime()) {
      ++lane.failures;
      const Nanos wait = std::max(
          egress::Backoff(lane.failures, options_.first_wait, options_.longest_wait, Chance()),
          Nanos(std::chrono::seconds(answer.retry_after)));
      lane.not_before = BootTime() + wait;
    }
    if (result == egress::DeliverResult::kAnswered) {
      // It may be this event that it cannot take: it must not be the first one again each time.
      const Nanos wait = std::max(egress::Backoff(shipment.attempts + 1, options_.first_wait,
                                                  options_.longest_wait, Chance()),
                                  Nanos(std::chrono::seconds(answer.retry_after)));
      Note(store::Postpone(store_, AllTenants{}, shipment.rows, store_.Now() + wait));
    }
    if (!lane.said) {
      lane.said = true;
      Say(fmt::format("{}: {}; its events wait", lane.receiver.shown(),
                      result == egress::DeliverResult::kAnswered
                          ? fmt::format("it answered {}", answer.status)
                          : std::string(egress::DeliverResultText(result))));
    }
    return;
  }
  lane.failures = 0;
  lane.not_before = Nanos(0);
  if (lane.said) {
    lane.said = false;
    Say(lane.receiver.shown() + ": it answers again");
  }
  if (fate == egress::DeliverFate::kRefused) {
    Refuse(lane, shipment, answer);
    return;
  }
  sent_ += shipment.rows.size();
  Remove(lane, shipment.rows);
}

void Deliverer::Refuse(Lane& lane, const Shipment& shipment, const egress::DeliverAnswer& answer) {
  ++failed_;
  uint32_t most = 0;
  for (const int64_t row : shipment.rows) {
    most = std::max(most, ++lane.refusals[row]);
  }
  if (most >= options_.most_refusals) {
    Drop(
        lane, shipment.rows,
        fmt::format("{} answered {} each of {} times", lane.receiver.shown(), answer.status, most));
    return;
  }
  const Nanos wait =
      egress::Backoff(shipment.attempts + 1, options_.first_wait, options_.longest_wait, Chance());
  Note(store::Postpone(store_, AllTenants{}, shipment.rows, store_.Now() + wait));
}

void Deliverer::Drop(Lane& lane, std::span<const int64_t> rows, const std::string& why) {
  dropped_ += rows.size();
  Say(fmt::format("{} event(s) dropped: {}", rows.size(), why));
  Remove(lane, rows);
}

void Deliverer::Remove(Lane& lane, std::span<const int64_t> rows) {
  for (const int64_t row : rows) {
    lane.refusals.erase(row);
  }
  const Status removed = store::RemoveSent(store_, AllTenants{}, rows);
  for (const int64_t row : rows) {
    if (removed.ok()) {
      lane.rows.erase(row);
    } else {
      // A full disk: it stays out of the way, and is not sent once more while this process lives.
      lane.rows.insert(row);
      lane.unremoved.push_back(row);
    }
  }
  Note(removed);
}

void Deliverer::Trim() {
  trimmed_ = BootTime();
  for (Lane& lane : lanes_) {
    if (!lane.unremoved.empty()) {
      Remove(lane, std::exchange(lane.unremoved, {}));
    }
  }
  const Result<uint64_t> removed = store::TrimOutbox(store_, AllTenants{}, options_.most_rows);
  if (!removed.ok()) {
    Note(removed.error());
    return;
  }
  if (*removed > 0) {
    dropped_ += *removed;
    Say(fmt::format("more than {} events wait: the {} oldest were dropped", options_.most_rows,
                    *removed));
  }
}

}  // namespace coffer::daemon
