// SPDX-License-Identifier: Apache-2.0
//
// The part of the service that is about sessions and their files.
#include <fcntl.h>

#include <algorithm>
#include <set>

#include "base/sys.h"
#include "daemon/service.h"
#include "daemon/views.h"
#include "daemon/visibility.h"
#include "daemon/workspace.h"
#include "store/session.h"

namespace coffer::daemon {
namespace {

using gateway::Refusal;
using gateway::RefusalKind;

// The open session whose files are asked for.
gateway::Answer<store::Session> FindFiles(store::Store& store, const gateway::Identity& who,
                                          const gateway::FileOwner& owner) {
  if (owner.kind != gateway::FileOwner::Kind::kSession) {
    return Refusal{
        RefusalKind::kNotFound, "file.unknown", "this call exported no files", "", {}, "", {}};
  }
  gateway::Answer<store::Session> session = FindVisibleSession(store, who, owner.id);
  if (session.ok() && session->ended_at) {
    return Refusal{
        RefusalKind::kConflict, "session.ended", "the session has ended", "", {}, "", {}};
  }
  return session;
}

class WorkspaceUpload : public gateway::Upload {
 public:
  WorkspaceUpload(ServiceContext& context, Workspace workspace, Workspace::Writing writing,
                  std::string path, uint64_t room)
      : context_(context),
        state_(std::make_shared<State>(
            State{std::move(workspace), std::move(writing), std::move(path), room, 0})) {}
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
        [state = state_, bytes = std::move(bytes)]() -> gateway::Answer<gateway::Nothing> {
          if (bytes.size() > state->room - state->written) {
            return Refusal{RefusalKind::kTooLarge,
                           "file.quota",
                           "the session's files are too large",
                           "remove some",
                           {},
                           "",
                           {}};
          }
          if (Status wrote = sys::WriteAll(state->writing.file.get(), bytes); !wrote.ok()) {
            return RefusalOf(wrote.error());
          }
          state->written += bytes.size();
          return gateway::Nothing{};
        });
  }

  void Finish(gateway::Reply<gateway::FileView> reply) override {
    finishing_ = true;
    Answer<gateway::FileView>(
        context_, std::move(reply), [state = state_]() -> gateway::Answer<gateway::FileView> {
          if (Status done = state->workspace.Commit(state->writing); !done.ok()) {
            state->workspace.Discard(state->writing);
            return RefusalOf(done.error());
          }
          gateway::FileView view;
          view.path = state->path;
          view.size = state->written;
          view.modified_at = WallTime();
          return view;
        });
  }

 private:
  struct State {
    Workspace workspace;
    Workspace::Writing writing;
    std::string path;
    uint64_t room;
    uint64_t written;
  };
  ServiceContext& context_;
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
    // What was added since the size was told is not part of it.
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

void DaemonService::CreateSession(const gateway::Identity& who, gateway::SessionRequest request,
                                  gateway::Reply<gateway::SessionView> reply) {
  Answer<gateway::SessionView>(
      context_, std::move(reply),
      [this, who, request = std::move(request)]() -> gateway::Answer<gateway::SessionView> {
        Result<store::TenantId> tenant = store::TenantId::Parse(who.tenant);
        if (!tenant.ok()) {
          return RefusalOf(tenant.error());
        }
        store::SessionRequest asked;
        asked.agent = who.agent;
        if (request.lifetime) {
          asked.lifetime = std::min<Nanos>(*request.lifetime, options_.longest_session);
        }
        asked.label = request.label;
        // What the operator allows a session, or less.
        asked.budget = context_.live_config.current()->RulesOf(who.tenant).session_budget;
        if (const uint64_t calls = request.max_calls.value_or(0);
            calls != 0 && (asked.budget.calls == 0 || calls < asked.budget.calls)) {
          asked.budget.calls = calls;
        }
        Result<store::Session> session = store::CreateSession(context_.store(), *tenant, asked);
        if (!session.ok()) {
          return RefusalOf(session.error());
        }
        if (Status made = Workspace(context_.sessions, session->workspace).Make(); !made.ok()) {
          if (const Result<store::EndedSession> ended =
                  store::EndSession(context_.store(), *tenant, session->id, "no workspace");
              ended.ok()) {
            AfterEnd(*ended, "no workspace");
          }
          return RefusalOf(made.error());
        }
        return ViewOf(*session);
      });
}

void DaemonService::ListSessions(const gateway::Identity& who, gateway::PageRequest page,
                                 gateway::Reply<gateway::Page<gateway::SessionView>> reply) {
  using Views = gateway::Page<gateway::SessionView>;
  Answer<Views>(context_, std::move(reply), [this, who, page]() -> gateway::Answer<Views> {
    Result<store::TenantId> tenant = store::TenantId::Parse(who.tenant);
    if (!tenant.ok()) {
      return RefusalOf(tenant.error());
    }
    const store::PageRequest asked{page.limit, page.cursor};
    constexpr auto kAll = store::SessionFilter::kAll;
    Result<store::Page<store::Session>> sessions =
        who.all_tenants ? store::ListSessions(context_.store(), store::AllTenants{}, kAll, asked)
                        : store::ListSessions(context_.store(), *tenant, kAll, asked);
    if (!sessions.ok()) {
      return RefusalOf(sessions.error());
    }
    Views views;
    for (const store::Session& session : sessions->rows) {
      if (MaySee(who, session.tenant.name(), session.agent)) {
        views.items.push_back(ViewOf(session));
      }
    }
    views.next = sessions->next;
    return views;
  });
}

void DaemonService::GetSession(const gateway::Identity& who, const std::string& session_id,
                               gateway::Reply<gateway::SessionView> reply) {
  Answer<gateway::SessionView>(context_, std::move(reply),
                               [this, who, session_id]() -> gateway::Answer<gateway::SessionView> {
                                 gateway::Answer<store::Session> session =
                                     FindVisibleSession(context_.store(), who, session_id);
                                 if (!session.ok()) {
                                   return session.refusal();
                                 }
                                 return ViewOf(session.value());
                               });
}

void DaemonService::EndSession(const gateway::Identity& who, const std::string& session_id,
                               gateway::Reply<gateway::SessionView> reply) {
  Answer<gateway::SessionView>(context_, std::move(reply),
                               [this, who, session_id]() -> gateway::Answer<gateway::SessionView> {
                                 gateway::Answer<store::Session> session =
                                     FindVisibleSession(context_.store(), who, session_id);
                                 if (!session.ok()) {
                                   return session.refusal();
                                 }
                                 Result<store::EndedSession> ended =
                                     store::EndSession(context_.store(), session->tenant,
                                                       session_id, "ended by " + who.agent);
                                 if (!ended.ok()) {
                                   return RefusalOf(ended.error());
                                 }
                                 AfterEnd(*ended, who.user.empty() ? who.agent : who.user);
                                 return ViewOf(ended->session);
                               });
}

void DaemonService::ListFiles(const gateway::Identity& who, const gateway::FileOwner& owner,
                              gateway::PageRequest page,
                              gateway::Reply<gateway::Page<gateway::FileView>> reply) {
  using Views = gateway::Page<gateway::FileView>;
  Answer<Views>(context_, std::move(reply), [this, who, owner, page]() -> gateway::Answer<Views> {
    gateway::Answer<store::Session> session = FindFiles(context_.store(), who, owner);
    if (!session.ok()) {
      return session.refusal();
    }
    Result<std::vector<gateway::FileView>> files =
        Workspace(context_.sessions, session->workspace).List(page.limit);
    if (!files.ok()) {
      return RefusalOf(files.error());
    }
    Views views;
    views.items = std::move(files).value();
    return views;
  });
}

void DaemonService::OpenUpload(const gateway::Identity& who, const gateway::FileOwner& owner,
                               const std::string& path, std::optional<uint64_t> size,
                               gateway::Reply<std::shared_ptr<gateway::Upload>> reply) {
  using Made = std::shared_ptr<gateway::Upload>;
  Answer<Made>(
      context_, std::move(reply), [this, who, owner, path, size]() -> gateway::Answer<Made> {
        gateway::Answer<store::Session> session = FindFiles(context_.store(), who, owner);
        if (!session.ok()) {
          return session.refusal();
        }
        Workspace workspace(context_.sessions, session->workspace);
        Result<uint64_t> used = workspace.Used();
        if (!used.ok()) {
          return RefusalOf(used.error());
        }
        const uint64_t room = *used >= options_.session_bytes ? 0 : options_.session_bytes - *used;
        if (size.value_or(0) > room) {
          return Refusal{RefusalKind::kTooLarge,
                         "file.quota",
                         "the session's files are too large",
                         "remove some",
                         {},
                         "",
                         {}};
        }
        Result<Workspace::Writing> writing = workspace.OpenToWrite(path);
        if (!writing.ok()) {
          return RefusalOf(writing.error());
        }
        return Made(std::make_shared<WorkspaceUpload>(context_, std::move(workspace),
                                                      std::move(writing).value(), path, room));
      });
}

void DaemonService::OpenDownload(const gateway::Identity& who, const gateway::FileOwner& owner,
                                 const std::string& path,
                                 gateway::Reply<std::shared_ptr<gateway::Download>> reply) {
  using Made = std::shared_ptr<gateway::Download>;
  Answer<Made>(context_, std::move(reply), [this, who, owner, path]() -> gateway::Answer<Made> {
    gateway::Answer<store::Session> session = FindFiles(context_.store(), who, owner);
    if (!session.ok()) {
      return session.refusal();
    }
    gateway::FileView view;
    Result<UniqueFd> file =
        Workspace(context_.sessions, session->workspace).OpenToRead(path, &view);
    if (!file.ok()) {
      return RefusalOf(file.error());
    }
    return Made(std::make_shared<WorkspaceDownload>(context_, std::move(file).value(), view));
  });
}

void DaemonService::RemoveFile(const gateway::Identity& who, const gateway::FileOwner& owner,
                               const std::string& path, gateway::Reply<gateway::Nothing> reply) {
  Answer<gateway::Nothing>(
      context_, std::move(reply), [this, who, owner, path]() -> gateway::Answer<gateway::Nothing> {
        gateway::Answer<store::Session> session = FindFiles(context_.store(), who, owner);
        if (!session.ok()) {
          return session.refusal();
        }
        if (Status gone = Workspace(context_.sessions, session->workspace).RemoveFile(path);
            !gone.ok()) {
          return RefusalOf(gone.error());
        }
        return gateway::Nothing{};
      });
}

void DaemonService::EndExpired() {
  Result<std::vector<store::EndedSession>> ended =
      store::EndExpiredSessions(context_.store(), store::AllTenants{});
  if (!ended.ok()) {
    return;
  }
  for (const store::EndedSession& session : *ended) {
    AfterEnd(session, "lifetime");
  }
}

// On a worker.
void DaemonService::AfterEnd(const store::EndedSession& ended, const std::string& by) {
  context_.loop.Post([this, id = ended.session.id] {
    KillWhere([&](const call::ReadyCall& call) { return call.request.session_id == id; });
  });
  (void)Workspace(context_.sessions, ended.session.workspace).Remove();  // else by the timer
  if (ended.just_now) {
    (void)context_.recorder().Happened(ended.session.tenant.name(), "session.ended",
                                       {{"by", by}, {"session", ended.session.id}});
  }
}

void DaemonService::SweepWorkspaces() {
  // First the directories, then the sessions: one that is made in between has its row before its directory.
  const Result<UniqueFd> dir =
      sys::OpenNoLinks(AT_FDCWD, context_.sessions, O_RDONLY | O_DIRECTORY);
  if (!dir.ok()) {
    return;
  }
  const Result<std::vector<sys::DirEntry>> entries = sys::ListDir(dir->get());
  if (!entries.ok() || entries->empty()) {
    return;
  }
  std::set<std::string> open;
  store::PageRequest page{1000, ""};
  do {
    const Result<store::Page<store::Session>> sessions = store::ListSessions(
        context_.store(), store::AllTenants{}, store::SessionFilter::kOpen, page);
    if (!sessions.ok()) {
      return;  // nothing is removed on a guess
    }
    for (const store::Session& session : sessions->rows) {
      open.insert(session.workspace);
    }
    page.cursor = sessions->next;
  } while (!page.cursor.empty());
  for (const sys::DirEntry& entry : *entries) {
    if (!open.contains(entry.name)) {
      (void)Workspace(context_.sessions, entry.name).Remove();
    }
  }
}

}  // namespace coffer::daemon
