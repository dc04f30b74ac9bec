// SPDX-License-Identifier: Apache-2.0
//
// Finds a program on the host, opens it, and says what kind it is: an ELF program or a script with a shebang.
//
// Nothing is executed to find out. A setuid or setgid program, a directory, a file without the x bit and a program for
// another machine are errors here (kNotExecutable), so that no set ever holds one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "isolation/runtime/elf.h"
#include "isolation/runtime/real_path.h"

namespace coffer::isolation {

// "#!/usr/bin/env -S python3 -u" -> {"/usr/bin/env", "-S python3 -u"}: one argument, as the kernel splits it.
struct Shebang {
  std::string interpreter;
  std::string argument;
  bool windows = false;  // the line ends in a carriage return
  // windows, and without an argument: the kernel looks for an interpreter whose name ends in a carriage return
  bool missing = false;
};

// Of the first line of a file; empty interpreter if it is none, or if the kernel would not run it: a name that is cut
// off by the end of the 256 bytes that count, a NUL, a carriage return.
Shebang ParseShebang(std::string_view head);
// For a script with `windows`.
Error EndsInCarriageReturn(const std::string& script);

struct Program {
  RealPaths::Place place;
  struct stat status{};
  bool is_script = false;
  Shebang shebang;  // of a script
  ElfInfo elf;      // of a program
  bool named_by_caller =
      false;  // typed, or found on the caller's PATH; set by the caller of OpenProgram
};

enum class NeedX : uint8_t { kYes, kNo };  // kNo: for scripts that their interpreter will read

// `path` is absolute. kNotFound or kNotExecutable; messages call the file `shown`, or `path` if that is empty.
Result<Program> OpenProgram(RealPaths& paths, const std::string& path, NeedX need_x = NeedX::kYes,
                            const std::string& shown = {});

// The directories that are searched, in order.
const std::vector<std::string>& SearchPath();

// Where `name` (no slash) is, absolute: on the caller's PATH, behind a shim if that is one, then on SearchPath().
// kNotFound or kNotExecutable.
Result<std::string> FindProgram(const std::string& name);

// On SearchPath() alone; empty if it is not there.
std::string FindSystemProgram(std::string_view name);

// `path` made absolute by the working directory.
Result<std::string> Absolute(const std::string& path);

}  // namespace coffer::isolation
