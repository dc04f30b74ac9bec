// SPDX-License-Identifier: Apache-2.0
//
// Files: reading, writing, linking, making devices, executing what should not be executable.
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "probe.h"

namespace probe {
namespace {

// `open-read PATH...`: OPEN with the first bytes of each.
int OpenRead(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const int fd = open(argv[i], O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
      Refused(argv[i], errno);
      continue;
    }
    char bytes[512] = {};
    const ssize_t n = read(fd, bytes, sizeof bytes - 1);
    if (n < 0) {
      Refused(argv[i], errno);
    } else {
      Open(argv[i], "%s", bytes);
    }
    close(fd);
  }
  return 0;
}

// `open-write PATH...`: opens for writing, writes nothing.
int OpenWrite(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const int fd = open(argv[i], O_WRONLY | O_CLOEXEC | O_NONBLOCK);
    Verdict(argv[i], fd);
    if (fd >= 0) {
      close(fd);
    }
  }
  return 0;
}

// `same-write PATH`: writes back the bytes the file already has.
int SameWrite(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    char bytes[4096] = {};
    int fd = open(argv[i], O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd >= 0 ? read(fd, bytes, sizeof bytes) : -1;
    if (fd >= 0) {
      close(fd);
    }
    fd = open(argv[i], O_WRONLY | O_CLOEXEC);
    if (fd < 0) {
      Refused(argv[i], errno);
      continue;
    }
    Verdict(argv[i], write(fd, bytes, n > 0 ? static_cast<size_t>(n) : 0));
    close(fd);
  }
  return 0;
}

// `write PATH TEXT`: creates or truncates.
int Write(int argc, char** argv) {
  if (argc < 3) {
    return 2;
  }
  const int fd = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) {
    Refused(argv[1], errno);
    return 0;
  }
  Verdict(argv[1], write(fd, argv[2], strlen(argv[2])));
  close(fd);
  return 0;
}

// `create PATH...`: makes a new file.
int Create(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    Verdict(argv[i], open(argv[i], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  }
  return 0;
}

// `mknod b|c|p MAJOR MINOR PATH`, and opens what it made.
int Mknod(int argc, char** argv) {
  if (argc < 5) {
    return 2;
  }
  const mode_t type = argv[1][0] == 'b' ? S_IFBLK : argv[1][0] == 'c' ? S_IFCHR : S_IFIFO;
  const long made = mknod(argv[4], type | 0666, makedev(atoi(argv[2]), atoi(argv[3])));
  Verdict("mknod", made);
  if (made == 0) {
    Verdict("open", open(argv[4], O_RDWR | O_NONBLOCK | O_CLOEXEC));
  }
  return 0;
}

int Link(int argc, char** argv) {
  if (argc < 3) {
    return 2;
  }
  Verdict(nullptr, link(argv[1], argv[2]));
  return 0;
}

int Symlink(int argc, char** argv) {
  if (argc < 3) {
    return 2;
  }
  Verdict(nullptr, symlink(argv[1], argv[2]));
  return 0;
}

// `copy FROM TO MODE`: e.g. a setuid copy of a program.
int Copy(int argc, char** argv) {
  if (argc < 4) {
    return 2;
  }
  const int in = open(argv[1], O_RDONLY | O_CLOEXEC);
  const int out = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
  if (in < 0 || out < 0) {
    Refused("copy", errno);
    return 0;
  }
  char bytes[65536];
  for (ssize_t n = read(in, bytes, sizeof bytes); n > 0; n = read(in, bytes, sizeof bytes)) {
    if (write(out, bytes, static_cast<size_t>(n)) != n) {
      Refused("copy", errno);
      return 0;
    }
  }
  close(out);
  Open("copy");
  Verdict("chmod", chmod(argv[2], static_cast<mode_t>(strtol(argv[3], nullptr, 8))));
  return 0;
}

// `exec PATH ARG...`: OPEN comes from the program that runs.
int Exec(int argc, char** argv) {
  if (argc < 2) {
    return 2;
  }
  execv(argv[1], argv + 1);
  Refused("exec", errno);
  return 0;
}

// `memfd-exec VERB...`: runs this program again from memory that has no name.
int MemfdExec(int argc, char** argv) {
  const long memory = Call(SYS_memfd_create, "x", 0);
  if (memory < 0) {
    Refused("memfd_create", errno);
    return 0;
  }
  const int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  if (self < 0) {
    Refused("open-self", errno);
    return 0;
  }
  char bytes[65536];
  for (ssize_t n = read(self, bytes, sizeof bytes); n > 0; n = read(self, bytes, sizeof bytes)) {
    if (write(static_cast<int>(memory), bytes, static_cast<size_t>(n)) != n) {
      Refused("write", errno);
      return 0;
    }
  }
  char* empty[] = {nullptr};
  argv[0] = const_cast<char*>("memfd");
  Call(SYS_execveat, memory, "", argc > 1 ? argv : empty, empty, AT_EMPTY_PATH);
  Refused("execveat", errno);
  return 0;
}

// `ids`: who am I, after exec of a setuid file for example.
int Ids(int, char**) {
  uid_t r = 0, e = 0, s = 0;
  getresuid(&r, &e, &s);
  Say("ids uid=%u euid=%u suid=%u gid=%u egid=%u", r, e, s, getgid(), getegid());
  return 0;
}

// `list DIR...`: names, one per line, with a letter for the type.
int List(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    DIR* dir = opendir(argv[i]);
    if (dir == nullptr) {
      Refused(argv[i], errno);
      continue;
    }
    while (const dirent* entry = readdir(dir)) {
      if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
        Say("entry %s", entry->d_name);
      }
    }
    closedir(dir);
  }
  return 0;
}

// `fchdir-escape CANARY`: every descriptor that is a directory is a way out.
int FchdirEscape(int argc, char** argv) {
  const char* canary = argc > 1 ? argv[1] : "/etc/hostname";
  for (int fd = 0; fd < 1024; ++fd) {
    struct stat info = {};
    if (fstat(fd, &info) != 0 || !S_ISDIR(info.st_mode)) {
      continue;
    }
    char path[4096];
    snprintf(path, sizeof path, "../../../../../../../../../..%s", canary);
    char label[32];
    snprintf(label, sizeof label, "fd%d", fd);
    Verdict(label, openat(fd, path, O_RDONLY | O_CLOEXEC));
  }
  Say("done");
  return 0;
}

// `setattr PATH`: what could turn a shared file into a trap for its owner.
int SetAttributes(int argc, char** argv) {
  const char* path = argc > 1 ? argv[1] : ".";
  Verdict("chmod-setuid", chmod(path, 06755));
  Verdict("chown-root", chown(path, 0, 0));
  Verdict("setxattr-caps",
          Call(SYS_setxattr, path, "security.capability",
               "\1\0\0\2\377\377\377\377\0\0\0\0\377\377\377\377\0\0\0\0", 20UL, 0));
  return 0;
}

constexpr Verb kVerbs[] = {
    {"open-read", OpenRead, "PATH..."},
    {"open-write", OpenWrite, "PATH..."},
    {"same-write", SameWrite, "PATH..."},
    {"write", Write, "PATH TEXT"},
    {"create", Create, "PATH..."},
    {"mknod", Mknod, "b|c|p MAJOR MINOR PATH"},
    {"link", Link, "FROM TO"},
    {"symlink", Symlink, "TARGET NAME"},
    {"copy", Copy, "FROM TO MODE"},
    {"exec", Exec, "PATH ARG..."},
    {"memfd-exec", MemfdExec, "VERB..."},
    {"ids", Ids, ""},
    {"list", List, "DIR..."},
    {"fchdir-escape", FchdirEscape, "CANARY"},
    {"setattr", SetAttributes, "PATH"},
};

}  // namespace

std::span<const Verb> FileVerbs() { return kVerbs; }

}  // namespace probe
