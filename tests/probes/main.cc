// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probe.h"

namespace probe {
namespace {

constexpr int kUsage = 2;

// One write per line, so that lines of several processes do not mix.
void WriteLine(const char* label, const char* verdict, const char* format, va_list args) {
  char line[4096];
  size_t used = 0;
  const auto add = [&](const char* text) {
    const size_t length = strlen(text);
    if (used + length < sizeof line - 2) {
      memcpy(line + used, text, length);
      used += length;
    }
  };
  if (label != nullptr) {
    add(label);
    add(": ");
  }
  add(verdict);
  if (format != nullptr) {
    if (verdict[0] != '\0') {
      add(" ");
    }
    const int n = vsnprintf(line + used, sizeof line - used - 1, format, args);
    if (n > 0) {
      used += static_cast<size_t>(n) < sizeof line - used - 1 ? static_cast<size_t>(n)
                                                              : sizeof line - used - 2;
    }
  }
  line[used++] = '\n';
  if (write(STDOUT_FILENO, line, used) < 0) {
    return;  // nobody reads: the verdict is lost, which no test takes for a refusal
  }
}

void Line(const char* label, const char* verdict, const char* format = nullptr, ...)
    __attribute__((format(printf, 3, 4)));
void Line(const char* label, const char* verdict, const char* format, ...) {
  va_list args;
  va_start(args, format);
  WriteLine(label, verdict, format, args);
  va_end(args);
}

const char* ErrnoName(int error_number) {
  const char* name = strerrorname_np(error_number);
  return name != nullptr ? name : "UNKNOWN";
}

}  // namespace

void Open(const char* label, const char* format, ...) {
  va_list args;
  va_start(args, format);
  WriteLine(label, "OPEN", format, args);
  va_end(args);
}

void Say(const char* format, ...) {
  va_list args;
  va_start(args, format);
  WriteLine(nullptr, "", format, args);
  va_end(args);
}

void Refused(const char* label, int error_number) {
  Line(label, "REFUSED", "errno=%s", ErrnoName(error_number));
}
void Reached(const char* label, int error_number) {
  Line(label, "REACHED", "errno=%s", ErrnoName(error_number));
}

long Verdict(const char* label, long result) {
  if (result >= 0) {
    Open(label);
  } else {
    Refused(label, errno);
  }
  return result;
}

long ReachVerdict(const char* label, long result) {
  if (result >= 0) {
    Open(label);
  } else if (errno == EPERM || errno == EACCES || errno == ENOSYS) {
    Refused(label, errno);
  } else {
    Reached(label, errno);
  }
  return result;
}

}  // namespace probe

int main(int argc, char** argv) {
  using probe::Verb;
  const std::span<const Verb> families[] = {
      probe::NamespaceVerbs(),  probe::MountVerbs(),    probe::KernelVerbs(),
      probe::FileVerbs(),       probe::ProcVerbs(),     probe::ProcessVerbs(),
      probe::IpcVerbs(),        probe::NetVerbs(),      probe::SocketVerbs(),
      probe::TerminalVerbs(),   probe::ResourceVerbs(), probe::StorageVerbs(),
      probe::HidingVerbs(),     probe::QueueVerbs(),    probe::LifeVerbs(),
      probe::SharedHostVerbs(),
  };
  if (argc >= 2) {
    for (const auto& family : families) {
      for (const Verb& verb : family) {
        if (strcmp(verb.name, argv[1]) == 0) {
          return verb.run(argc - 1, argv + 1);
        }
      }
    }
    fprintf(stderr, "probe: no verb '%s'\n", argv[1]);
    return probe::kUsage;
  }
  for (const auto& family : families) {
    for (const Verb& verb : family) {
      printf("probe %s %s\n", verb.name, verb.usage);
    }
  }
  return probe::kUsage;
}
