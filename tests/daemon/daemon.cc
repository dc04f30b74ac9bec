// SPDX-License-Identifier: Apache-2.0
#include "tests/daemon/daemon.h"

#include <dirent.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "limits/cgroup/host.h"
#include "tests/gateway/harness.h"

namespace coffer::test {

std::string HttpAnswer::Field(std::string_view name) const {
  gateway::Reply1 reply;
  reply.head = head;
  return reply.Field(name);
}

std::string HttpAnswer::DeniedBy() const {
  return status == 200 && Outcome() == "denied" && body["error"].is_object()
             ? body["error"].value("class", "")
             : "";
}

std::string HttpAnswer::At(const std::string& name) const {
  return body.is_object() && body.contains(name) && body[name].is_string()
             ? body[name].get<std::string>()
             : std::string();
}

std::map<std::string, std::string> StatusOf(pid_t pid) {
  std::map<std::string, std::string> fields;
  for (const std::string& line :
       Lines(ReadFile("/proc/" + std::to_string(pid) + "/status").value_or(""))) {
    const size_t colon = line.find(":\t");
    if (colon != std::string::npos) {
      fields[line.substr(0, colon)] = line.substr(colon + 2);
    }
  }
  return fields;
}

bool IsAlive(pid_t pid) {
  const std::string state = StatusOf(pid)["State"];
  return !state.empty() && state[0] != 'Z' && state[0] != 'X';
}

std::vector<pid_t> ChildrenOf(pid_t pid) {
  std::vector<pid_t> children;
  DIR* const proc = ::opendir("/proc");
  while (const dirent* entry = ::readdir(proc)) {
    const pid_t one = std::atoi(entry->d_name);
    if (one > 0 && StatusOf(one)["PPid"] == std::to_string(pid)) {
      children.push_back(one);
    }
  }
  ::closedir(proc);
  return children;
}

Json Bash(const std::string& command, const std::string& session) {
  Json body = {{"tool", "bash"}, {"args", {{"command", command}}}};
  if (!session.empty()) {
    body["session_id"] = session;
  }
  return body;
}

// On a slow machine every sleep costs so much of the call's CPU time that many would spend it.
std::string WaitForGo() {
  return "echo >> began; n=0; until [ -e go ]; do [ $((n += 1)) -lt 20 ] && sleep 0.1 || sleep 1; "
         "done; : " +
         NewToken();
}

namespace {

// Whether no child is left.
bool ReapAll() {
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {
  }
  return ChildrenOf(::getpid()).empty();
}

// As an ordinary user in a user namespace in which the uid stays what it is; the program that is started has no right in it.
void BindInMountsOfItsOwn(const std::string& file, const std::string& place) {
  const uid_t uid = ::geteuid();
  const gid_t gid = ::getegid();
  const int user = uid == 0 ? 0 : CLONE_NEWUSER;
  if (::unshare(CLONE_NEWNS | user) != 0) {
    ::_exit(96);
  }
  if (user != 0) {
    std::ofstream("/proc/self/setgroups") << "deny";
    std::ofstream("/proc/self/uid_map") << uid << " " << uid << " 1";
    std::ofstream("/proc/self/gid_map") << gid << " " << gid << " 1";
  }
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount(file.c_str(), place.c_str(), nullptr, MS_BIND, nullptr) != 0) {
    ::_exit(95);
  }
}

// A killed monitor leaves the cgroup of its gateway to the next start, and tests that look at the host come first.
void RemoveGatewayWall(pid_t monitor) {
  const Result<limits::CgroupHost> host = limits::ProbeCgroups("", limits::ProbeDepth::kCall);
  if (!host.ok()) {
    return;
  }
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator(host->at(limits::Controller::kMemory).dir, error)) {
    const std::string path = entry.path();
    if (entry.path().filename().string().starts_with("coffer-" + std::to_string(monitor) + "-")) {
      EXPECT_TRUE(WaitUntil([&] { return ::rmdir(path.c_str()) == 0 || errno == ENOENT; })) << path;
    }
  }
}

}  // namespace

// What loses its parent becomes the test's, so that it can be waited for wherever the test runs.
Daemon::Daemon()
    : state_(dir_ / "state"), tools_(dir_.MakeDir("tools")), config_(dir_.MakeDir("config")) {
  EXPECT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
}

// A daemon whose system calls are watched, by the thread that started it.
struct Daemon::Tracing {
  Tracing(const Strings& words, KillRule given, const std::string& out_file,
          const std::string& err_file)
      : rule(std::move(given)), out(out_file), err(err_file), thread([this, words] {
          result = RunTraced(
              words, out, err,
              [this](const TracedProcess& caller, const std::map<pid_t, TracedProcess>& family) {
                if (caller.depth == 0) {
                  root = caller.pid;
                }
                return rule(caller, family);
              },
              Seconds(120));
          done = true;
        }) {}
  ~Tracing() {
    if (!done && root > 0) {
      ::kill(root, SIGKILL);
    }
    thread.join();
  }
  const KillRule rule;
  const std::string out, err;
  std::atomic<pid_t> root = 0;
  std::atomic<bool> done = false;
  Traced result;
  std::thread thread;
};

Daemon::~Daemon() {
  const pid_t monitor = process_ != nullptr || tracing_ != nullptr ? this->monitor() : 0;
  tracing_.reset();
  if (process_ != nullptr) {
    if (!process_->ended()) {
      process_->Signal(SIGKILL);
    }
    process_->Wait(Seconds(5));
  }
  EXPECT_TRUE(WaitUntil([] { return ReapAll(); }, Seconds(5)))
      << "processes of the daemon are left";
  if (monitor > 0) {
    RemoveGatewayWall(monitor);
  }
  EXPECT_FALSE(Contains(ReadFile("/proc/self/mountinfo").value_or(""), " " + state_ + "/"))
      << "the host sees a mount of the daemon's";
}

bool Daemon::Start(const std::vector<std::string>& more_flags) {
  Strings words = {"--tools", tools_};
  words.insert(words.end(), more_flags.begin(), more_flags.end());
  return StartWith(std::move(words));
}

bool Daemon::StartWithFile(const std::string& file, const std::string& place,
                           const std::vector<std::string>& more_flags) {
  Strings words = {"--tools", tools_};
  words.insert(words.end(), more_flags.begin(), more_flags.end());
  RunOptions options;
  options.in_child = [file, place] { BindInMountsOfItsOwn(file, place); };
  return StartWith(std::move(words), options);
}

bool Daemon::StartAsFirst() {
  RunOptions options;
  options.in_child = [] { (void)::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); };  // kept by exec
  return StartWith({"--tools", tools_}, options);
}

bool Daemon::StartWithoutTools() { return StartWith({}); }

bool Daemon::StartWith(std::vector<std::string> words, const RunOptions& options) {
  ::setenv("COFFER_CONFIG", config_.c_str(), 1);
  const Strings always = {CofferPath(), "serve",       "--state", state_,
                          "--listen",   "127.0.0.1:0", "--json"};
  words.insert(words.begin(), always.begin(), always.end());
  tracing_.reset();
  process_ = std::make_unique<Background>(words, options);
  if (!process_->WaitForOutput("}\n")) {
    ADD_FAILURE() << "the daemon does not start: " << process_->out() << process_->err();
    return false;
  }
  return TakeAnnouncement(process_->out());
}

bool Daemon::StartTraced(KillRule rule) {
  ::setenv("COFFER_CONFIG", config_.c_str(), 1);
  process_.reset();
  tracing_.reset();
  const std::string out = dir_ / "traced.out";
  (void)::unlink(out.c_str());
  tracing_ = std::make_unique<Tracing>(Strings{CofferPath(), "serve", "--state", state_, "--listen",
                                               "127.0.0.1:0", "--json", "--tools", tools_},
                                       std::move(rule), out, dir_ / "traced.err");
  if (!WaitUntil([&] { return tracing_->done || Contains(ReadFile(out).value_or(""), "}\n"); },
                 Seconds(30)) ||
      tracing_->done) {
    ADD_FAILURE() << "the daemon does not start: " << Said();
    return false;
  }
  return TakeAnnouncement(ReadFile(out).value_or(""));
}

bool Daemon::TakeAnnouncement(const std::string& text) {
  const Json said = Json::parse(text);
  const std::string listen = said.at("listen");
  port_ = static_cast<uint16_t>(std::atoi(listen.c_str() + listen.rfind(':') + 1));
  if (said.at("key").is_string()) {
    key_ = said.at("key");
  }
  // The gateway may be ready before the others have the names by which Find() tells the roles apart.
  const bool all = WaitUntil([&] {
    return Find(RoleOf::kWarden) > 0 && Find(RoleOf::kEgress) > 0 && Find(RoleOf::kProxy) > 0;
  });
  EXPECT_TRUE(all) << "not every role has its name: " << Said();
  return all;
}

int Daemon::Stop() {
  if (tracing_ != nullptr) {
    ::kill(tracing_->root, SIGTERM);
    return Gone(Seconds(15)) ? tracing_->result.exit : -1;
  }
  process_->Signal(SIGTERM);
  return process_->Wait(Seconds(15)).exit;
}

bool Daemon::Gone(Seconds limit) {
  if (tracing_ != nullptr) {
    return WaitUntil([&] { return tracing_->done.load(); }, limit) &&
           WaitUntil([] { return ReapAll(); }, limit);
  }
  const bool gone = WaitUntil([&] { return process_->ended(); }, limit);
  // What it left is ours now. A process that nobody has waited for keeps its number, and its cgroups count as in use.
  return gone && WaitUntil([] { return ReapAll(); }, limit);
}

pid_t Daemon::monitor() const {
  return tracing_ != nullptr ? tracing_->root.load() : process_->pid();
}

std::string Daemon::Said() const {
  if (tracing_ != nullptr) {
    return ReadFile(tracing_->err).value_or("");
  }
  (void)process_->WaitForOutput("nothing of the kind", Seconds(0));  // reads what came since
  return process_->err();
}

pid_t Daemon::Find(RoleOf role) const {
  if (role == RoleOf::kMonitor) {
    return monitor();
  }
  for (const pid_t child : ChildrenOf(monitor())) {
    std::map<std::string, std::string> status = StatusOf(child);
    const RoleOf is = status["Name"] == "coffer"          ? RoleOf::kWarden
                      : status["Name"] == "coffer-egress" ? RoleOf::kEgress
                      : status["Name"] == "coffer-proxy"  ? RoleOf::kProxy
                                                          : RoleOf::kGateway;
    if (is == role) {
      return child;
    }
  }
  return 0;
}

std::vector<pid_t> Daemon::Runners() const {
  const pid_t warden = Find(RoleOf::kWarden);
  return warden == 0 ? std::vector<pid_t>() : ChildrenOf(warden);
}

std::string Daemon::Workspace(const std::string& session) const {
  const pid_t gateway = ::geteuid() == 0 ? Find(RoleOf::kGateway) : 0;
  return (gateway != 0 ? "/proc/" + std::to_string(gateway) + "/root" : "") +
         WorkspacePath(session);
}

std::string Daemon::WorkspacePath(const std::string& session) const {
  return state_ + "/sessions/session-" + session;
}

HttpAnswer Daemon::Ask(const std::string& method, const std::string& path, const std::string& key,
                       const std::string& body, const std::string& fields) const {
  gateway::RawClient client = gateway::RawClient::Tcp(port_);
  HttpAnswer answer;
  const std::string type =
      body.starts_with("{") ? "Content-Type: application/json\r\n" : std::string();
  if (!client.connected() ||
      !client.Send(
          gateway::Request(method, path, key, type + "Connection: close\r\n" + fields, body))) {
    return answer;
  }
  gateway::Reply1 reply = client.Receive();
  if (reply.ended) {
    return answer;  // part of an answer says nothing
  }
  answer.status = reply.status;
  answer.head = reply.head;
  answer.text = reply.body;
  answer.body = Json::parse(reply.body, nullptr, false);
  if (answer.body.is_discarded()) {
    answer.body = nullptr;
  }
  return answer;
}

HttpAnswer Daemon::Call(const std::string& key, const Json& body, const std::string& fields) const {
  return Ask("POST", "/v1/calls", key, body.dump(), fields);
}

std::string Daemon::NewSession(const std::string& key, const Json& how) const {
  const HttpAnswer made = Ask("POST", "/v1/sessions", key, how.dump());
  EXPECT_EQ(made.status, 201) << made.text;
  return made.At("session_id");
}

Json Daemon::NewKey(const std::string& tenant, const std::string& role,
                    const std::string& agent) const {
  const RunResult made = RunProgram({CofferPath(), "key", "new", "--tenant", tenant, "--role", role,
                                     "--agent", agent, "--state", state_, "--json"});
  EXPECT_EQ(made.exit, 0) << made.Describe();
  return Json::parse(made.out, nullptr, false);
}

}  // namespace coffer::test
