// SPDX-License-Identifier: Apache-2.0
//
// Memory in the queues of pipes and sockets, hidden from those who ask each descriptor of each process what it holds.
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "probe.h"

namespace probe {
namespace {

constexpr int kChildren = 16;       // each may hold only so many descriptors
constexpr int kEvents = 12 * 1024;  // 512 bytes of the kernel's each
char block[32768];

// False if not a byte could be sent.
bool Fill(int fd) {
  bool sent = false;
  while (send(fd, block, sizeof block, MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
    sent = true;
  }
  return sent;
}

// A pair whose first message is empty, so that its length says nothing.
bool FillPair(int type, bool close_sender) {
  int ends[2];
  if (socketpair(AF_UNIX, type, 0, ends) != 0 ||
      (type != SOCK_STREAM && send(ends[0], block, 0, MSG_DONTWAIT) != 0) || !Fill(ends[0])) {
    return false;
  }
  if (close_sender) {
    close(ends[0]);
  }
  return true;
}

bool FillPipe() {
  int ends[2];
  if (pipe2(ends, O_NONBLOCK) != 0) {
    return false;
  }
  bool filled = false;
  while (write(ends[1], block, 4096) > 0) {  // after 64 MiB the kernel gives a user small pipes
    filled = true;
  }
  return filled;
}

// Pages of our own that a pipe keeps when they are unmapped.
bool GiftPages() {
  constexpr size_t kSize = 65536;
  int ends[2];
  void* pages = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED || pipe2(ends, O_NONBLOCK) != 0) {
    return false;
  }
  memset(pages, 'v', kSize);
  struct iovec data = {pages, kSize};
  const bool given = Call(SYS_vmsplice, ends[1], &data, 1L, SPLICE_F_GIFT | SPLICE_F_NONBLOCK) > 0;
  const int error_number = errno;
  munmap(pages, kSize);
  errno = error_number;
  return given;
}

socklen_t AbstractName(sockaddr_un& address, int number) {
  address = {};
  address.sun_family = AF_UNIX;
  const int length = snprintf(address.sun_path + 1, sizeof address.sun_path - 1,
                              "probe-queue-%d-%d", getpid(), number);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<size_t>(length));
}

// One receiver, several senders that are closed: only their messages are left.
bool FillFromMany(int number) {
  sockaddr_un address;
  const socklen_t length = AbstractName(address, number);
  const auto* name = reinterpret_cast<const sockaddr*>(&address);
  const int receiver = socket(AF_UNIX, SOCK_DGRAM, 0);
  if (receiver < 0 || bind(receiver, name, length) != 0) {
    return false;
  }
  for (int i = 0; i < 8; ++i) {
    const int sender = socket(AF_UNIX, SOCK_DGRAM, 0);
    char message[160000];
    memset(message, 'q', sizeof message);
    if (sender < 0 || sendto(sender, message, sizeof message, MSG_DONTWAIT, name, length) < 0) {
      return false;
    }
    close(sender);
  }
  return true;
}

// Connections that are not accepted, with what they sent before they were closed.
bool FillBacklog(int family, int number) {
  static int listener = -1;
  static sockaddr_un local;
  static sockaddr_in inet;
  const bool is_unix = family == AF_UNIX;
  static socklen_t length;
  auto* name = is_unix ? reinterpret_cast<sockaddr*>(&local) : reinterpret_cast<sockaddr*>(&inet);
  if (listener < 0) {
    length = is_unix ? AbstractName(local, number) : sizeof inet;
    inet.sin_family = AF_INET;
    inet.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listener = socket(family, SOCK_STREAM, 0);
    if (listener < 0 || bind(listener, name, length) != 0 || listen(listener, 1000) != 0 ||
        (!is_unix && getsockname(listener, name, &length) != 0)) {
      return false;
    }
  }
  const int client = socket(family, SOCK_STREAM, 0);
  if (client < 0 || connect(client, name, length) != 0 || !Fill(client)) {
    return false;
  }
  close(client);
  return true;
}

// The same socket twice: first a descriptor that cannot be asked (O_PATH), then the one that holds it.
bool FillBehindAShadow() {
  const int shadows[2] = {open("/dev/null", O_PATH), open("/dev/null", O_PATH)};
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0 || !Fill(ends[0])) {
    return false;
  }
  for (int i = 0; i < 2; ++i) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", ends[i]);
    const int shadow = open(path, O_PATH);
    if (shadow < 0 || dup2(shadow, shadows[i]) < 0) {
      return false;
    }
    close(shadow);
  }
  return true;
}

// What a datagram socket on the loopback has really got; 0: refused.
bool FillUdp() {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* name = reinterpret_cast<sockaddr*>(&address);
  const int receiver = socket(AF_INET, SOCK_DGRAM, 0);
  const int sender = socket(AF_INET, SOCK_DGRAM, 0);
  if (receiver < 0 || sender < 0 || bind(receiver, name, length) != 0 ||
      getsockname(receiver, name, &length) != 0 || connect(sender, name, length) != 0) {
    return false;
  }
  for (int i = 0; i < 12; ++i) {
    (void)send(sender, block, sizeof block, MSG_DONTWAIT);
  }
  // A kernel thread may deliver them, and a slow machine takes its time.
  bool arrived = false;
  for (int waited = 0; waited < 1000 && !arrived; ++waited) {
    uint32_t memory[SK_MEMINFO_VARS] = {};
    length = sizeof memory;
    arrived = getsockopt(receiver, SOL_SOCKET, SO_MEMINFO, memory, &length) == 0 &&
              memory[SK_MEMINFO_RMEM_ALLOC] >= 100000;
    if (!arrived) {
      usleep(1000);
    }
  }
  close(sender);
  errno = arrived ? 0 : ENOBUFS;
  return arrived;
}

// Answers that are not read, until the queue is full. Asking for the loopback device brings a kilobyte or two each time.
bool FillNetlink() {
  struct {
    nlmsghdr head;
    ifinfomsg about;
  } question = {};
  question.head = {sizeof question, RTM_GETLINK, NLM_F_REQUEST, 1, 0};
  question.about.ifi_index = 1;
  const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  bool filled = false;
  for (int i = 0; fd >= 0 && i < 400 && send(fd, &question, sizeof question, MSG_DONTWAIT) > 0;
       ++i) {
    filled = true;
  }
  return filled;
}

// An inotify instance whose events stay unread: events with long names, fewer than the 16,384 that the kernel keeps.
bool FillEvents() {
  char place[] = "/tmp/events-XXXXXX";
  const int fd = inotify_init1(0);
  if (fd < 0 || mkdtemp(place) == nullptr ||
      inotify_add_watch(fd, place, IN_CREATE | IN_DELETE) < 0) {
    return false;
  }
  char name[512];
  memset(name, 'e', sizeof name);
  memcpy(name, place, sizeof place - 1);
  name[sizeof place - 1] = '/';
  name[sizeof place + 250] = 0;
  for (int i = 0; i < kEvents / 2; ++i) {
    const int file = open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    if (file < 0) {
      return false;
    }
    close(file);
    unlink(name);
  }
  rmdir(place);
  return true;
}

bool FillOne(const char* how, int number) {
  const auto is = [how](const char* word) { return strcmp(how, word) == 0; };
  if (is("closed")) {
    return FillPair(SOCK_SEQPACKET, /*close_sender=*/true);
  }
  if (is("empty")) {
    return FillPair(SOCK_DGRAM, /*close_sender=*/true);
  }
  if (is("senders")) {
    return number % 6 != 0 || FillFromMany(number);
  }
  if (is("backlog")) {
    return FillBacklog(AF_UNIX, number);
  }
  if (is("tcp")) {
    return FillBacklog(AF_INET, number);
  }
  if (is("shadow")) {
    return FillBehindAShadow();
  }
  if (is("udp")) {
    return FillUdp();
  }
  if (is("netlink")) {
    return FillNetlink();
  }
  if (is("events")) {
    // Six megabytes each, as much as thirty of the other queues.
    return number % 30 != 0 || FillEvents();
  }
  if (is("gift")) {
    return GiftPages();
  }
  if (is("table-pipes")) {
    return FillPipe() && FillPipe() && FillPipe();
  }
  return FillPair(SOCK_STREAM, /*close_sender=*/false);  // "table" and "drop"
}

struct Task {
  const char* how;
  int queues;
  int report;
};

int FillAll(void* argument) {
  const Task& task = *static_cast<const Task*>(argument);
  unsigned char answer = 0;
  for (int i = 0; i < task.queues && answer == 0; ++i) {
    answer = FillOne(task.how, i) ? 0 : static_cast<unsigned char>(errno);
    usleep(1000);
  }
  (void)!write(task.report, &answer, 1);
  while (true) {
    pause();
  }
}

// `hide-queued MIB HOW [SECONDS]`: queues of about 200 KiB each, in several processes, held for so long.
int HideQueued(int argc, char** argv) {
  int reports[2];
  if (argc < 3 || pipe(reports) != 0) {
    return 2;
  }
  memset(block, 'q', sizeof block);
  const bool drop = strcmp(argv[2], "drop") == 0;
  static Task task;
  task = {argv[2], drop ? 1 : atoi(argv[1]) * 5 / kChildren, reports[1]};
  for (int i = 0; i < kChildren; ++i) {
    if (fork() != 0) {
      continue;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (strncmp(argv[2], "table", 5) == 0) {
      // The queues are made by a thread that has descriptors of its own.
      constexpr size_t kStack = 262144;
      char* stack = static_cast<char*>(
          mmap(nullptr, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
      clone(FillAll, stack + kStack,
            CLONE_VM | CLONE_FS | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM, &task);
      while (true) {
        pause();
      }
    }
    FillAll(&task);
  }
  close(reports[1]);
  unsigned char answer = 0;
  for (int i = 0; i < kChildren && answer == 0; ++i) {
    if (read(reports[0], &answer, 1) != 1) {
      return 3;
    }
  }
  if (answer != 0) {
    Refused("queue", answer);
  } else {
    Open("queue");
    sleep(argc > 3 ? static_cast<unsigned>(atoi(argv[3])) : 0);
  }
  return 0;
}

constexpr Verb kVerbs[] = {
    {"hide-queued", HideQueued,
     "MIB closed|empty|senders|backlog|tcp|udp|netlink|shadow|gift|events|table|table-pipes|drop "
     "[SECONDS]"},
};

}  // namespace

std::span<const Verb> QueueVerbs() { return kVerbs; }

}  // namespace probe
