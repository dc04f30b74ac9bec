// SPDX-License-Identifier: Apache-2.0
#include "cli/server_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/exit_codes.h"
#include "base/print.h"
#include "base/sys.h"
#include "gateway/mcp/message.h"

namespace coffer::cli {
namespace {

constexpr size_t kMostPending = size_t{16} << 20;  // that the server has not read
constexpr size_t kMostSaid = size_t{1} << 20;      // of its stderr, shown
constexpr size_t kMostSaidLine = 4096;
constexpr std::chrono::milliseconds kByItself{2000}, kAsked{5000}, kLook{10};
// What a server wrote before it closed its stdin is still on its way through its supervisor.
constexpr std::chrono::milliseconds kLastWords{200};

[[noreturn]] void BecomeServer(const std::vector<std::string>& words, int in, int out, int err) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // coffer run ends its boundary then
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::dup2(in, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  std::vector<char*> argv = {const_cast<char*>("coffer")};
  for (const std::string& word : words) {
    argv.push_back(const_cast<char*>(word.c_str()));
  }
  argv.push_back(nullptr);
  ::execv("/proc/self/exe", argv.data());
  ::_exit(kExitFailed);
}

bool NoWaiting(int fd) { return ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK) == 0; }

// Of a pipe that we write to.
bool HasNoReader(int fd) {
  pollfd one{fd, 0, 0};
  return ::poll(&one, 1, 0) == 1 && (one.revents & POLLERR) != 0;
}

}  // namespace

Result<std::unique_ptr<ServerProcess>> ServerProcess::Start(const std::string& name,
                                                            const std::vector<std::string>& words) {
  TRY_ASSIGN(sys::Pipe in, sys::MakePipe());
  TRY_ASSIGN(sys::Pipe out, sys::MakePipe());
  TRY_ASSIGN(sys::Pipe err, sys::MakePipe());
  if (!NoWaiting(in.write_end.get()) || !NoWaiting(out.read_end.get()) ||
      !NoWaiting(err.read_end.get())) {
    return Internal("internal", "a pipe cannot be made not to wait");
  }
  const pid_t pid = ::fork();
  if (pid < 0) {
    return HostFault("isolation.host", "the host cannot start another process",
                     "wait until others have ended, or raise its limits");
  }
  if (pid == 0) {
    BecomeServer(words, in.read_end.get(), out.write_end.get(), err.write_end.get());
  }
  return std::unique_ptr<ServerProcess>(new ServerProcess(
      name, pid, std::move(in.write_end), std::move(out.read_end), std::move(err.read_end)));
}

ServerProcess::ServerProcess(std::string name, pid_t pid, UniqueFd in, UniqueFd out, UniqueFd err)
    : name_(std::move(name)),
      pid_(pid),
      in_fd_(std::move(in)),
      out_fd_(std::move(out)),
      err_fd_(std::move(err)),
      in_(in_fd_.get()),
      out_(out_fd_.get(), gateway::kMaxMcpLine),
      err_(err_fd_.get(), kMostSaidLine) {}

ServerProcess::~ServerProcess() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    while (raw::Syscall(SYS_wait4, pid_) == -EINTR) {
    }
  }
}

bool ServerProcess::deaf() const {
  return hung_up_ && std::chrono::steady_clock::now() - *hung_up_ >= kLastWords;
}

bool ServerProcess::behind() const { return in_.pending() > kMostPending; }

void ServerProcess::AddTo(std::vector<pollfd>* polled) const {
  polled->push_back({out_.ended() ? -1 : out_fd_.get(), POLLIN, 0});
  polled->push_back({err_.ended() ? -1 : err_fd_.get(), POLLIN, 0});
  // Without anything to write it still tells when no process reads there any more.
  polled->push_back(
      {hung_up_ ? -1 : in_fd_.get(), static_cast<short>(in_.pending() > 0 ? POLLOUT : 0), 0});
}

void ServerProcess::Handle(const std::vector<pollfd>& polled,
                           const std::function<void(std::string_view)>& line) {
  const auto happened = [&](int fd) {
    return std::any_of(polled.begin(), polled.end(),
                       [&](const pollfd& one) { return one.fd == fd && one.revents != 0; });
  };
  if (!hung_up_ && happened(in_fd_.get())) {
    if (in_.pending() > 0) {
      in_.Write();
    }
    if (in_.pending() == 0 && HasNoReader(in_fd_.get())) {
      hung_up_ = std::chrono::steady_clock::now();
    }
  }
  if (!err_.ended() && happened(err_fd_.get())) {
    err_.Read([this](std::string_view said) { Say(said); }, [] {});
  }
  if (!out_.ended() && happened(out_fd_.get())) {
    out_.Read(line, [this] { too_long_ = true; });
  }
}

void ServerProcess::Say(std::string_view line) {
  if (said_ <= kMostSaid) {
    said_ += line.size() + 1;
    PrintError(said_ > kMostSaid ? "[" + name_ + "] has written too much; the rest is not shown"
                                 : "[" + name_ + "] " + std::string(line));
  }
}

bool ServerProcess::Gone(int* status) const { return ::waitpid(pid_, status, WNOHANG) == pid_; }

int ServerProcess::Stop() {
  if (pid_ <= 0) {
    return kExitFailed;
  }
  using Clock = std::chrono::steady_clock;
  in_fd_.Reset();  // the end of its stdin is how an MCP server is told to end
  int status = 0;
  const auto began = Clock::now();
  bool asked = false;
  while (!Gone(&status)) {
    const auto passed = Clock::now() - began;
    if (passed > kAsked) {
      ::kill(pid_, SIGKILL);
    } else if (passed > kByItself && !std::exchange(asked, true)) {
      ::kill(pid_, SIGTERM);
    }
    // It may wait for us to read.
    std::vector<pollfd> polled = {{out_.ended() ? -1 : out_fd_.get(), POLLIN, 0},
                                  {err_.ended() ? -1 : err_fd_.get(), POLLIN, 0}};
    ::poll(polled.data(), polled.size(), static_cast<int>(kLook.count()));
    Handle(polled, [](std::string_view) {});
  }
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : kExitSignalled + WTERMSIG(status);
}

}  // namespace coffer::cli
