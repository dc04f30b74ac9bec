// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/mcp_file_reader.h"

#include <utility>

#include "gateway/http/handlers.h"

namespace coffer::gateway {
namespace {

constexpr size_t kReadPieceBytes = 65536;

// Lives in the replies that it waits for.
struct Reading : std::enable_shared_from_this<Reading> {
  std::shared_ptr<const Api> api;
  std::shared_ptr<Download> file;
  Reply<std::string> reply;
  std::string bytes;
  std::shared_ptr<void> room;

  void Next() {
    if (bytes.size() >= file->file().size) {
      Finish();
      return;
    }
    file->Read(kReadPieceBytes,
               Reply<std::string>([self = shared_from_this()](
                                      Answer<std::string> piece) { self->Take(std::move(piece)); },
                                  reply.asker()));
  }

  void Take(Answer<std::string> piece) {
    if (!piece.ok()) {
      reply(piece.refusal());
    } else if (piece->empty()) {
      reply(Refusal{.kind = RefusalKind::kConflict,
                    .code = "file.conflict",
                    .message = "the file was changed while it was read"});
    } else {
      bytes += piece.value();
      Next();
    }
  }

  // Writing a large answer takes longer than the loop may be held up.
  void Finish() {
    const auto work = [self = shared_from_this()] {
      auto finish = self->reply.Prepare(std::move(self->bytes));
      self->api->loop.Post([self, finish = std::move(finish)] { finish(); });
    };
    if (!api->service.Offload(*reply.asker(), work)) {
      reply(QueueFull());
    }
  }
};

}  // namespace

void ReadWholeFile(const std::shared_ptr<const Api>& api, const Identity& who,
                   const FileOwner& owner, const std::string& path, uint64_t most,
                   Reply<std::string> reply) {
  const auto opened = [api, most, reply](Answer<std::shared_ptr<Download>> answer) {
    if (!answer.ok()) {
      reply(answer.refusal());
      return;
    }
    const uint64_t size = answer.value()->file().size;
    if (size > most) {
      reply(Refusal{
          .kind = RefusalKind::kTooLarge,
          .code = "file.too_large",
          .message = "the file is larger than " + std::to_string(most) + " bytes",
          .hint = "the HTTP API sends files of any size: GET /v1/sessions/{id}/files/{path}"});
      return;
    }
    Answer<std::shared_ptr<void>> room = api->service.Hold(*reply.asker(), size);
    if (!room.ok()) {
      reply(room.refusal());
      return;
    }
    auto reading = std::make_shared<Reading>();
    reading->api = api;
    reading->file = std::move(answer.value());
    reading->reply = reply;
    reading->room = std::move(room.value());
    reading->Next();
  };
  api->service.OpenDownload(who, owner, path,
                            Reply<std::shared_ptr<Download>>(opened, reply.asker()));
}

}  // namespace coffer::gateway
