// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "gateway/http/handlers.h"
#include "gateway/http/names.h"
#include "gateway/http/views.h"
#include "net/http_head.h"

namespace coffer::gateway {
namespace {

constexpr size_t kFilePieceBytes = 65536;

FileOwner OwnerOf(const Exchange& exchange) {
  const std::string& session = exchange.Value("session_id");
  return session.empty() ? FileOwner{FileOwner::Kind::kCall, exchange.Value("call_id")}
                         : FileOwner{FileOwner::Kind::kSession, session};
}

class FileStream : public BodyStream, public std::enable_shared_from_this<FileStream> {
 public:
  FileStream(std::shared_ptr<Download> download, std::shared_ptr<const Asker> asker)
      : download_(std::move(download)), left_(download_->file().size), asker_(std::move(asker)) {}

  void Next(std::function<void(Piece)> next) override {
    const auto read = [weak = weak_from_this(),
                       next = std::move(next)](Answer<std::string> answer) {
      auto self = weak.lock();
      if (self == nullptr) {
        return;
      }
      // A file that is not as long as its Content-Length said must not look complete.
      if (!answer.ok() || answer.value().size() > self->left_ ||
          (answer.value().empty() && self->left_ > 0)) {
        next({{}, true, true});
        return;
      }
      self->left_ -= answer.value().size();
      next({std::move(answer.value()), self->left_ == 0, false});
    };
    download_->Read(kFilePieceBytes, Reply<std::string>(read, asker_));
  }

 private:
  std::shared_ptr<Download> download_;
  uint64_t left_;
  std::shared_ptr<const Asker> asker_;
};

// Takes the body piece by piece; keeps itself alive through the replies it waits for.
class UploadReceiver : public std::enable_shared_from_this<UploadReceiver> {
 public:
  UploadReceiver(std::shared_ptr<Exchange> exchange, std::shared_ptr<Upload> upload,
                 Respond respond)
      : exchange_(std::move(exchange)), upload_(std::move(upload)), respond_(std::move(respond)) {}

  void Pull() {
    if (exchange_->reader == nullptr) {
      return;  // the client is gone; nothing is finished, so nothing remains
    }
    exchange_->reader->Read(
        [self = shared_from_this()](BodyReader::Piece piece) { self->Take(std::move(piece)); });
  }

 private:
  void Take(BodyReader::Piece piece) {
    if (piece.problem.has_value()) {
      respond_(ProblemResponse(*piece.problem));
      return;
    }
    if (piece.bytes.empty()) {
      Continue(piece.end);
      return;
    }
    const auto written = [self = shared_from_this(),
                          end = piece.end](const Answer<Nothing>& answer) {
      if (answer.ok()) {
        self->Continue(end);
      } else {
        self->respond_(ProblemResponse(FromRefusal(answer.refusal())));
      }
    };
    upload_->Write(std::move(piece.bytes), Reply<Nothing>(written, exchange_->asker));
  }

  void Continue(bool end) {
    if (end) {
      upload_->Finish(Answering<FileView>(exchange_, respond_, 201, FormatFile));
    } else {
      Pull();
    }
  }

  std::shared_ptr<Exchange> exchange_;
  std::shared_ptr<Upload> upload_;
  Respond respond_;
};

// What a client says of its upload and this server does not do. Ignoring it would write another
// file than the client meant: a part in the place of the whole, coded bytes as if they were plain,
// or a new version over one that the client did not know.
std::optional<Problem> CheckUpload(const Head& head) {
  if (head.Find("Content-Range") != nullptr) {
    return MakeProblem(400, "file.part", "a file is written as a whole: Content-Range is refused",
                       "send all of it, without Content-Range");
  }
  if (const std::string* coding = head.Find("Content-Encoding");
      coding != nullptr && !net::SameText(*coding, "identity")) {
    return MakeProblem(415, "body.encoding", "a file is written as it is sent, without a coding",
                       "send it without Content-Encoding; a coded file is a file like any other");
  }
  for (const char* name : {"If-Match", "If-None-Match", "If-Unmodified-Since"}) {
    if (head.Find(name) != nullptr) {
      return MakeProblem(501, "file.condition",
                         std::string("files have no versions: ") + name + " is not implemented",
                         "send it without the condition");
    }
  }
  return std::nullopt;
}

}  // namespace

void GetFiles(const std::shared_ptr<Exchange>& exchange, Respond respond) {
  Answer<PageRequest> page = ReadPage(*exchange);
  if (!page.ok()) {
    respond(ProblemResponse(FromRefusal(page.refusal())));
    return;
  }
  const std::string* const prefix = exchange->Query("prefix");
  exchange->api->service.ListFiles(
      exchange->who, OwnerOf(*exchange), prefix == nullptr ? "" : *prefix, std::move(page.value()),
      Answering<Page<FileView>>(exchange, std::move(respond), 200, FormatFiles));
}

void GetFile(const std::shared_ptr<Exchange>& exchange, Respond respond) {
  using Opened = std::shared_ptr<Download>;
  exchange->api->service.OpenDownload(
      exchange->who, OwnerOf(*exchange), exchange->Value("path"),
      Answering<Opened>(exchange, std::move(respond), [asker = exchange->asker](Opened& opened) {
        Response response;
        response.content_type = "application/octet-stream";
        // A file written by a tool is never a page of ours.
        response.headers.push_back({"Content-Disposition", "attachment"});
        response.headers.push_back({"Content-Security-Policy", "sandbox; default-src 'none'"});
        if (const uint64_t size = opened->file().size; size > 0) {
          response.stream_size = size;
          response.stream = std::make_shared<FileStream>(std::move(opened), asker);
        }
        return response;
      }));
}

void PutFile(const std::shared_ptr<Exchange>& exchange, Respond respond) {
  if (!IsNewFilePath(exchange->Value("path"))) {
    respond(ProblemResponse(
        MakeProblem(400, "path.invalid", "the path does not hold a proper path",
                    "a name that is uploaded is UTF-8 without control characters")));
    return;
  }
  if (std::optional<Problem> problem = CheckUpload(exchange->head)) {
    respond(ProblemResponse(*problem));
    return;
  }
  const auto opened =
      [exchange, respond = std::move(respond)](Answer<std::shared_ptr<Upload>> answer) mutable {
        if (!answer.ok()) {
          respond(ProblemResponse(FromRefusal(answer.refusal())));
          return;
        }
        std::make_shared<UploadReceiver>(exchange, std::move(answer.value()), std::move(respond))
            ->Pull();
      };
  exchange->api->service.OpenUpload(exchange->who, OwnerOf(*exchange), exchange->Value("path"),
                                    exchange->head.content_length,
                                    Reply<std::shared_ptr<Upload>>(opened, exchange->asker));
}

void DeleteFile(const std::shared_ptr<Exchange>& exchange, Respond respond) {
  exchange->api->service.RemoveFile(exchange->who, OwnerOf(*exchange), exchange->Value("path"),
                                    Answering<Nothing>(exchange, std::move(respond), [](Nothing&) {
                                      Response response;
                                      response.status = 204;
                                      return response;
                                    }));
}

}  // namespace coffer::gateway
