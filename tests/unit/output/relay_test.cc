// SPDX-License-Identifier: Apache-2.0
#include "output/relay.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "base/sys.h"

namespace coffer::output {
namespace {

long ResidentKilobytes() {
  std::ifstream statm("/proc/self/statm");
  long total = 0, resident = 0;
  statm >> total >> resident;
  return resident * (::sysconf(_SC_PAGESIZE) / 1024);
}

// One stream with a pipe on either side: what the boundary writes goes into `inside`, what we deliver comes out of `outside`.
class Stream {
 public:
  Stream(OutputBudget* budget, bool hashing = true)
      : in_(std::move(sys::MakePipe()).value()),
        out_(std::move(sys::MakePipe(O_NONBLOCK)).value()),
        relay(out_.write_end.get(), budget, hashing) {
    ::fcntl(in_.read_end.get(), F_SETFL, O_NONBLOCK);
    relay.Attach(std::move(in_.read_end));
  }
  void Write(const std::string& text) {
    ASSERT_EQ(::write(in_.write_end.get(), text.data(), text.size()),
              static_cast<ssize_t>(text.size()));
  }
  void EndOfFile() { in_.write_end.Reset(); }
  void CloseReader() { out_.read_end.Reset(); }
  int inside() const { return in_.write_end.get(); }

  // What the supervisor's loop does until nothing moves any more.
  void Pump() {
    for (bool moved = true; moved;) {
      moved = false;
      pollfd waits[2] = {{relay.read_fd(), POLLIN, 0}, {relay.write_fd(), POLLOUT, 0}};
      ASSERT_GE(::poll(waits, 2, 0), 0);
      if (waits[0].fd >= 0 && waits[0].revents != 0) {
        relay.OnReadable();
        moved = true;
      }
      if (waits[1].fd >= 0 && waits[1].revents != 0) {
        relay.OnWritable();
        moved = true;
      }
      Drain();
    }
  }
  void Drain() {
    char buffer[65536];
    for (ssize_t n = 0;
         out_.read_end.valid() && (n = ::read(out_.read_end.get(), buffer, sizeof buffer)) > 0;) {
      delivered.append(buffer, static_cast<size_t>(n));
    }
  }

 private:
  sys::Pipe in_;
  sys::Pipe out_;

 public:
  Relay relay;
  std::string delivered;
};

TEST(Relay, CarriesBytesUnchanged) {
  OutputBudget budget{1000};
  Stream stream(&budget);
  const std::string bytes("a\0\xff\n", 4);
  stream.Write(bytes);
  stream.Pump();
  EXPECT_EQ(stream.delivered, bytes);
  EXPECT_TRUE(stream.relay.open());
  stream.EndOfFile();
  stream.Pump();
  EXPECT_FALSE(stream.relay.open());
  EXPECT_FALSE(budget.truncated());
  EXPECT_EQ(stream.relay.Digest(), HashOf(bytes));
}

TEST(Relay, TheCapIsExact) {
  for (const size_t size : {99, 100, 101}) {
    OutputBudget budget{100};
    Stream stream(&budget);
    stream.Write(std::string(size, 'x'));
    stream.EndOfFile();
    stream.Pump();
    EXPECT_EQ(budget.truncated(), size > 100) << size;
    EXPECT_EQ(stream.delivered.find("truncated") != std::string::npos, size > 100) << size;
    EXPECT_EQ(stream.delivered.substr(0, std::min<size_t>(size, 100)),
              std::string(std::min<size_t>(size, 100), 'x'));
    EXPECT_EQ(budget.delivered, std::min<size_t>(size, 100));
  }
}

TEST(Relay, BothStreamsShareTheCapAndMarkOnceEach) {
  OutputBudget budget{10};
  Stream out(&budget), err(&budget);
  out.Write("123456");
  out.Pump();
  err.Write("abcdefgh");
  err.Pump();
  for (int i = 0; i < 3; ++i) {
    out.Write("more");
    out.Pump();
    err.Write("more");
    err.Pump();
  }
  EXPECT_EQ(out.delivered, "123456\n[coffer: output truncated at 10B]\n");
  EXPECT_EQ(err.delivered, "abcd\n[coffer: output truncated at 10B]\n");
  EXPECT_EQ(budget.delivered, 10U);
  EXPECT_EQ(budget.produced, 6U + 8U + 24U);
  EXPECT_EQ(out.relay.Digest(), HashOf("123456")) << "markers are not the command's";
  EXPECT_EQ(err.relay.Digest(), HashOf("abcd"));
}

TEST(Relay, AFloodCostsNoMemory) {
  OutputBudget budget{1 << 20};
  Stream stream(&budget, /*hashing=*/false);
  std::thread writer([&] {
    const std::string block(1 << 16, 'x');
    for (int i = 0; i < 4096; ++i) {  // 256 MiB
      if (!sys::WriteAll(stream.inside(), block).ok()) {
        return;
      }
    }
    stream.EndOfFile();
  });
  const long before = ResidentKilobytes();
  long most = 0;
  while (stream.relay.open()) {
    pollfd waits[2] = {{stream.relay.read_fd(), POLLIN, 0}, {stream.relay.write_fd(), POLLOUT, 0}};
    ::poll(waits, 2, 1000);
    stream.Pump();
    most = std::max(most, ResidentKilobytes());
  }
  writer.join();
  EXPECT_EQ(budget.produced, 256ULL << 20);
  EXPECT_EQ(budget.delivered, 1ULL << 20);
#ifdef COFFER_SANITIZED
  constexpr long kMost = 64 * 1024;  // it keeps freed memory for a while
#else
  constexpr long kMost = 16 * 1024;
#endif
  EXPECT_LT(most - before, kMost) << "kilobytes";
}

TEST(Relay, NothingIsReadWhileOurReaderIsSlow) {
  OutputBudget budget{1 << 30};
  Stream stream(&budget);
  ::fcntl(stream.inside(), F_SETFL, O_NONBLOCK);
  const std::string block(4096, 'x');
  size_t written = 0;
  for (int idle = 0; idle < 3;) {  // without draining the outer pipe
    const ssize_t n = ::write(stream.inside(), block.data(), block.size());
    written += n > 0 ? static_cast<size_t>(n) : 0;
    idle = n > 0 ? 0 : idle + 1;
    pollfd waits[2] = {{stream.relay.read_fd(), POLLIN, 0}, {stream.relay.write_fd(), POLLOUT, 0}};
    ::poll(waits, 2, 0);
    if (waits[0].fd >= 0 && waits[0].revents != 0)
      stream.relay.OnReadable();
    if (waits[1].fd >= 0 && waits[1].revents != 0)
      stream.relay.OnWritable();
  }
  EXPECT_LT(written, 400U * 1024) << "two pipes and one buffer";
  EXPECT_EQ(stream.relay.read_fd(), -1);
  stream.Drain();
  stream.Pump();
  EXPECT_EQ(stream.delivered.size(), written) << "and nothing is lost";
}

TEST(Relay, WhenOurReaderIsGoneSoIsTheirs) {
  ::signal(SIGPIPE, SIG_IGN);
  OutputBudget budget{1000};
  Stream stream(&budget);
  stream.CloseReader();
  stream.Write("x");
  stream.Pump();
  EXPECT_FALSE(stream.relay.open());
  EXPECT_EQ(::write(stream.inside(), "x", 1), -1) << "the writer inside must get EPIPE";
  ::signal(SIGPIPE, SIG_DFL);
}

TEST(Feed, CarriesInputAndEndOfFile) {
  sys::Pipe from = std::move(sys::MakePipe()).value();
  sys::Pipe to = std::move(sys::MakePipe(O_NONBLOCK)).value();
  Feed feed(from.read_end.get());
  EXPECT_EQ(feed.read_fd(), -1) << "not attached yet";
  feed.Attach(std::move(to.write_end));
  const std::string text(100000, 'y');
  std::string got;
  std::thread writer([&] {
    (void)sys::WriteAll(from.write_end.get(), text);
    from.write_end.Reset();
  });
  while (feed.read_fd() >= 0 || feed.write_fd() >= 0) {
    pollfd waits[2] = {{feed.read_fd(), POLLIN, 0}, {feed.write_fd(), POLLOUT, 0}};
    ASSERT_GT(::poll(waits, 2, 10000), 0);
    EXPECT_TRUE(feed.read_fd() < 0 || feed.write_fd() < 0) << "one buffer: never both";
    if (waits[0].fd >= 0 && waits[0].revents != 0)
      feed.OnReadable();
    if (waits[1].fd >= 0 && waits[1].revents != 0)
      feed.OnWritable();
    char buffer[65536];
    for (ssize_t n = 0; (n = ::read(to.read_end.get(), buffer, sizeof buffer)) > 0;) {
      got.append(buffer, static_cast<size_t>(n));
    }
  }
  writer.join();
  EXPECT_EQ(got, text);
  char byte;
  EXPECT_EQ(::read(to.read_end.get(), &byte, 1), 0) << "end of file";
}

TEST(Feed, EndsWhenNobodyInsideReads) {
  ::signal(SIGPIPE, SIG_IGN);
  sys::Pipe from = std::move(sys::MakePipe()).value();
  sys::Pipe to = std::move(sys::MakePipe(O_NONBLOCK)).value();
  Feed feed(from.read_end.get());
  feed.Attach(std::move(to.write_end));
  to.read_end.Reset();
  ASSERT_EQ(::write(from.write_end.get(), "x", 1), 1);
  feed.OnReadable();
  feed.OnWritable();
  EXPECT_EQ(feed.read_fd(), -1);
  EXPECT_EQ(feed.write_fd(), -1);
  ::signal(SIGPIPE, SIG_DFL);
}

}  // namespace
}  // namespace coffer::output
