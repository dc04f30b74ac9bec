// SPDX-License-Identifier: Apache-2.0
#include "base/patient_write.h"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "base/sys.h"
#include "tests/support/run.h"

namespace coffer::sys {
namespace {

using std::chrono::milliseconds;

// As full as a pipe gets; the write end waits again afterwards.
Pipe FullPipe() {
  Pipe pipe = MakePipe().value();
  ::fcntl(pipe.write_end.get(), F_SETFL, O_NONBLOCK);
  const std::string block(4096, 'x');
  while (::write(pipe.write_end.get(), block.data(), block.size()) > 0) {
  }
  ::fcntl(pipe.write_end.get(), F_SETFL, 0);
  return pipe;
}

TEST(PatientWrite, EverythingArrives) {
  const Pipe pipe = MakePipe().value();
  const std::string text(1 << 20, 'y');
  std::string got;
  std::thread reader([&] { got = *ReadFd(pipe.read_end.get(), 2 << 20); });
  const int flags = ::fcntl(pipe.write_end.get(), F_GETFL);
  EXPECT_TRUE(WritePatiently(pipe.write_end.get(), text).ok());
  EXPECT_EQ(::fcntl(pipe.write_end.get(), F_GETFL), flags) << "the descriptor is the caller's";
  const_cast<Pipe&>(pipe).write_end.Reset();
  reader.join();
  EXPECT_TRUE(got == text);
  const test::TempDir dir;
  const UniqueFd file = Open(dir / "file", O_WRONLY | O_CREAT, 0600).value();
  EXPECT_TRUE(WritePatiently(file.get(), text).ok());
  EXPECT_EQ(test::ReadFile(dir / "file")->size(), text.size());
}

TEST(PatientWrite, AReaderThatDoesNotReadIsGivenUp) {
  const Pipe pipe = FullPipe();
  const Status wrote = WritePatiently(pipe.write_end.get(), "text", {milliseconds(100)});
  ASSERT_FALSE(wrote.ok());
  EXPECT_EQ(wrote.error().sys_errno, ETIMEDOUT);
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const UniqueFd ours(ends[0]);
  const UniqueFd theirs(ends[1]);
  const Status sent = WritePatiently(ours.get(), std::string(8 << 20, 'z'), {milliseconds(100)});
  ASSERT_FALSE(sent.ok());
  EXPECT_EQ(sent.error().sys_errno, ETIMEDOUT);
}

TEST(PatientWrite, AReadableDescriptorWakesIt) {
  const Pipe pipe = FullPipe();
  const Pipe wake = MakePipe().value();
  std::thread waker([&] {
    std::this_thread::sleep_for(milliseconds(50));
    EXPECT_TRUE(WriteAll(wake.write_end.get(), "!").ok());
  });
  const Status wrote =
      WritePatiently(pipe.write_end.get(), "text", {milliseconds(-1), wake.read_end.get()});
  waker.join();
  ASSERT_FALSE(wrote.ok());
  EXPECT_EQ(wrote.error().sys_errno, EINTR);
}

// In a child with SIGTERM blocked, as while a call runs. How it ended: a signal, or nothing within
// 300 ms.
std::optional<int> SignalThatEnded(const std::function<void(int)>& write) {
  const Pipe pipe = FullPipe();
  const Pipe ready = MakePipe().value();
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    ::sigprocmask(SIG_BLOCK, &blocked, nullptr);
    (void)!::write(ready.write_end.get(), "x", 1);
    write(pipe.write_end.get());
    ::_exit(0);
  }
  char byte = 0;
  EXPECT_EQ(::read(ready.read_end.get(), &byte, 1), 1);
  EXPECT_TRUE(test::WaitUntil([&] {
    const Result<std::string> status = ReadFile("/proc/" + std::to_string(child) + "/status");
    return status.ok() && status->find("\nState:\tS") != std::string::npos;
  })) << "it waits for the pipe";
  ::kill(child, SIGTERM);
  int status = 0;
  const bool ended = test::WaitUntil([&] { return ::waitpid(child, &status, WNOHANG) == child; },
                                     test::Seconds(0.3));
  if (!ended) {
    ::kill(child, SIGKILL);
    ::waitpid(child, &status, 0);
    return std::nullopt;
  }
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

TEST(PatientWrite, ABlockedSigtermEndsTheWait) {
  EXPECT_EQ(SignalThatEnded([](int fd) { (void)WritePatiently(fd, "text"); }), SIGTERM);
  EXPECT_EQ(SignalThatEnded([](int fd) { (void)WriteAll(fd, "text"); }), std::nullopt)
      << "the control: a plain write waits on";
}

}  // namespace
}  // namespace coffer::sys
