// SPDX-License-Identifier: Apache-2.0
//
// What /proc and /sys give away, and what they let one change.
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "probe.h"

namespace probe {
namespace {

constexpr size_t kReadMost = 1 << 20;

bool IsNumber(const char* text) {
  for (const char* c = text; *c != '\0'; ++c) {
    if (isdigit(static_cast<unsigned char>(*c)) == 0) {
      return false;
    }
  }
  return *text != '\0';
}

template <typename Action>
void ForEachPid(Action action) {
  DIR* proc = opendir("/proc");
  if (proc == nullptr) {
    Refused("/proc", errno);
    return;
  }
  while (const dirent* entry = readdir(proc)) {
    if (IsNumber(entry->d_name)) {
      action(entry->d_name);
    }
  }
  closedir(proc);
}

// True if the file (at most 1 MiB of it) holds `needle`.
bool FileHolds(const char* path, const char* needle) {
  static char bytes[kReadMost + 1];
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    return false;
  }
  size_t used = 0;
  for (ssize_t n = 1; n > 0 && used < kReadMost;) {
    n = read(fd, bytes + used, kReadMost - used);
    used += n > 0 ? static_cast<size_t>(n) : 0;
  }
  close(fd);
  return memmem(bytes, used, needle, strlen(needle)) != nullptr;
}

// `proc-canary PATH NEEDLE`: looks for a host file through every process's root, cwd and descriptors.
int ProcCanary(int argc, char** argv) {
  if (argc < 3) {
    return 2;
  }
  int seen = 0;
  ForEachPid([&](const char* pid) {
    ++seen;
    char path[4400];
    for (const char* way : {"root", "cwd/../../../../../../../..", "task/%s/root"}) {
      if (strchr(way, '%') != nullptr) {
        snprintf(path, sizeof path, "/proc/%s/task/%s/root%s", pid, pid, argv[1]);
      } else {
        snprintf(path, sizeof path, "/proc/%s/%s%s", pid, way, argv[1]);
      }
      if (FileHolds(path, argv[2])) {
        Open(path);
      }
    }
    char fds[300];
    snprintf(fds, sizeof fds, "/proc/%s/fd", pid);
    DIR* dir = opendir(fds);
    if (dir == nullptr) {
      return;
    }
    while (const dirent* entry = readdir(dir)) {
      if (!IsNumber(entry->d_name)) {
        continue;
      }
      snprintf(path, sizeof path, "%s/%s", fds, entry->d_name);
      struct stat info = {};
      if (stat(path, &info) == 0 && S_ISREG(info.st_mode) && FileHolds(path, argv[2])) {
        Open(path);
      }
      snprintf(path, sizeof path, "%s/%s/../../../../../../..%s", fds, entry->d_name, argv[1]);
      if (FileHolds(path, argv[2])) {
        Open(path);
      }
    }
    closedir(dir);
  });
  Say("looked at %d processes", seen);
  return 0;
}

// `proc-grep NEEDLE FILE...`: looks for NEEDLE in /proc/*/FILE, e.g. environ cmdline.
int ProcGrep(int argc, char** argv) {
  if (argc < 3) {
    return 2;
  }
  int seen = 0;
  const pid_t self = getpid();
  ForEachPid([&](const char* pid) {
    if (atoi(pid) == self) {
      return;  // our own argv holds the needle
    }
    ++seen;
    for (int i = 2; i < argc; ++i) {
      char path[512];
      snprintf(path, sizeof path, "/proc/%s/%s", pid, argv[i]);
      if (FileHolds(path, argv[1])) {
        Open(path);
      }
    }
  });
  Say("looked at %d processes", seen);
  return 0;
}

// `self-grep NEEDLE FILE...`: the same for plain paths.
int SelfGrep(int argc, char** argv) {
  for (int i = 2; i < argc; ++i) {
    struct stat info = {};
    if (stat(argv[i], &info) != 0) {
      Refused(argv[i], errno);
    } else if (FileHolds(argv[i], argv[1])) {
      Open(argv[i]);
    } else {
      Say("%s: CLEAN", argv[i]);
    }
  }
  return 0;
}

// `mem-grep NEEDLE`: looks for NEEDLE in every readable page of this process (left by whoever forked it). The needle
// is given rotated by one letter, so that the argument itself is not a hit.
int MemGrep(int argc, char** argv) {
  if (argc < 2) {
    return 2;
  }
  static char needle[256] = {};
  for (size_t i = 0; argv[1][i] != '\0' && i < sizeof needle - 1; ++i) {
    needle[i] = static_cast<char>(argv[1][i] - 1);
  }
  const int mem = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
  FILE* maps = fopen("/proc/self/maps", "re");
  if (mem < 0 || maps == nullptr) {
    Refused("mem", errno);
    return 0;
  }
  char line[512];
  constexpr size_t kOverlap = 256;  // a needle may lie across two pages
  static char page[4096 + kOverlap];
  const auto inside = [](unsigned long address, const char* buffer, size_t size) {
    const auto begin = reinterpret_cast<unsigned long>(buffer);
    return address >= begin && address < begin + size;
  };
  int hits = 0;
  unsigned long scanned = 0;
  while (fgets(line, sizeof line, maps) != nullptr) {
    unsigned long begin = 0, end = 0;
    char perms[8] = {};
    if (sscanf(line, "%lx-%lx %7s", &begin, &end, perms) != 3 || perms[0] != 'r') {
      continue;
    }
    for (unsigned long at = begin; at < end; at += 4096) {
      const ssize_t n = pread(mem, page, sizeof page, static_cast<off_t>(at));
      if (n <= 0) {
        continue;
      }
      ++scanned;
      const char* from = page;
      while (const void* hit =
                 memmem(from, static_cast<size_t>(page + n - from), needle, strlen(needle))) {
        const auto* found = static_cast<const char*>(hit);
        const unsigned long where = at + static_cast<unsigned long>(found - page);
        // Our own two buffers do not count.
        if (!inside(where, needle, sizeof needle) && !inside(where, page, sizeof page)) {
          Open("memory", "%.60s", line);
          ++hits;
        }
        from = found + 1;
      }
    }
  }
  Say("scanned %lu pages, %d hits", scanned, hits);
  return 0;
}

int sweep_opened = 0;
int sweep_seen = 0;

void SweepDir(const char* path, int depth) {
  if (depth > 12) {
    return;
  }
  DIR* dir = opendir(path);
  if (dir == nullptr) {
    return;
  }
  while (const dirent* entry = readdir(dir)) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
      continue;
    }
    char child[2048];
    if (snprintf(child, sizeof child, "%s/%s", path, entry->d_name) >=
        static_cast<int>(sizeof child)) {
      continue;
    }
    struct stat info = {};
    if (lstat(child, &info) != 0) {
      continue;
    }
    if (S_ISDIR(info.st_mode)) {
      if (strcmp(entry->d_name, "fd") != 0 && strcmp(entry->d_name, "task") != 0) {
        SweepDir(child, depth + 1);
      }
    } else if (S_ISREG(info.st_mode)) {
      ++sweep_seen;
      const int fd = open(child, O_WRONLY | O_CLOEXEC | O_NONBLOCK);
      if (fd >= 0) {
        ++sweep_opened;
        Say("writable %s", child);
        close(fd);
      }
    }
  }
  closedir(dir);
}

// `sweep-writable DIR...`: every regular file that opens for writing (nothing is written).
int SweepWritable(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    SweepDir(argv[i], 0);
  }
  Say("seen %d writable %d", sweep_seen, sweep_opened);
  return 0;
}

// `exe-write`: the running programs, ours and the launcher's, through /proc.
int ExeWrite(int, char**) {
  Verdict("self", open("/proc/self/exe", O_WRONLY | O_CLOEXEC));
  ForEachPid([](const char* pid) {
    for (const char* how : {"wronly", "rdwr-trunc"}) {
      char path[300], label[300];
      snprintf(path, sizeof path, "/proc/%s/exe", pid);
      snprintf(label, sizeof label, "%s-%s", pid, how);
      // ETXTBSY is the kernel's refusal for a running program; the launcher's file must not open at all.
      Verdict(label, open(path, how[0] == 'w' ? O_WRONLY | O_CLOEXEC : O_RDWR | O_CLOEXEC));
    }
  });
  return 0;
}

// `mem-write PID`: opens /proc/PID/mem for writing and writes one byte over itself where that is possible.
int MemWrite(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%s/mem", argv[i]);
    Verdict(argv[i], open(path, O_RDWR | O_CLOEXEC));
  }
  return 0;
}

// `auxv`: AT_EXECFN and friends of this process.
int Auxv(int, char**) {
  const char* name = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  Say("execfn %s", name != nullptr ? name : "");
  Say("secure %lu", getauxval(AT_SECURE));
  return 0;
}

constexpr Verb kVerbs[] = {
    {"proc-canary", ProcCanary, "PATH NEEDLE"},  {"proc-grep", ProcGrep, "NEEDLE FILE..."},
    {"self-grep", SelfGrep, "NEEDLE PATH..."},   {"mem-grep", MemGrep, "NEEDLE+1"},
    {"sweep-writable", SweepWritable, "DIR..."}, {"exe-write", ExeWrite, ""},
    {"mem-write", MemWrite, "PID..."},           {"auxv", Auxv, ""},
};

}  // namespace

std::span<const Verb> ProcVerbs() { return kVerbs; }

}  // namespace probe
