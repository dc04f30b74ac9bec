// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/sse.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/base64.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/utf8.h"
#include "gateway/http/names.h"

namespace coffer::gateway {
namespace {

constexpr size_t kBatchBytes = 16384;
// A larger batch would hold up the loop while it is formatted.
constexpr size_t kFormattedAtOnce = 4096;
// A stream with nothing to say yet begins anyway, so that the client sees its headers.
constexpr std::chrono::milliseconds kStreamPatience{250};
// Visibility is checked this often: a watcher that lost the right still gets events until the next check.
constexpr std::chrono::seconds kLookAgain{1};

// Waits for batches, one at a time, and hands them out as text. Before it is streamed, the first batch decides what
// the answer is.
class EventStream : public BodyStream, public std::enable_shared_from_this<EventStream> {
 public:
  EventStream(std::shared_ptr<Exchange> exchange, uint64_t after)
      : exchange_(std::move(exchange)), after_(after) {}

  // `begin` gets a refusal, or nothing: then this stream is the answer. `empty()` tells if it ended already.
  void Begin(std::function<void(std::optional<Refusal>)> begin) {
    begin_ = std::move(begin);
    timer_ = exchange_->api->loop.After(kStreamPatience, [weak = weak_from_this()] {
      if (auto self = weak.lock()) {
        self->Decide(std::nullopt);
      }
    });
    Ask();
  }

  bool empty() const { return finished_ && text_.empty(); }

  void Next(std::function<void(Piece)> next) override {
    if (!std::exchange(greeted_, true)) {
      text_.insert(0, "retry: 1000\n\n");  // how soon a browser comes back
    }
    next_ = std::move(next);
    if (text_.empty()) {
      room_ = nullptr;  // the text given out before has been sent
    }
    if (!Deliver()) {
      Ask();
      SetHeartbeat();
    }
  }

 private:
  void Ask() {
    if (waiting_) {
      return;
    }
    waiting_ = true;
    // The reply may come before the handle does; then there is nothing left to hold.
    WaitHandle handle = exchange_->api->service.WaitEvents(
        exchange_->who, exchange_->Value("call_id"), after_, kBatchBytes,
        Reply<EventBatch>(
            [weak = weak_from_this()](Answer<EventBatch> answer) {
              if (auto self = weak.lock()) {
                self->Take(std::move(answer));
              }
            },
            exchange_->asker));
    if (waiting_) {
      handle_ = std::move(handle);
    }
  }

  void Take(Answer<EventBatch> answer) {
    waiting_ = false;
    room_ = nullptr;
    const auto done = std::move(handle_);  // dropped on return, not inside its own reply
    if (!answer.ok()) {
      finished_ = failed_ = true;
      Decide(answer.refusal());
      Deliver();
      return;
    }
    const bool ended = Ends(answer.value());
    if ((ended && begin_ != nullptr) || BootTime() - looked_at_ < kLookAgain) {
      Use(std::move(answer.value()));
      return;
    }
    waiting_ = true;  // no other batch is asked for meanwhile
    const auto batch = std::make_shared<EventBatch>(std::move(answer.value()));
    // What has ended is the record, which a stopped agent may still read.
    Look(ended ? Watched::kEnded : Watched::kRunning, [this, batch] {
      waiting_ = false;
      Use(std::move(*batch));
    });
  }

  static bool Ends(const EventBatch& batch) {
    return batch.finished || batch.ended ||
           (!batch.events.empty() && batch.events.back().kind == CallEvent::Kind::kState &&
            batch.events.back().data == "finished");
  }

  // Whether the client may still watch. Then `go_on`, else the stream ends with the reason. Those
  // that come while a question is on its way share its answer.
  void Look(Watched what, std::function<void()> go_on) {
    looks_.push_back(std::move(go_on));
    if (looks_.size() == 1) {
      AskStanding(what);
    }
  }

  void AskStanding(Watched what) {
    const auto answered = [weak = weak_from_this(), what](const Answer<Nothing>& answer) {
      auto self = weak.lock();
      if (self == nullptr || self->finished_) {
        return;
      }
      if (!answer.ok() && answer.refusal().kind == RefusalKind::kUnavailable) {
        self->look_later_ = self->exchange_->api->loop.After(kLookAgain, [weak, what] {
          if (auto again = weak.lock()) {
            again->AskStanding(what);
          }
        });
        return;
      }
      const auto looks = std::exchange(self->looks_, {});
      if (!answer.ok()) {
        self->EndEarly(answer.refusal());
        return;
      }
      self->looked_at_ = BootTime();
      for (const std::function<void()>& go_on : looks) {
        go_on();
      }
    };
    exchange_->api->service.CheckWatcher(exchange_->who, what,
                                         Reply<Nothing>(answered, exchange_->asker));
  }

  void EndEarly(const Refusal& refusal) {
    handle_ = nullptr;
    text_ += FormatEnd(refusal);
    finished_ = true;
    Decide(refusal);
    Deliver();
  }

  void Use(EventBatch answer) {
    size_t bytes = 0;
    for (const CallEvent& event : answer.events) {
      after_ = std::max(after_, event.seq);
      bytes += event.data.size();
    }
    if (bytes < kFormattedAtOnce) {
      Add(FormatBatch(answer), answer.finished);
      return;
    }
    waiting_ = true;  // no other batch is asked for meanwhile
    Format(std::make_shared<EventBatch>(std::move(answer)));
  }

  // On another thread.
  void Format(const std::shared_ptr<EventBatch>& batch) {
    exchange_->api->service.Continue(
        *exchange_->asker, [weak = weak_from_this(), exchange = exchange_, batch] {
          if (exchange->asker->gone) {
            return;
          }
          auto text = std::make_shared<std::string>(FormatBatch(*batch));
          auto room = exchange->api->service.HoldAnyway(*exchange->asker, text->size());
          exchange->api->loop.Post([weak, text, room, finished = batch->finished] {
            if (auto self = weak.lock()) {
              self->waiting_ = false;
              self->room_ = room;
              self->Add(std::move(*text), finished);
            }
          });
        });
  }

  void Add(std::string text, bool finished) {
    if (finished_) {
      return;  // it has ended early
    }
    if (text_.empty()) {
      text_ = std::move(text);  // it can be large: no second copy
    } else {
      text_ += text;
    }
    finished_ = finished;
    Decide(std::nullopt);
    if (next_ != nullptr && !Deliver()) {
      Ask();  // an empty batch: go on waiting
    }
  }

  void Decide(std::optional<Refusal> refusal) {
    if (auto begin = std::exchange(begin_, nullptr); begin != nullptr) {
      timer_.reset();
      begin(std::move(refusal));
    }
  }

  bool Deliver() {
    if (next_ == nullptr || (text_.empty() && !finished_)) {
      return false;
    }
    timer_.reset();
    Piece piece{std::exchange(text_, {}), finished_, failed_};
    std::exchange(next_, nullptr)(std::move(piece));
    return true;
  }

  void SetHeartbeat() {
    timer_ = exchange_->api->loop.After(
        exchange_->api->config.limits.heartbeat, [weak = weak_from_this()] {
          if (auto self = weak.lock(); self != nullptr && self->next_ != nullptr) {
            self->Look(Watched::kRunning, [self = self.get()] {
              if (self->next_ != nullptr) {
                std::exchange(self->next_, nullptr)(Piece{": still here\n\n", false, false});
              }
            });
          }
        });
  }

  std::shared_ptr<Exchange> exchange_;
  uint64_t after_;
  Nanos looked_at_{0};  // since the host started
  std::vector<std::function<void()>> looks_;
  std::shared_ptr<void> look_later_;
  std::function<void(std::optional<Refusal>)> begin_;
  std::function<void(Piece)> next_;
  WaitHandle handle_;
  std::shared_ptr<void> timer_;
  std::string text_;
  std::shared_ptr<void> room_;  // of the text, until it is sent
  bool greeted_ = false;
  bool waiting_ = false;
  bool finished_ = false;
  bool failed_ = false;
};

}  // namespace

std::string FormatEvent(const CallEvent& event) {
  static constexpr std::string_view kNames[] = {"state", "stdout", "stderr"};
  Json data;
  if (event.kind == CallEvent::Kind::kState) {
    data["state"] = event.data;
  } else if (IsUtf8(event.data)) {
    data["text"] = event.data;
  } else {
    data["base64"] = Base64Of(event.data);
  }
  return "id: " + std::to_string(event.seq) +
         "\nevent: " + std::string(kNames[static_cast<size_t>(event.kind)]) +
         "\ndata: " + PrintJson(data) + "\n\n";
}

std::string FormatBatch(const EventBatch& batch) {
  std::string text = batch.gap ? "event: gap\ndata: {}\n\n" : "";
  for (const CallEvent& event : batch.events) {
    text += FormatEvent(event);
  }
  return text;
}

std::string FormatEnd(const Refusal& refusal) {
  return "event: end\ndata: " +
         PrintJson(Json{{"code", refusal.code}, {"message", refusal.message}}) + "\n\n";
}

void RespondWithEvents(const std::shared_ptr<Exchange>& exchange, uint64_t after, Respond respond) {
  auto stream = std::make_shared<EventStream>(exchange, after);
  // The lambda keeps the stream alive until it has begun; Begin drops the lambda when it has called it.
  stream->Begin([stream, respond = std::move(respond)](std::optional<Refusal> refusal) {
    Response response;
    if (refusal.has_value()) {
      response = ProblemResponse(FromRefusal(*refusal));
    } else if (stream->empty()) {
      response.status = 204;  // an EventSource that gets this does not come back
    } else {
      response.content_type = "text/event-stream";
      response.headers.push_back({"X-Accel-Buffering", "no"});
      response.stream = stream;
    }
    respond(std::move(response));
  });
}

}  // namespace coffer::gateway
