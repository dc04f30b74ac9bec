// SPDX-License-Identifier: Apache-2.0
//
// The part of the service that is about files: of sessions, and those that calls exported.
#include <errno.h>

#include <algorithm>

#include "base/quantity.h"
#include "base/sys.h"
#include "daemon/call_files.h"
#include "daemon/service.h"
#include "daemon/standing.h"
#include "daemon/views.h"
#include "daemon/visibility.h"
#include "daemon/workspace.h"
#include "limits/volume.h"
#include "store/quota.h"
#include "store/session.h"

namespace coffer::daemon {
namespace {

using gateway::Refusal;
using gateway::RefusalKind;

Refusal SessionEnded() {
  return {RefusalKind::kConflict, "session.ended", "the session has ended", "", {}, "", {}, {}};
}

// A session can end at any moment, and its files go with it. What failed then failed for that reason.
Refusal RefusalOfFiles(store::Store& store, const store::Session& session, const Error& error) {
  const Result<std::optional<store::Session>> now =
      store::FindSession(store, session.tenant, session.id);
  const bool ended = now.ok() && (!*now || (*now)->ended_at);
  return ended ? SessionEnded() : RefusalOf(error);
}

// The open session whose files are asked for, with its files in reach.
gateway::Answer<store::Session> FindFiles(store::Store& store, SessionVolumes& volumes,
                                          const gateway::Identity& who,
                                          const gateway::FileOwner& owner) {
  if (owner.kind != gateway::FileOwner::Kind::kSession) {
    return UnknownSession();  // no route leads here: what a call exported is read only
  }
  gateway::Answer<store::Session> session = FindVisibleSession(store, who, owner.id);
  if (session.ok() && session->ended_at) {
    return SessionEnded();
  }
  if (session.ok()) {
    if (const Status mounted = volumes.Ensure(session.value()); !mounted.ok()) {
      return RefusalOfFiles(store, session.value(), mounted.error());
    }
  }
  return session;
}

// What failed before may go another way now. If it cannot be noted, an identical call waits a little; that is all.
void NoteChange(store::Store& store, const store::Session& session) {
  (void)store::NoteProgress(store, session.tenant, session.agent);
}

std::optional<uint64_t> CursorOf(const std::string& text) {
  const Result<uint64_t> number = ParseCount(text);
  return number.ok() ? std::optional(*number) : std::nullopt;
}

gateway::Answer<gateway::Page<gateway::FileView>> PageOf(
    gateway::Answer<std::vector<gateway::FileView>> files, uint64_t skip, size_t limit) {
  if (!files.ok()) {
    return files.refusal();
  }
  gateway::Page<gateway::FileView> page;
  for (size_t i = skip; i < files->size() && page.items.size() < limit; ++i) {
    page.items.push_back(std::move(files.value()[i]));
  }
  const uint64_t next = skip + page.items.size();
  page.next = next < files->size() ? std::to_string(next) : "";
  return page;
}

Refusal TooLarge() {
  return {RefusalKind::kTooLarge,
          "file.quota",
          "the session's files are too large or too many",
          "remove some",
          {},
          "",
          {},
          {}};
}

Result<Workspace::Volume> LookAtRoom(const Workspace& workspace, const store::Session& session) {
  if (session.enforced) {
    return workspace.LookAtVolume();
  }
  TRY_ASSIGN(const SessionSpace::Room used, workspace.Used());
  return Workspace::Volume{{session.bytes, limits::VolumeFiles(session.bytes)}, used};
}

class WorkspaceUpload : public gateway::Upload {
 public:
  // `part`: what it takes of the session's room.
  WorkspaceUpload(ServiceContext& context, gateway::Identity who, store::Session session,
                  Workspace workspace, Workspace::Writing writing, std::string path,
                  std::unique_ptr<SessionSpace::Part> part)
      : context_(context),
        who_(std::move(who)),
        state_(std::make_shared<State>(State{std::move(session), std::move(workspace),
                                             std::move(writing), std::move(path), std::move(part),
                                             0})) {}
  ~WorkspaceUpload() override {
    // Once Finish was asked for, it decides: it may still be on its way.
    if (!finishing_) {
      context_.workers().SubmitAlways(
          [state = state_] { state->workspace.Discard(state->writing); });
    }
  }

  void Write(std::string bytes, gateway::Reply<gateway::Nothing> reply) override {
    Answer<gateway::Nothing>(
        context_, std::move(reply),
        [&context = context_, state = state_,
         bytes = std::move(bytes)]() -> gateway::Answer<gateway::Nothing> {
          if (!state->part->Grow(bytes.size())) {
            return TooLarge();
          }
          if (Status wrote = sys::WriteAll(state->writing.file.get(), bytes); !wrote.ok()) {
            const int why = wrote.error().sys_errno;
            return why == ENOSPC || why == EDQUOT
                       ? TooLarge()
                       : RefusalOfFiles(context.store(), state->session, wrote.error());
          }
          state->written += bytes.size();
          return gateway::Nothing{};
        });
  }

  void Finish(gateway::Reply<gateway::FileView> reply) override {
    finishing_ = true;
    Answer<gateway::FileView>(
        context_, std::move(reply),
        [&context = context_, who = who_, state = state_]() -> gateway::Answer<gateway::FileView> {
          if (std::optional<Refusal> no = FindObstacle(context.store(), who)) {
            state->workspace.Discard(state->writing);
            return std::move(*no);
          }
          if (Status done = state->workspace.Commit(state->writing); !done.ok()) {
            state->workspace.Discard(state->writing);
            return RefusalOfFiles(context.store(), state->session, done.error());
          }
          state->part->Keep();
          NoteChange(context.store(), state->session);
          gateway::FileView view;
          view.path = state->path;
          view.size = state->written;
          view.modified_at = WallTime();
          return view;
        });
  }

 private:
  struct State {
    store::Session session;
    Workspace workspace;
    Workspace::Writing writing;
    std::string path;
    std::unique_ptr<SessionSpace::Part> part;
    uint64_t written;
  };
  ServiceContext& context_;
  const gateway::Identity who_;
  std::shared_ptr<State> state_;
  bool finishing_ = false;
};

class WorkspaceDownload : public gateway::Download {
 public:
  WorkspaceDownload(ServiceContext& context, UniqueFd file, gateway::FileView view)
      : context_(context),
        file_(std::make_shared<UniqueFd>(std::move(file))),
        view_(std::move(view)) {}
  const gateway::FileView& file() const override { return view_; }
  void Read(size_t max, gateway::Reply<std::string> reply) override {
    // Bytes appended after the size was sent are not part of the answer.
    const size_t most = static_cast<size_t>(std::min<uint64_t>(max, view_.size - given_));
    given_ += most;
    Answer<std::string>(
        context_, std::move(reply), [file = file_, most]() -> gateway::Answer<std::string> {
          std::string bytes(most, '\0');
          size_t at = 0;
          while (at < bytes.size()) {
            const ssize_t got = ::read(file->get(), bytes.data() + at, bytes.size() - at);
            if (got <= 0) {
              break;
            }
            at += static_cast<size_t>(got);
          }
          bytes.resize(at);
          return bytes;
        });
  }

 private:
  ServiceContext& context_;
  std::shared_ptr<UniqueFd> file_;
  gateway::FileView view_;
  uint64_t given_ = 0;
};

}  // namespace

void DaemonService::ListFiles(const gateway::Identity& who, const gateway::FileOwner& owner,
                              const std::string& prefix, gateway::PageRequest page,
                              gateway::Reply<gateway::Page<gateway::FileView>> reply) {
  using Views = gateway::Page<gateway::FileView>;
  AnswerIfStanding<Views>(
      context_, who, std::move(reply),
      [this, who, owner, prefix, page]() -> gateway::Answer<Views> {
        // The cursor is how many came before.
        const std::optional<uint64_t> skip = page.cursor.empty() ? 0 : CursorOf(page.cursor);
        if (!skip) {
          return Refusal{RefusalKind::kInvalid,
                         "query.invalid",
                         "cursor is not one that was given out",
                         "",
                         {},
                         "",
                         {},
                         {}};
        }
        if (owner.kind == gateway::FileOwner::Kind::kCall) {
          return PageOf(ListExported(context_.recorder(), who, owner.id, prefix), *skip,
                        page.limit);
        }
        gateway::Answer<store::Session> session = FindFiles(context_.store(), volumes_, who, owner);
        if (!session.ok()) {
          return session.refusal();
        }
        Result<Workspace::Listing> listing =
            Workspace(context_.sessions, session->workspace).List(prefix, *skip, page.limit);
        if (!listing.ok()) {
          return RefusalOfFiles(context_.store(), session.value(), listing.error());
        }
        Views views;
        views.items = std::move(listing->files);
        views.next = listing->more ? std::to_string(*skip + views.items.size()) : "";
        return views;
      });
}

void DaemonService::OpenUpload(const gateway::Identity& who, const gateway::FileOwner& owner,
                               const std::string& path, std::optional<uint64_t> size,
                               gateway::Reply<std::shared_ptr<gateway::Upload>> reply) {
  using Made = std::shared_ptr<gateway::Upload>;
  AnswerIfStanding<Made>(
      context_, who, std::move(reply), [this, who, owner, path, size]() -> gateway::Answer<Made> {
        gateway::Answer<store::Session> session = FindFiles(context_.store(), volumes_, who, owner);
        if (!session.ok()) {
          return session.refusal();
        }
        if (const Status disk = context_.reserve.CheckRoom(); !disk.ok()) {
          return Full(disk.error());
        }
        Workspace workspace(context_.sessions, session->workspace);
        // Also where the kernel bounds the session: uploads that cannot all fit are told before they send.
        Result<Workspace::Volume> room = LookAtRoom(workspace, session.value());
        if (!room.ok()) {
          return RefusalOfFiles(context_.store(), session.value(), room.error());
        }
        std::unique_ptr<SessionSpace::Part> part =
            context_.space.Begin(session->workspace, room->most, room->used, size.value_or(0));
        if (part == nullptr) {
          return TooLarge();
        }
        Result<Workspace::Writing> writing = workspace.OpenToWrite(path);
        if (!writing.ok()) {
          const int why = writing.error().sys_errno;
          return why == ENOSPC || why == EDQUOT
                     ? TooLarge()
                     : RefusalOfFiles(context_.store(), session.value(), writing.error());
        }
        return Made(
            std::make_shared<WorkspaceUpload>(context_, who, session.value(), std::move(workspace),
                                              std::move(writing).value(), path, std::move(part)));
      });
}

void DaemonService::OpenDownload(const gateway::Identity& who, const gateway::FileOwner& owner,
                                 const std::string& path,
                                 gateway::Reply<std::shared_ptr<gateway::Download>> reply) {
  using Made = std::shared_ptr<gateway::Download>;
  AnswerIfStanding<Made>(
      context_, who, std::move(reply), [this, who, owner, path]() -> gateway::Answer<Made> {
        if (owner.kind == gateway::FileOwner::Kind::kCall) {
          return OpenExported(context_, who, owner.id, path);
        }
        gateway::Answer<store::Session> session = FindFiles(context_.store(), volumes_, who, owner);
        if (!session.ok()) {
          return session.refusal();
        }
        gateway::FileView view;
        Result<UniqueFd> file =
            Workspace(context_.sessions, session->workspace).OpenToRead(path, &view);
        if (!file.ok()) {
          return RefusalOfFiles(context_.store(), session.value(), file.error());
        }
        return Made(std::make_shared<WorkspaceDownload>(context_, std::move(file).value(), view));
      });
}

void DaemonService::RemoveFile(const gateway::Identity& who, const gateway::FileOwner& owner,
                               const std::string& path, gateway::Reply<gateway::Nothing> reply) {
  AnswerIfStanding<gateway::Nothing>(
      context_, who, std::move(reply),
      [this, who, owner, path]() -> gateway::Answer<gateway::Nothing> {
        gateway::Answer<store::Session> session = FindFiles(context_.store(), volumes_, who, owner);
        if (!session.ok()) {
          return session.refusal();
        }
        if (Status gone = Workspace(context_.sessions, session->workspace).RemoveFile(path);
            !gone.ok()) {
          return RefusalOfFiles(context_.store(), session.value(), gone.error());
        }
        NoteChange(context_.store(), session.value());
        return gateway::Nothing{};
      });
}

}  // namespace coffer::daemon
