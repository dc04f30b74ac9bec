// SPDX-License-Identifier: Apache-2.0
//
// Filling places: bytes, files without names, holes, allocated but unwritten blocks, names; and the shapes of two
// kernel bugs that overwrote read-only files through the page cache.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "probe.h"

namespace probe {
namespace {

constexpr size_t kPiece = 64 * 1024;
char piece[kPiece];

// Writes until refused or `most` bytes.
long WriteOut(int fd, long most) {
  memset(piece, 'f', sizeof piece);
  long written = 0;
  while (written < most) {
    const ssize_t n = write(fd, piece, sizeof piece);
    if (n <= 0) {
      break;
    }
    written += n;
  }
  return written;
}

// `fill FILE MIB`, `fill-tmpfile DIR MIB`, `fill-sparse FILE MIB`, `fill-allocate FILE MIB`, `fill-reserve FILE MIB`
int Fill(int argc, char** argv) {
  if (argc < 3) {
    return 2;
  }
  signal(SIGXFSZ, SIG_IGN);
  const long most = atol(argv[2]) << 20;
  const bool nameless = strcmp(argv[0], "fill-tmpfile") == 0;
  const int fd = nameless ? open(argv[1], O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)
                          : open(argv[1], O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) {
    Refused("open", errno);
    return 0;
  }
  long written = 0;
  if (strcmp(argv[0], "fill-sparse") == 0) {
    errno = 0;
    if (ftruncate(fd, most) != 0) {
      Refused("ftruncate", errno);
    }
    for (long at = 0; at < most; at += 4096) {
      if (pwrite(fd, "x", 1, at) != 1) {
        break;
      }
      written += 4096;
    }
  } else if (strcmp(argv[0], "fill-allocate") == 0) {
    for (; written < most; written += 1 << 20) {
      if (fallocate(fd, 1 /* KEEP_SIZE */, written, 1 << 20) != 0) {
        break;
      }
    }
  } else if (strcmp(argv[0], "fill-reserve") == 0) {
    struct {
      short type, whence;
      int64_t start, length;
      int system;
      unsigned process;
      int pad[4];
    } space = {0, SEEK_SET, 0, most, 0, 0, {}};
    written =
        ioctl(fd, _IOW('X', 42, decltype(space)) /* FS_IOC_RESVSP64 */, &space) == 0 ? most : 0;
  } else {
    written = WriteOut(fd, most);
  }
  const int error_number = errno;
  Say("wrote %ld", written);
  if (written < most) {
    Refused("write", error_number);
  } else {
    Open("write");
  }
  return 0;
}

// `fill-many DIR MIB FILES`: the sum over many small files.
int FillMany(int argc, char** argv) {
  if (argc < 4) {
    return 2;
  }
  const long most = atol(argv[2]) << 20;
  const int files = atoi(argv[3]);
  long written = 0;
  int error_number = 0;
  for (int i = 0; i < files; ++i) {
    char path[512];
    snprintf(path, sizeof path, "%s/many-%d", argv[1], i);
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    const long got = fd >= 0 ? WriteOut(fd, most / files) : 0;
    if (fd < 0 || got < most / files) {
      error_number = errno;
    }
    if (fd >= 0) {
      close(fd);
    }
    written += got;
    if (error_number != 0) {
      break;
    }
  }
  Say("wrote %ld", written);
  if (error_number != 0) {
    Refused("write", error_number);
  } else {
    Open("write");
  }
  return 0;
}

// `many-files DIR N`: empty files.
int ManyFiles(int argc, char** argv) {
  if (argc < 3) {
    return 2;
  }
  const int most = atoi(argv[2]);
  int made = 0;
  int error_number = 0;
  for (; made < most; ++made) {
    char path[512];
    snprintf(path, sizeof path, "%s/f%d", argv[1], made);
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
      error_number = errno;
      break;
    }
    close(fd);
  }
  Say("made %d", made);
  if (error_number != 0) {
    Refused("create", error_number);
  } else {
    Open("create");
  }
  return 0;
}

// `dirty-pipe-shape FILE`: splice a page of a read-only file into a pipe, then write to the pipe.
int DirtyPipeShape(int argc, char** argv) {
  if (argc < 2) {
    return 2;
  }
  const int fd = open(argv[1], O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    Refused("open", errno);
    return 0;
  }
  int ends[2];
  if (pipe(ends) != 0) {
    return 3;
  }
  const int capacity = fcntl(ends[1], F_GETPIPE_SZ);
  for (int left = capacity; left > 0;) {
    const int n = left > static_cast<int>(kPiece) ? static_cast<int>(kPiece) : left;
    left -= write(ends[1], piece, static_cast<size_t>(n)) > 0 ? n : left;
  }
  for (int left = capacity; left > 0;) {
    const ssize_t n = read(ends[0], piece, kPiece);
    left -= n > 0 ? static_cast<int>(n) : left;
  }
  loff_t offset = 0;
  Verdict("splice", Call(SYS_splice, fd, &offset, ends[1], nullptr, 1UL, 0));
  Verdict("write", write(ends[1], "DIRTYPIPE", 9));
  return 0;
}

// `dirty-cow-shape FILE SECONDS`: throw pages away while writing them through /proc/self/mem.
int DirtyCowShape(int argc, char** argv) {
  if (argc < 3) {
    return 2;
  }
  const int fd = open(argv[1], O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    Refused("open", errno);
    return 0;
  }
  void* map = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
  if (map == MAP_FAILED) {
    Refused("mmap", errno);
    return 0;
  }
  const time_t end = time(nullptr) + atoi(argv[2]);
  const int mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
  if (mem < 0) {
    Refused("mem", errno);
    return 0;
  }
  // The other half of the race: a process that shares this memory and throws the page away without pause.
  static char stack[65536];
  const int racer = clone(
      [](void* page) -> int {
        while (true) {
          madvise(page, 4096, MADV_DONTNEED);
        }
      },
      stack + sizeof stack, CLONE_VM | SIGCHLD, map);
  long tries = 0;
  long written = 0;
  while (time(nullptr) < end) {
    for (int i = 0; i < 1000; ++i) {
      written += pwrite(mem, "DIRTYCOW", 8, reinterpret_cast<off_t>(map)) == 8 ? 1 : 0;
      ++tries;
    }
  }
  if (racer > 0) {
    kill(racer, SIGKILL);
    waitpid(racer, nullptr, 0);
  }
  Open("race", "%ld tries, %ld private writes", tries, written);
  return 0;
}

constexpr Verb kVerbs[] = {
    {"fill", Fill, "FILE MIB"},
    {"fill-tmpfile", Fill, "DIR MIB"},
    {"fill-sparse", Fill, "FILE MIB"},
    {"fill-allocate", Fill, "FILE MIB"},
    {"fill-reserve", Fill, "FILE MIB"},
    {"fill-many", FillMany, "DIR MIB FILES"},
    {"many-files", ManyFiles, "DIR N"},
    {"dirty-pipe-shape", DirtyPipeShape, "FILE"},
    {"dirty-cow-shape", DirtyCowShape, "FILE SECONDS"},
};

}  // namespace

std::span<const Verb> StorageVerbs() { return kVerbs; }

}  // namespace probe
