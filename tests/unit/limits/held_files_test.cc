// SPDX-License-Identifier: Apache-2.0
//
// Every way to keep a file without a name, held by a child, with a control: the same file while nobody holds it.
#include "limits/held_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "base/sys.h"
#include "test_support.h"

namespace coffer::limits {
namespace {

constexpr size_t kHeldSize = 4 << 20;

// A child that runs `body`, says so, and lives until the test is over.
class Holder {
 public:
  template <typename Body>
  explicit Holder(Body body) : ready_(sys::MakePipe().value()), go_(sys::MakePipe().value()) {
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      go_.write_end.Reset();
      body(*this);
      Stay();
    }
    go_.read_end.Reset();
    EXPECT_TRUE(Ready(ready_.read_end.get()));
  }
  ~Holder() {
    go_.write_end.Reset();
    WaitFor(pid_);
  }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  [[noreturn]] void Stay() const {
    (void)!::write(ready_.write_end.get(), "x", 1);
    char byte = 0;
    (void)!::read(go_.read_end.get(), &byte, 1);
    ::_exit(0);
  }
  HeldFiles Look(Locks locks = Locks::kIgnore, bool out_of_time = false) const {
    return FindHeldFiles([this] { return std::vector<pid_t>{pid_}; }, "/proc",
                         [out_of_time] { return out_of_time; }, locks);
  }

 private:
  sys::Pipe ready_;
  sys::Pipe go_;
  pid_t pid_ = 0;
};

class HeldFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    struct stat info{};
    ::stat(dir_.path().c_str(), &info);
    device_ = info.st_dev;
  }
  // A file of kHeldSize that has lost its name.
  int Nameless() const {
    const std::string path = dir_.path() + "/gone";
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT, 0600);
    const std::string block(kHeldSize, 'x');
    EXPECT_EQ(::write(fd, block.data(), block.size()), static_cast<ssize_t>(block.size()));
    ::unlink(path.c_str());
    return fd;
  }
  static void Send(int socket, int fd) {
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    char byte = 0;
    iovec data{&byte, 1};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    ::memcpy(CMSG_DATA(head), &fd, sizeof(fd));
    EXPECT_EQ(::sendmsg(socket, &message, 0), 1);
  }
  uint64_t BytesOf(const Holder& holder) const { return holder.Look().BytesOn(device_); }

  TempDir dir_;
  uint64_t device_ = 0;
};

TEST_F(HeldFilesTest, Control_NothingIsHeldOnceItIsClosed) {
  const Holder holder([&](const Holder&) { ::close(Nameless()); });
  const HeldFiles held = holder.Look();
  EXPECT_EQ(held.BytesOn(device_), 0U);
  EXPECT_TRUE(held.mapped.empty());
  EXPECT_TRUE(held.settled);
  EXPECT_EQ(held.unmeasured_flights, 0U);
  EXPECT_EQ(held.unreadable, "");
}

TEST_F(HeldFilesTest, Open) {
  const Holder holder([&](const Holder&) { EXPECT_GE(::dup(Nameless()), 0); });
  EXPECT_GE(BytesOf(holder), kHeldSize);
  EXPECT_LT(BytesOf(holder), 2 * kHeldSize) << "held twice, counted once";
}

TEST_F(HeldFilesTest, NeverNamed) {
  const Holder holder([&](const Holder&) {
    const int fd = ::open(dir_.path().c_str(), O_TMPFILE | O_RDWR, 0600);
    const std::string block(kHeldSize, 'x');
    EXPECT_EQ(::write(fd, block.data(), block.size()), static_cast<ssize_t>(block.size()));
  });
  EXPECT_GE(BytesOf(holder), kHeldSize);
}

TEST_F(HeldFilesTest, MappedAndClosed) {
  const Holder holder([&](const Holder&) {
    const int fd = Nameless();
    EXPECT_NE(::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0), MAP_FAILED);
    ::close(fd);
  });
  const HeldFiles held = holder.Look();
  if (::geteuid() == 0) {
    EXPECT_GE(held.BytesOn(device_), kHeldSize) << "root reads the size";
  } else {
    EXPECT_EQ(held.mapped.size(), 1U) << "a user knows that there is one";
  }
}

// The pages stay while one process has a part of it mapped, also if another process touched them.
TEST_F(HeldFilesTest, SharedAnonymousMemory) {
  for (const bool named : {false, true}) {
    const Holder holder([named](const Holder&) {
      void* memory =
          ::mmap(nullptr, kHeldSize, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
      if (named) {
        ::prctl(0x53564d61 /* PR_SET_VMA */, 0, memory, kHeldSize, "own");
      }
      ::memset(memory, 1, kHeldSize);
      ::madvise(memory, kHeldSize, MADV_DONTNEED);
    });
    const HeldFiles held = holder.Look();
    EXPECT_TRUE(held.mapped.empty());
    if (::geteuid() == 0) {
      EXPECT_GE(held.BytesOn(MemfdDevice()), kHeldSize);
      EXPECT_TRUE(held.shared.empty());
    } else {
      ASSERT_EQ(held.shared.size(), 1U) << named;
      EXPECT_EQ(held.shared.begin()->second, kHeldSize);
    }
  }
}

TEST_F(HeldFilesTest, UnreadEventsCountOnceForEachInstance) {
  const auto hold = [this](int instances, int copies) {
    return Holder([&](const Holder&) {
             std::vector<int> all;
             for (int i = 0; i < instances; ++i) {
               all.push_back(::inotify_init1(IN_CLOEXEC));
               ::inotify_add_watch(all.back(), dir_.path().c_str(), IN_CREATE | IN_DELETE);
               for (int copy = 0; copy < copies; ++copy) {
                 all.push_back(::dup(all.back()));
               }
             }
             for (int i = 0; i < 100; ++i) {
               const std::string name = dir_.path() + "/" + std::string(200, 'n');
               ::close(::open(name.c_str(), O_WRONLY | O_CREAT, 0600));
               ::unlink(name.c_str());
             }
           })
        .Look()
        .unread_events;
  };
  EXPECT_EQ(hold(0, 0), 0U);
  const uint64_t one = hold(1, 0);
  EXPECT_GE(one, 200U * 256);
  EXPECT_LE(one, 200U * 1024);
  EXPECT_EQ(hold(1, 5), one);
  EXPECT_EQ(hold(3, 2), 3 * one);
}

TEST_F(HeldFilesTest, InFlight) {
  const Holder holder([&](const Holder&) {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    const int fd = Nameless();
    Send(ends[0], fd);
    ::close(fd);
    ::close(ends[0]);
  });
  const HeldFiles held = holder.Look();
  EXPECT_GE(held.BytesOn(device_), kHeldSize);
  EXPECT_EQ(held.unmeasured_flights, 0U);
}

TEST_F(HeldFilesTest, InFlightInsideASocketInFlight) {
  const Holder holder([&](const Holder&) {
    int outer[2];
    int inner[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM, 0, outer), 0);
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM, 0, inner), 0);
    const int fd = Nameless();
    Send(inner[0], fd);
    ::close(fd);
    Send(outer[0], inner[1]);
    ::close(inner[0]);
    ::close(inner[1]);
  });
  EXPECT_GE(BytesOf(holder), kHeldSize);
}

TEST_F(HeldFilesTest, InFlightBehindAnotherMessageIsKnownToBeThere) {
  const Holder holder([&](const Holder&) {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM, 0, ends), 0);
    Send(ends[0], 0);
    const int fd = Nameless();
    Send(ends[0], fd);
    ::close(fd);
  });
  EXPECT_EQ(holder.Look().unmeasured_flights, 1U);
}

TEST_F(HeldFilesTest, HeldByAThreadWithItsOwnDescriptorsWhoseLeaderIsGone) {
  const Holder holder([&](const Holder& self) {
    static int fd;
    static std::atomic<bool> holds = false;
    fd = Nameless();
    std::thread([&self] {
      ::syscall(SYS_unshare, CLONE_FILES);
      EXPECT_GE(::dup(fd), 0);
      holds = true;
      self.Stay();
    }).detach();
    while (!holds) {
      ::usleep(1000);
    }
    ::close(fd);
    ::syscall(SYS_exit, 0);  // the leader alone
  });
  EXPECT_GE(BytesOf(holder), kHeldSize);
}

TEST_F(HeldFilesTest, WhoIsNotDumpableIsReadOrNamed) {
  const Holder holder([&](const Holder&) {
    Nameless();
    ::prctl(PR_SET_DUMPABLE, 0);
  });
  const HeldFiles held = holder.Look();
  if (::geteuid() == 0) {
    EXPECT_GE(held.BytesOn(device_), kHeldSize);
    EXPECT_EQ(held.unreadable, "");
  } else {
    EXPECT_NE(held.unreadable.find("is not dumpable"), std::string::npos);
  }
}

TEST_F(HeldFilesTest, ADirectoryThatWasRemovedAroundAProcess) {
  const Holder holder([&](const Holder&) {
    const std::string inner = dir_.path() + "/inner";
    ::mkdir(inner.c_str(), 0700);
    EXPECT_EQ(::chdir(inner.c_str()), 0);
    ::rmdir(inner.c_str());
  });
  const HeldFiles held = holder.Look();
  EXPECT_EQ(held.files.size(), 1U);
}

TEST_F(HeldFilesTest, Queues) {
  const Holder empty([&](const Holder&) {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  });
  const Holder full([&](const Holder&) {
    const std::string block(1 << 16, 'x');
    for (const bool sender_stays : {true, false}) {
      int ends[2];
      ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
      while (::send(ends[0], block.data(), block.size(), MSG_DONTWAIT) > 0) {
      }
      if (!sender_stays) {
        ::close(ends[0]);
      }
    }
  });
  const HeldFiles held = full.Look();
  EXPECT_GE(held.QueuedBytes(), empty.Look().QueuedBytes() + (150U << 10)) << "the living sender";
  EXPECT_EQ(held.closed_senders, 1U);
  EXPECT_EQ(empty.Look().closed_senders, 0U);
  EXPECT_EQ(held.unix_sockets, 3U);
}

TEST_F(HeldFilesTest, QueuesInTheTableOfAThread) {
  const Holder holder([&](const Holder& self) {
    std::thread([&self] {
      ::syscall(SYS_unshare, CLONE_FILES);
      int ends[2];
      EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
      const std::string block(1 << 16, 'x');
      while (::send(ends[0], block.data(), block.size(), MSG_DONTWAIT) > 0) {
      }
      self.Stay();
    }).join();
  });
  // Measured where threads have descriptors of their own to us (Linux 6.9), charged in full before.
  EXPECT_GE(holder.Look().QueuedBytes(), 150U << 10);
}

// Of a process and of a description.
TEST_F(HeldFilesTest, LocksAreCountedIfAskedFor) {
  const Holder holder([&](const Holder&) {
    for (const int command : {F_SETLK, F_OFD_SETLK, F_OFD_SETLK}) {
      const int fd = Nameless();
      for (int i = 0; i < 1000; ++i) {
        struct flock lock{};
        lock.l_type = F_WRLCK;
        lock.l_start = static_cast<off_t>(i) * 2;
        lock.l_len = 1;
        ASSERT_EQ(::fcntl(fd, command, &lock), 0);
      }
    }
  });
  EXPECT_EQ(holder.Look().locks, 0U);
  const HeldFiles held = holder.Look(Locks::kOnly);
  EXPECT_EQ(held.locks, 3000U);
  EXPECT_TRUE(held.all_locks);
  EXPECT_GT(holder.Look().mappings, 10U);
  // A walk that has no time left has seen none of them, and says that there may be more.
  EXPECT_FALSE(holder.Look(Locks::kOnly, /*out_of_time=*/true).all_locks);
}

// A program that opens and closes all the time, as one that makes many connections does, leaves no lock uncounted.
TEST_F(HeldFilesTest, DescriptorsThatAreClosedMeanwhileHideNoLocks) {
  const Holder holder([](const Holder&) {
    for (int i = 0; i < 2; ++i) {
      std::thread([] {
        while (true) {
          ::close(::socket(AF_INET, SOCK_STREAM, 0));
        }
      }).detach();
    }
  });
  int incomplete = 0;
  for (int i = 0; i < 20000; ++i) {
    incomplete += holder.Look(Locks::kOnly).all_locks ? 0 : 1;
  }
  EXPECT_EQ(incomplete, 0);
}

TEST_F(HeldFilesTest, ALookThatIsOutOfTimeIsNotSettled) {
  const Holder holder([&](const Holder&) { Nameless(); });
  const HeldFiles held =
      FindHeldFiles([] { return std::vector<pid_t>{::getpid()}; }, "/proc", [] { return true; });
  EXPECT_FALSE(held.settled);
}

TEST_F(HeldFilesTest, AProcessThatIsGoneHoldsNothing) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::_exit(0);
  }
  siginfo_t info;
  ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT);
  const HeldFiles zombie = FindHeldFiles([&] { return std::vector<pid_t>{pid}; });
  EXPECT_EQ(zombie.unreadable, "");
  WaitFor(pid);
  const HeldFiles gone = FindHeldFiles([&] { return std::vector<pid_t>{pid}; });
  EXPECT_EQ(gone.unreadable, "");
  EXPECT_FALSE(gone.settled);
}

}  // namespace
}  // namespace coffer::limits
