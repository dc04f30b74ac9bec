// SPDX-License-Identifier: Apache-2.0
//
// Makes small ELF files for tests: one PT_LOAD that covers the file, a dynamic section, names. They cannot be run.
#pragma once

#include <elf.h>

#include <cstring>
#include <string>
#include <vector>

namespace coffer::isolation {

struct ElfRecipe {
  std::string interpreter;
  std::vector<std::string> needed;
  std::string rpath;
  std::string runpath;
  std::vector<std::string> symbols;
  uint16_t type = ET_DYN;
#if defined(__aarch64__)
  uint16_t machine = EM_AARCH64;
#else
  uint16_t machine = EM_X86_64;
#endif
  unsigned char elf_class = ELFCLASS64;
  unsigned char data = ELFDATA2LSB;
};

inline std::string MakeElf(const ElfRecipe& recipe) {
  std::string strings(1, '\0');
  const auto add = [&](const std::string& text) {
    const uint64_t at = strings.size();
    strings += text;
    strings += '\0';
    return at;
  };
  constexpr uint64_t kBase = 0x10000;  // so that an address is never an offset by accident
  std::vector<Elf64_Dyn> dynamic;
  const auto entry = [&](int64_t tag, uint64_t value) {
    Elf64_Dyn dyn{};
    dyn.d_tag = tag;
    dyn.d_un.d_val = value;
    dynamic.push_back(dyn);
  };
  for (const std::string& name : recipe.symbols) {
    add(name);
  }
  for (const std::string& name : recipe.needed) {
    entry(DT_NEEDED, add(name));
  }
  if (!recipe.rpath.empty()) {
    entry(DT_RPATH, add(recipe.rpath));
  }
  if (!recipe.runpath.empty()) {
    entry(DT_RUNPATH, add(recipe.runpath));
  }
  const bool has_interpreter = !recipe.interpreter.empty();
  const uint64_t headers = has_interpreter ? 3 : 2;
  const uint64_t strings_at = sizeof(Elf64_Ehdr) + headers * sizeof(Elf64_Phdr);
  const uint64_t interpreter_at = strings_at + strings.size();
  const uint64_t dynamic_at = interpreter_at + recipe.interpreter.size() + 1;
  entry(DT_STRTAB, kBase + strings_at);
  entry(DT_STRSZ, strings.size());
  entry(DT_NULL, 0);
  const uint64_t size = dynamic_at + dynamic.size() * sizeof(Elf64_Dyn);

  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = recipe.elf_class;
  header.e_ident[EI_DATA] = recipe.data;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = recipe.type;
  header.e_machine = recipe.machine;
  header.e_version = EV_CURRENT;
  header.e_phoff = sizeof(Elf64_Ehdr);
  header.e_ehsize = sizeof(Elf64_Ehdr);
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = static_cast<uint16_t>(headers);

  std::string file(reinterpret_cast<const char*>(&header), sizeof(header));
  const auto segment = [&](uint32_t type, uint64_t offset, uint64_t length) {
    Elf64_Phdr program{};
    program.p_type = type;
    program.p_offset = offset;
    program.p_vaddr = kBase + offset;
    program.p_filesz = length;
    program.p_memsz = length;
    file.append(reinterpret_cast<const char*>(&program), sizeof(program));
  };
  segment(PT_LOAD, 0, size);
  segment(PT_DYNAMIC, dynamic_at, dynamic.size() * sizeof(Elf64_Dyn));
  if (has_interpreter) {
    segment(PT_INTERP, interpreter_at, recipe.interpreter.size() + 1);
  }
  file += strings;
  file += recipe.interpreter;
  file += '\0';
  file.append(reinterpret_cast<const char*>(dynamic.data()), dynamic.size() * sizeof(Elf64_Dyn));
  return file;
}

}  // namespace coffer::isolation
