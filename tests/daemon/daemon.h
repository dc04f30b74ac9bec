// SPDX-License-Identifier: Apache-2.0
//
// The real daemon on a free port with a state directory of its own, and a client for it.
//
// Whatever a test does, the daemon is ended and waited for; its roles die with it. Nothing here judges.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/run.h"
#include "tests/support/tracer.h"

namespace coffer::test {

struct HttpAnswer {
  int status = 0;  // 0: the connection ended before the whole answer
  std::string head;
  std::string text;
  Json body;  // null if it is not JSON

  std::string Field(std::string_view name) const;
  std::string At(const std::string& name) const;  // a string member of the body, or ""
  std::string Outcome() const { return At("outcome"); }
  // The error class of a call that was denied; "" if it was not, or if this is no call's answer.
  std::string DeniedBy() const;
};

// kProxy dials for calls, kEgress delivers events.
enum class RoleOf { kMonitor, kGateway, kEgress, kWarden, kProxy };

class Daemon {
 public:
  Daemon();
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  // False, with a failure noted, if it does not say that it listens. A daemon that was ended can be started again.
  bool Start(const std::vector<std::string>& more_flags = {});
  // In mounts of its own: `file` lies over `place` there, and what is written to `file` later is seen.
  bool StartWithFile(const std::string& file, const std::string& place,
                     const std::vector<std::string>& more_flags);
  // As the first process of a container: it is given what loses its parent.
  bool StartAsFirst();
  // The same without --tools: manifests lie in the operator's directory, if anywhere.
  bool StartWithoutTools();
  // Under a tracer that kills by `rule`; nothing else differs.
  bool StartTraced(KillRule rule);
  // SIGTERM, and the exit status.
  int Stop();
  // After somebody else ended it: whether it is gone within `limit`.
  bool Gone(Seconds limit = Seconds(10));

  pid_t monitor() const;
  // 0 if there is none.
  pid_t Find(RoleOf role) const;
  // Children of the warden: one for each call that runs.
  std::vector<pid_t> Runners() const;

  uint16_t port() const { return port_; }
  const std::string& state() const { return state_; }
  const std::string& tools() const { return tools_; }
  const std::string& config() const { return config_; }  // the operator's directory
  // The files of a session: as the daemon sees them (as root they are mounted in its namespace alone), and by which path.
  std::string Workspace(const std::string& session) const;
  std::string WorkspacePath(const std::string& session) const;
  const std::string& key() const { return key_; }  // the first operator's
  std::string Said() const;

  // Usable from several threads at once.
  HttpAnswer Ask(const std::string& method, const std::string& path, const std::string& key,
                 const std::string& body = {}, const std::string& fields = {}) const;
  HttpAnswer Call(const std::string& key, const Json& body, const std::string& fields = {}) const;
  std::string NewSession(const std::string& key, const Json& how = Json::object()) const;
  // With `coffer key new`, from outside the daemon; {"id", "key", ...}.
  Json NewKey(const std::string& tenant, const std::string& role, const std::string& agent) const;

 private:
  struct Tracing;
  bool StartWith(std::vector<std::string> words, const RunOptions& options = {});
  bool TakeAnnouncement(const std::string& said);

  TempDir dir_;
  std::string state_, tools_, config_, key_;
  uint16_t port_ = 0;
  std::unique_ptr<Background> process_;  // or:
  std::unique_ptr<Tracing> tracing_;
};

inline constexpr const char* kAsync = "Prefer: respond-async\r\n";
inline constexpr const char* kNoSuchId = "00000000-0000-7000-8000-000000000000";

// {"tool": "bash", "args": {"command": COMMAND}}, in a session if there is one.
Json Bash(const std::string& command, const std::string& session = {});
// A command that says (in the workspace's file `began`) that it runs, and ends when `go` is there. No two are
// the same, because what has just failed may not be tried again at once.
std::string WaitForGo();

std::vector<pid_t> ChildrenOf(pid_t pid);
bool IsAlive(pid_t pid);  // a zombie is not
std::map<std::string, std::string> StatusOf(pid_t pid);

}  // namespace coffer::test
