// SPDX-License-Identifier: Apache-2.0
#include "isolation/runtime/elf.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>

#include "base/unique_fd.h"
#include "elf_maker.h"

namespace coffer::isolation {
namespace {

Result<ElfInfo> Read(const std::string& bytes, ElfDetail detail = ElfDetail::kProgram) {
  const UniqueFd fd(::memfd_create("elf", MFD_CLOEXEC));
  EXPECT_EQ(::write(fd.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  return ReadElf(fd.get(), detail);
}

ElfRecipe Everything() {
  ElfRecipe recipe;
  recipe.interpreter = "/lib/ld-test.so.1";
  recipe.needed = {"liba.so.1", "libb.so.2"};
  recipe.rpath = "$ORIGIN/../lib:/opt/lib";
  recipe.runpath = "/run/lib";
  return recipe;
}

TEST(Elf, ReadsWhatDecidesTheClosure) {
  const Result<ElfInfo> info = Read(MakeElf(Everything()));
  ASSERT_TRUE(info.ok()) << info.error().message;
  EXPECT_EQ(info->interpreter, "/lib/ld-test.so.1");
  EXPECT_EQ(info->needed, (std::vector<std::string>{"liba.so.1", "libb.so.2"}));
  EXPECT_EQ(info->rpath, "$ORIGIN/../lib:/opt/lib");
  EXPECT_EQ(info->runpath, "/run/lib");
  EXPECT_EQ(info->type, ET_DYN);
  EXPECT_FALSE(info->unwinds);
}

TEST(Elf, NoInterpreterAndNoLibrariesIsStatic) {
  const Result<ElfInfo> info = Read(MakeElf({}));
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(info->interpreter, "");
  EXPECT_TRUE(info->needed.empty());
}

TEST(Elf, SeesWhetherThreadsMayEndEarly) {
  for (const std::string name : {"pthread_exit", "pthread_cancel", "backtrace"}) {
    ElfRecipe recipe;
    for (const size_t padding :
         {0, 4040, 4050, 4060, 4064, 4080, 4096, 5000, 50000}) {  // within a window, across two
      recipe.symbols = {std::string(padding, 'x'), name};
      EXPECT_TRUE(Read(MakeElf(recipe))->unwinds) << name << " after " << padding;
      recipe.symbols = {std::string(padding, 'x'), name.substr(1)};
      EXPECT_FALSE(Read(MakeElf(recipe))->unwinds) << name.substr(1) << " after " << padding;
    }
  }
}

TEST(Elf, ANameThatStraddlesTwoWindowsIsWhole) {
  for (const size_t padding : {3800, 3900, 3950, 4000, 4050, 4090}) {
    ElfRecipe recipe;
    recipe.symbols = {std::string(padding, 'x')};
    recipe.needed = {"libfirst.so.1", std::string(60, 'n'), "liblast.so.1"};
    const Result<ElfInfo> info = Read(MakeElf(recipe), ElfDetail::kLibrary);
    ASSERT_TRUE(info.ok()) << padding;
    EXPECT_EQ(info->needed, recipe.needed) << padding;
  }
}

// The kernel and the loader read some of these one way, other readers another way: none is brought in.
TEST(Elf, WhatHasTwoReadingsIsRefused) {
  const std::string good = MakeElf(Everything());
  ASSERT_TRUE(Read(good).ok());
  const auto header = [&](size_t index) { return sizeof(Elf64_Ehdr) + index * sizeof(Elf64_Phdr); };
  const auto patched = [&](size_t at, const auto& value) {
    std::string bytes = good;
    std::memcpy(bytes.data() + at, &value, sizeof(value));
    return bytes;
  };
  const auto code = [](const std::string& bytes) {
    const Result<ElfInfo> info = Read(bytes);
    return info.ok() ? std::string("read") : info.error().code;
  };
  // The headers of the maker: PT_LOAD, PT_DYNAMIC, PT_INTERP.
  const uint32_t interpreter = PT_INTERP;
  const uint32_t dynamic = PT_DYNAMIC;
  const uint32_t load = PT_LOAD;
  EXPECT_EQ(code(patched(header(1), interpreter)), "runtime.elf.ambiguous");
  EXPECT_EQ(code(patched(header(2), dynamic)), "runtime.elf.ambiguous");
  EXPECT_EQ(code(patched(header(2), load)), "runtime.elf.ambiguous") << "overlapping segments";
  const uint64_t elsewhere = 0x10000;
  EXPECT_EQ(code(patched(header(1) + offsetof(Elf64_Phdr, p_vaddr), elsewhere)),
            "runtime.elf.ambiguous")
      << "the loader looks there, not where the file says";
  // An interpreter whose name ends before the segment does.
  const uint64_t longer = std::strlen("/lib/ld-test.so.1") + 2;
  EXPECT_EQ(code(patched(header(2) + offsetof(Elf64_Phdr, p_filesz), longer)),
            "runtime.elf.damaged");
  // Two DT_RPATH.
  std::string twice = good;
  const Elf64_Dyn rpath{DT_RPATH, {0}};
  const Elf64_Dyn runpath{DT_RUNPATH, {0}};
  const size_t at = twice.find(std::string(reinterpret_cast<const char*>(&runpath.d_tag), 8));
  ASSERT_NE(at, std::string::npos);
  std::memcpy(twice.data() + at, &rpath.d_tag, 8);
  EXPECT_EQ(code(twice), "runtime.elf.ambiguous");
}

TEST(Elf, SaysWhyAnotherKindIsRefused) {
  const auto message = [](const ElfRecipe& recipe) {
    const Result<ElfInfo> info = Read(MakeElf(recipe));
    EXPECT_FALSE(info.ok());
    EXPECT_EQ(info.ok() ? ErrorKind::kInternal : info.error().kind, ErrorKind::kNotExecutable);
    return info.ok() ? "" : info.error().message;
  };
  EXPECT_EQ(message({.elf_class = ELFCLASS32}), "a 32-bit program");
  EXPECT_NE(message({.data = ELFDATA2MSB}).find("big-endian"), std::string::npos);
  EXPECT_NE(message({.machine = EM_RISCV}).find("a program for RISC-V"), std::string::npos);
  EXPECT_EQ(message({.type = ET_REL}), "an object file, not a program");
  EXPECT_EQ(message({.type = ET_CORE}), "a core dump, not a program");
  EXPECT_EQ(Read("#!/bin/sh\n").error().code, "runtime.elf.magic");
  EXPECT_EQ(Read("").error().code, "runtime.elf.magic");
}

TEST(Elf, EveryTruncationIsAnErrorOrAnAnswer) {
  const std::string whole = MakeElf(Everything());
  for (size_t size = 0; size < whole.size(); ++size) {
    const Result<ElfInfo> info = Read(whole.substr(0, size));
    EXPECT_FALSE(info.ok() && info->needed.size() == 2 &&
                 size + 2 * sizeof(Elf64_Dyn) < whole.size())
        << size;
  }
}

TEST(Elf, HugeOffsetsAndCountsDoNoHarm) {
  const std::string whole = MakeElf(Everything());
  const uint64_t values[] = {0,
                             1,
                             0x7fff,
                             0xffff,
                             0x7fffffff,
                             0xffffffff,
                             0x7fffffffffffffff,
                             0xffffffffffffff00,
                             0xffffffffffffffff,
                             0x8000000000000000};
  for (size_t at = 16; at + 8 <= whole.size(); ++at) {
    for (const uint64_t value : values) {
      std::string bytes = whole;
      std::memcpy(bytes.data() + at, &value, sizeof(value));
      const Result<ElfInfo> info = Read(bytes);
      if (info.ok()) {
        EXPECT_LE(info->needed.size(), 512U);
      }
    }
  }
}

TEST(Elf, MutatedProgramsNeverCrash) {
  std::ifstream file("/bin/true", std::ios::binary);
  const std::string original{std::istreambuf_iterator<char>(file), {}};
  ASSERT_GT(original.size(), 1000U);
  std::mt19937 random(20240607);  // NOLINT(cert-msc51-cpp): the same every time
  const UniqueFd fd(::memfd_create("elf", MFD_CLOEXEC));
  ASSERT_EQ(::write(fd.get(), original.data(), original.size()),
            static_cast<ssize_t>(original.size()));
  ASSERT_TRUE(ReadElf(fd.get()).ok());
  // Where it matters: the headers, and the dynamic section, found by asking for its address.
  Elf64_Ehdr header;
  std::memcpy(&header, original.data(), sizeof(header));
  std::vector<std::pair<size_t, size_t>> regions = {
      {0, sizeof(header) + header.e_phnum * sizeof(Elf64_Phdr)}, {0, original.size()}};
  for (size_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, original.data() + header.e_phoff + i * sizeof(segment), sizeof(segment));
    if (segment.p_type == PT_DYNAMIC) {
      regions.emplace_back(segment.p_offset, segment.p_filesz);
    }
  }
  int refused = 0;
  for (int round = 0; round < 5000; ++round) {
    const auto [start, length] = regions[random() % regions.size()];
    std::vector<size_t> changed;
    for (unsigned n = 1 + random() % 4; n > 0; --n) {
      changed.push_back(start + random() % length);
      const char byte = static_cast<char>(random());
      ASSERT_EQ(::pwrite(fd.get(), &byte, 1, static_cast<off_t>(changed.back())), 1);
    }
    refused += ReadElf(fd.get()).ok() ? 0 : 1;
    for (const size_t at : changed) {
      ASSERT_EQ(::pwrite(fd.get(), &original[at], 1, static_cast<off_t>(at)), 1);
    }
  }
  EXPECT_GT(refused, 100);  // the mutations do reach what is checked
  EXPECT_TRUE(ReadElf(fd.get()).ok());
}

}  // namespace
}  // namespace coffer::isolation
