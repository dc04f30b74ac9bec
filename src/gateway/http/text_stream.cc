// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/text_stream.h"

#include <exception>
#include <optional>
#include <utility>

#include "base/json_pieces.h"
#include "gateway/http/deflate.h"

namespace coffer::gateway {
namespace {

class TextStream : public BodyStream, public std::enable_shared_from_this<TextStream> {
 public:
  TextStream(std::shared_ptr<const Api> api, std::shared_ptr<Asker> asker,
             std::shared_ptr<JsonPieces> text)
      : api_(std::move(api)),
        asker_(std::move(asker)),
        text_(std::move(text)),
        room_(api_->service.HoldAnyway(*asker_, text_->source_bytes())) {}

  // Before the first piece. False if there is no memory for it.
  bool Compress() {
    deflate_.emplace();
    if (!deflate_->ready()) {
      deflate_.reset();
    }
    return deflate_.has_value();
  }

  // No two of these at a time, so the worker that makes a piece has the text to itself.
  void Next(std::function<void(Piece)> next) override {
    api_->service.Continue(*asker_, [self = shared_from_this(), next = std::move(next)]() mutable {
      auto piece = std::make_shared<Piece>(Piece{{}, /*end=*/true, /*failed=*/true});
      try {
        if (!self->asker_->gone) {
          *piece = self->Make();
        }
      } catch (const std::exception&) {  // no memory: the client sees that the answer is cut
        *piece = {{}, true, true};
      }
      const Api& api = *self->api_;
      api.loop.Post(
          [self = std::move(self), next = std::move(next), piece] { next(std::move(*piece)); });
    });
  }

 private:
  Piece Make() {
    if (!deflate_) {
      std::string bytes = text_->Next();
      const bool end = bytes.empty();
      return {std::move(bytes), end, false};
    }
    while (deflate_->pieces().size() < 2 && !compressed_) {
      const std::string bytes = text_->Next();
      compressed_ = bytes.empty();
      deflate_->Add(bytes, compressed_);
    }
    std::string bytes;
    for (const std::string& piece : deflate_->Take()) {
      bytes += piece;
    }
    return {std::move(bytes), compressed_, false};
  }

  std::shared_ptr<const Api> api_;
  std::shared_ptr<Asker> asker_;
  std::shared_ptr<JsonPieces> text_;
  std::shared_ptr<void> room_;
  std::optional<Deflate> deflate_;
  bool compressed_ = false;
};

}  // namespace

void PrepareText(const std::shared_ptr<const Api>& api, const std::shared_ptr<Asker>& asker,
                 bool gzip, Response* response) {
  const std::shared_ptr<JsonPieces> text = std::exchange(response->text, nullptr);
  if (text == nullptr) {
    return;
  }
  if (text->source_bytes() < kStreamedBytes) {
    for (std::string piece = text->Next(); !piece.empty(); piece = text->Next()) {
      response->pieces.push_back(std::move(piece));
    }
    return;
  }
  StreamText(api, asker, gzip, text, response);
}

void StreamText(const std::shared_ptr<const Api>& api, const std::shared_ptr<Asker>& asker,
                bool gzip, std::shared_ptr<JsonPieces> text, Response* response) {
  auto stream = std::make_shared<TextStream>(api, asker, std::move(text));
  response->headers.push_back({"Vary", "Accept-Encoding"});
  if (gzip && stream->Compress()) {
    response->headers.push_back({"Content-Encoding", "gzip"});
  }
  response->stream = std::move(stream);
}

std::shared_ptr<BodyStream> MakeTextStream(const std::shared_ptr<const Api>& api,
                                           const std::shared_ptr<Asker>& asker,
                                           std::shared_ptr<JsonPieces> text) {
  return std::make_shared<TextStream>(api, asker, std::move(text));
}

}  // namespace coffer::gateway
