// SPDX-License-Identifier: Apache-2.0
//
// The deliverer: a thread of the gateway that empties the outbox (store/outbox.h) into the egress role.
//
// No call ever waits for it: a call's end leaves a row, and everything else happens here. A row
// goes when its receiver answered 2xx, so the event of an acknowledged call is delivered at least once,
// also after a crash; the same event always has the same id. Events of one receiver are sent in the
// order in which they are due, several at a time, so they may arrive out of order. A receiver that
// fails is left alone for a while (a second, doubled up to an hour, or as long as its Retry-After
// says) and then tried with a single event; the others go on. An event that is refused (4xx, a
// redirect) is dropped after a few attempts, the oldest are dropped when too many wait, and both
// are counted and said.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "audit/log/signer.h"
#include "base/clock.h"
#include "base/unique_fd.h"
#include "egress/deliver_protocol.h"
#include "egress/deliver_receiver.h"
#include "store/outbox.h"
#include "store/store.h"

namespace coffer::daemon {

struct DelivererOptions {
  Nanos first_wait = std::chrono::seconds(1);
  Nanos longest_wait = std::chrono::hours(1);
  uint32_t most_refusals = 5;                   // attempts of an event that its receiver refuses
  uint64_t most_rows = store::kMostOutboxRows;  // of all receivers together
  uint32_t window = 8;                          // of one receiver, at a time
  uint32_t batch = 64;                          // calls in one request to a collector
  Nanos look = std::chrono::milliseconds(200);  // how often it looks for something new
  std::optional<audit::PublicKey> key;  // only receipts that it sealed are told; nothing: all
};

struct DeliveryCounts {
  uint64_t sent = 0;     // events that a receiver took
  uint64_t failed = 0;   // attempts that did not succeed
  uint64_t dropped = 0;  // events that no receiver will get
};

class Deliverer {
 public:
  // `egress` is the socket to the egress role. Both outlive it. Nothing happens before Start.
  Deliverer(store::Store& store, std::vector<egress::Receiver> receivers, int egress,
            DelivererOptions options = {});
  ~Deliverer();  // what is under way stays in the outbox
  Deliverer(const Deliverer&) = delete;
  Deliverer& operator=(const Deliverer&) = delete;

  Status Start();

  // From any thread.
  DeliveryCounts counts() const;

 private:
  struct Shipment {
    std::vector<int64_t> rows;
    uint32_t attempts = 0;  // before this one
  };
  // One receiver.
  struct Lane {
    egress::Receiver receiver;
    uint32_t failures = 0;  // in a row
    Nanos not_before{0};    // boot time
    bool said = false;      // that it fails
    std::map<uint64_t, Shipment> under_way;
    std::set<int64_t> rows;                // of those
    std::map<int64_t, uint32_t> refusals;  // of rows, since this process began
    std::vector<int64_t> unremoved;        // rows that should be gone, and are not yet
  };

  void Run();
  // False: the egress role has not read enough yet, or is gone.
  bool Fill(Lane& lane);
  bool Ship(Lane& lane, const std::vector<store::OutboxRow>& rows, const std::string& id,
            std::string_view body);
  void Drain();
  void Settle(Lane& lane, const egress::DeliverAnswer& answer);
  void Refuse(Lane& lane, const Shipment& shipment, const egress::DeliverAnswer& answer);
  void Drop(Lane& lane, std::span<const int64_t> rows, const std::string& why);
  void Remove(Lane& lane, std::span<const int64_t> rows);
  void Trim();
  // The body for a receiver. Nothing if it can no longer be made. An error: try again later.
  struct Message {
    std::string id, body;
  };
  Result<std::optional<Message>> Compose(const store::OutboxRow& row);
  Result<std::optional<std::string>> ReceiptOf(const store::OutboxRow& row);
  bool FillWebhook(Lane& lane, const std::vector<store::OutboxRow>& rows);
  bool FillCollector(Lane& lane, const std::vector<store::OutboxRow>& rows);
  // The store does not answer. No event is lost, and the store is asked again later.
  void Note(const Status& status);

  store::Store& store_;
  const int egress_;
  const DelivererOptions options_;
  std::vector<Lane> lanes_;
  UniqueFd wake_;
  uint64_t next_number_ = 1;
  Nanos trimmed_{0};
  Nanos said_store_{0};
  std::atomic<bool> stopping_{false};
  bool egress_gone_ = false;
  std::atomic<uint64_t> sent_{0}, failed_{0}, dropped_{0};
  std::thread thread_;
};

}  // namespace coffer::daemon
