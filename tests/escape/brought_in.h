// SPDX-License-Identifier: Apache-2.0
//
// What the tests of things that come in with a command share: a project with a program and its library, as an earlier
// payload could have left it, and a secret of the caller's beside it.
#pragma once

#include <elf.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "base/exit_codes.h"
#include "base/unique_fd.h"
#include "tests/support/host.h"
#include "tests/support/tracer.h"

namespace coffer::test {

namespace fs = std::filesystem;

// The program header `index` of an ELF file in memory.
inline Elf64_Phdr ProgramHeader(const std::string& bytes, size_t index) {
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  Elf64_Phdr entry;
  std::memcpy(&entry, bytes.data() + header.e_phoff + index * sizeof(entry), sizeof(entry));
  return entry;
}

inline size_t HeaderCount(const std::string& bytes) {
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  return header.e_phnum;
}

inline void PutProgramHeader(std::string& bytes, size_t index, const Elf64_Phdr& entry) {
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  std::memcpy(bytes.data() + header.e_phoff + index * sizeof(entry), &entry, sizeof(entry));
}

// An interpreter entry that names `path`, whose text is appended to the file.
inline Elf64_Phdr InterpreterEntry(std::string& bytes, const std::string& path) {
  Elf64_Phdr entry{};
  entry.p_type = PT_INTERP;
  entry.p_offset = bytes.size();
  entry.p_filesz = entry.p_memsz = path.size() + 1;
  entry.p_align = 1;
  entry.p_flags = PF_R;
  bytes += path + std::string(1, '\0');
  return entry;
}

// Everything is examined when root's supervisor clones the first mount, and when it tells init that its plan is
// complete (isolation/boundary.h, Complete): the mounts of a user, and Landlock's rules, are made after that.
inline bool HasExamined(const TracedProcess& caller) {
  if (caller.depth != 0) {
    return false;
  }
  if (caller.number == SYS_sendto && caller.words[2] == 1) {
    char word = 0;
    const UniqueFd memory(
        ::open(("/proc/" + std::to_string(caller.pid) + "/mem").c_str(), O_RDONLY | O_CLOEXEC));
    return ::pread(memory.get(), &word, 1, static_cast<off_t>(caller.words[1])) == 1 && word == 'P';
  }
  return caller.number == SYS_open_tree;
}

class BroughtIn : public LevelTest {
 protected:
  BroughtIn() {
    fs::create_directories(home_ / "secrets");
    dir_.Write("home/secrets/key", token_);
    fs::create_directories(project_ / "bin");
    fs::create_directories(project_ / "lib");
    const fs::path fixture = fs::path(ProbePath()).parent_path() / "own_tree";
    fs::copy_file(fixture / "bin/tool", tool_);
    fs::copy_file(fixture / "lib/libown.so", project_ / "lib/libown.so");
    fs::permissions(tool_, fs::perms(0755));
    options_.environment = {{"HOME=" + home_.string(), "PATH=/usr/bin:/bin"}};
  }

  RunResult Run(const Strings& command, const Strings& flags = {}) {
    return RunCoffer(Flags(flags), command, options_);
  }
  // With its own library, and with the secret named as an argument: it prints what it can.
  RunResult RunTool() { return Run({tool_, SecretFile(), SecretDirectory()}); }
  std::string SecretFile() const { return home_ / "secrets/key"; }
  std::string SecretDirectory() const { return home_ / "secrets"; }

  // The honest project runs, and the secret stays outside.
  void ExpectHonest() {
    const RunResult honest = RunTool();
    EXPECT_EQ(honest.exit, 0) << honest.Describe();
    EXPECT_TRUE(Contains(honest.out, "own library")) << honest.Describe();
    ExpectNothing(honest);
  }
  // The control: the same program prints the secret where the caller shows it.
  bool PrintsWhatItIsShown() {
    if (!container() && IsRoot()) {
      // As root the process level takes no mounts: the program outside is the control.
      return Contains(RunProgram({tool_, SecretFile()}).out, token_);
    }
    return Contains(Run({tool_, SecretFile()}, {"--ro", SecretDirectory()}).out, token_);
  }
  void ExpectNothing(const RunResult& result) {
    EXPECT_FALSE(Contains(result.out, token_)) << result.Describe();
    EXPECT_FALSE(Contains(result.out, "holds key")) << result.Describe();
    EXPECT_FALSE(result.timed_out) << result.Describe();
  }
  // Nothing shown, and nothing run, for this reason.
  void ExpectRefused(const RunResult& result, const std::string& error_class,
                     int status = kExitRefused) {
    ExpectNothing(result);
    EXPECT_EQ(result.exit, status) << result.Describe();
    EXPECT_TRUE(result.err.starts_with("coffer: " + error_class + ": ")) << result.Describe();
  }
  // The bytes of the tool, with another interpreter.
  std::string WithInterpreter(const std::string& original, const std::string& named) {
    std::string bytes = original;
    for (size_t i = 0; i < HeaderCount(bytes); ++i) {
      if (ProgramHeader(bytes, i).p_type == PT_INTERP) {
        const Elf64_Phdr entry = InterpreterEntry(bytes, named);
        PutProgramHeader(bytes, i, entry);
      }
    }
    return bytes;
  }
  // Puts a link to `target` in the place of `path`.
  static void ReplaceByLink(const fs::path& path, const fs::path& target) {
    fs::rename(path, path.string() + ".away");
    fs::create_symlink(target, path);
  }

  TempDir dir_;
  const std::string token_ = NewToken();
  const fs::path home_ = dir_ / "home";
  const fs::path project_ = dir_ / "proj";
  const std::string tool_ = (project_ / "bin/tool").string();
  RunOptions options_;
};

}  // namespace coffer::test
