// SPDX-License-Identifier: Apache-2.0
#include "isolation/runtime/elf.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/sys.h"

namespace coffer::isolation {

namespace {

#if defined(__aarch64__)
constexpr uint16_t kNativeMachine = EM_AARCH64;
#elif defined(__x86_64__)
constexpr uint16_t kNativeMachine = EM_X86_64;
#else
#error "unknown machine"
#endif

constexpr size_t kMaxHeaders = 128;
constexpr size_t kMaxDynamic = 4096;
constexpr size_t kMaxNames = 512;
constexpr size_t kMaxName = 4096;
constexpr uint64_t kMaxSymbolNames = 256 << 10;  // a program with more is taken to unwind

constexpr const char* kNo32Bit = "32-bit programs do not run here; build it for 64 bits";

Error Bad(std::string_view code, std::string message, std::string hint = {}) {
  return {ErrorKind::kNotExecutable, "runtime.elf." + std::string(code), std::move(message),
          std::move(hint), 0};
}

// Two readers could read it in two ways, and only the kernel's and the loader's reading count.
Error Ambiguous(std::string_view what) {
  return Bad("ambiguous", "an ELF file with " + std::string(what));
}

Error Damaged() { return Bad("damaged", "a damaged ELF file"); }

// Reads pieces of the file through one buffer. A piece that is not all there is not there.
class Window {
 public:
  static constexpr size_t kSize = 4096;

  explicit Window(int fd) : fd_(fd) {}

  // Bytes [offset, offset + size), valid until the next call; nothing if the file ends before. size <= kSize.
  std::optional<std::string_view> Get(uint64_t offset, size_t size) {
    if (!Load(offset, size)) {
      return std::nullopt;
    }
    return std::string_view(buffer_.data() + (offset - start_), size);
  }

  template <typename T>
  std::optional<T> Value(uint64_t offset) {
    static_assert(std::is_trivially_copyable_v<T>);
    const auto bytes = Get(offset, sizeof(T));
    if (!bytes) {
      return std::nullopt;
    }
    T value;
    ::memcpy(&value, bytes->data(), sizeof(T));
    return value;
  }

  // The string at `offset` that ends with NUL before `end`.
  std::optional<std::string> Text(uint64_t offset, uint64_t end) {
    if (offset >= end || !Load(offset, 1)) {
      return std::nullopt;
    }
    const size_t most = std::min<uint64_t>(kMaxName, end - offset);
    if (const auto short_one = Terminated(offset, most)) {
      return short_one;
    }
    start_ = 0;  // cut by the end of the window: read again from here on
    length_ = 0;
    return Load(offset, 1) ? Terminated(offset, most) : std::nullopt;
  }

 private:
  bool Load(uint64_t offset, size_t size) {
    if (offset >= start_ && offset - start_ <= length_ && length_ - (offset - start_) >= size) {
      return true;
    }
    if (size > kSize ||
        offset > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) - kSize) {
      return false;
    }
    start_ = offset;
    length_ = 0;
    while (length_ < size) {
      const long got =
          raw::Syscall(SYS_pread64, fd_, raw::Arg(buffer_.data() + length_),
                       static_cast<long>(kSize - length_), static_cast<long>(offset + length_));
      if (got == -EINTR) {
        continue;
      }
      if (got <= 0) {
        return false;
      }
      length_ += static_cast<size_t>(got);
    }
    return true;
  }

  std::optional<std::string> Terminated(uint64_t offset, size_t most) const {
    const size_t at = offset - start_;
    const std::string_view view(buffer_.data() + at, std::min(most, length_ - at));
    const size_t end = view.find('\0');
    if (end == std::string_view::npos) {
      return std::nullopt;
    }
    return std::string(view.substr(0, end));
  }

  int fd_;
  uint64_t start_ = 0;
  size_t length_ = 0;
  std::array<char, kSize> buffer_;
};

std::string MachineName(uint16_t machine) {
  switch (machine) {
    case EM_X86_64:
      return "x86-64";
    case EM_AARCH64:
      return "64-bit ARM";
    case EM_RISCV:
      return "RISC-V";
    case EM_PPC64:
      return "POWER";
    case EM_S390:
      return "s390";
    default:
      return "another machine (ELF machine " + std::to_string(machine) + ")";
  }
}

Status CheckHeader(const Elf64_Ehdr& header) {
  if (header.e_ident[EI_CLASS] == ELFCLASS32) {
    return Bad("class", "a 32-bit program", kNo32Bit);
  }
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_VERSION] != EV_CURRENT) {
    return Damaged();
  }
  if (header.e_ident[EI_DATA] != ELFDATA2LSB) {
    return Bad("machine", "a big-endian program, and this machine is little-endian");
  }
  if (header.e_machine != kNativeMachine) {
    return Bad("machine", "a program for " + MachineName(header.e_machine) +
                              ", and this machine is " + MachineName(kNativeMachine));
  }
  if (header.e_type != ET_EXEC && header.e_type != ET_DYN) {
    return Bad("type", header.e_type == ET_REL    ? "an object file, not a program"
                       : header.e_type == ET_CORE ? "a core dump, not a program"
                                                  : "an ELF file of unknown type, not a program");
  }
  if (header.e_phnum == 0 || header.e_phnum > kMaxHeaders ||
      header.e_phentsize != sizeof(Elf64_Phdr)) {
    return Damaged();
  }
  return {};
}

struct Layout {
  std::vector<Elf64_Phdr> loads;
  Elf64_Phdr dynamic{};
  Elf64_Phdr interpreter{};

  bool Overlaps() const {
    for (size_t i = 0; i < loads.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        const Elf64_Phdr& low = loads[i].p_vaddr < loads[j].p_vaddr ? loads[i] : loads[j];
        const Elf64_Phdr& high = loads[i].p_vaddr < loads[j].p_vaddr ? loads[j] : loads[i];
        if (high.p_vaddr - low.p_vaddr < low.p_memsz && high.p_memsz > 0) {
          return true;
        }
      }
    }
    return false;
  }

  // Where `address` lies in the file, and where its segment ends there.
  std::optional<std::pair<uint64_t, uint64_t>> Offset(uint64_t address) const {
    for (const Elf64_Phdr& load : loads) {
      if (address >= load.p_vaddr && address - load.p_vaddr < load.p_filesz) {
        const uint64_t inside = address - load.p_vaddr;
        if (load.p_offset > std::numeric_limits<uint64_t>::max() - load.p_filesz) {
          return std::nullopt;
        }
        return std::pair(load.p_offset + inside, load.p_offset + load.p_filesz);
      }
    }
    return std::nullopt;
  }
};

Result<Layout> ReadLayout(Window& file, const Elf64_Ehdr& header) {
  Layout layout;
  for (size_t i = 0; i < header.e_phnum; ++i) {
    if (header.e_phoff > std::numeric_limits<uint64_t>::max() - kMaxHeaders * sizeof(Elf64_Phdr)) {
      return Damaged();
    }
    const auto entry = file.Value<Elf64_Phdr>(header.e_phoff + i * sizeof(Elf64_Phdr));
    if (!entry) {
      return Damaged();
    }
    if (entry->p_type == PT_LOAD) {
      layout.loads.push_back(*entry);
    } else if (entry->p_type == PT_DYNAMIC) {
      if (layout.dynamic.p_type == PT_DYNAMIC) {
        return Ambiguous("two dynamic sections");
      }
      layout.dynamic = *entry;
    } else if (entry->p_type == PT_INTERP) {
      // The kernel takes the first, other readers the last.
      if (layout.interpreter.p_type == PT_INTERP) {
        return Ambiguous("two interpreters");
      }
      layout.interpreter = *entry;
    }
  }
  if (layout.Overlaps()) {
    return Ambiguous("segments that overlap");
  }
  // The loader finds the dynamic section by its address, we by its place in the file: both must be the same.
  if (layout.dynamic.p_type == PT_DYNAMIC) {
    const auto place = layout.Offset(layout.dynamic.p_vaddr);
    if (!place || place->first != layout.dynamic.p_offset) {
      return Ambiguous("a dynamic section in two places");
    }
  }
  return layout;
}

// What the dynamic section points to, before the strings are looked up.
struct Dynamic {
  std::vector<uint64_t> needed;
  std::optional<uint64_t> soname;
  std::optional<uint64_t> rpath;
  std::optional<uint64_t> runpath;
  std::optional<uint64_t> strings;
  std::optional<uint64_t> strings_size;
};

Result<Dynamic> ReadDynamic(Window& file, const Elf64_Phdr& segment) {
  Dynamic dynamic;
  const size_t count = std::min<uint64_t>(segment.p_filesz / sizeof(Elf64_Dyn), kMaxDynamic);
  if (segment.p_offset > std::numeric_limits<uint64_t>::max() - kMaxDynamic * sizeof(Elf64_Dyn)) {
    return Damaged();
  }
  const auto once = [](std::optional<uint64_t>& place, uint64_t value) {
    return !std::exchange(place, value).has_value();
  };
  bool single = true;
  for (size_t i = 0; i < count; ++i) {
    const auto entry = file.Value<Elf64_Dyn>(segment.p_offset + i * sizeof(Elf64_Dyn));
    if (!entry) {
      return Damaged();
    }
    if (!single) {
      return Ambiguous("the same dynamic entry twice");
    }
    switch (entry->d_tag) {
      case DT_NULL:
        return dynamic;
      case DT_NEEDED:
        if (dynamic.needed.size() == kMaxNames) {
          return Damaged();
        }
        dynamic.needed.push_back(entry->d_un.d_val);
        break;
      case DT_SONAME:
        single = once(dynamic.soname, entry->d_un.d_val);
        break;
      case DT_RPATH:
        single = once(dynamic.rpath, entry->d_un.d_val);
        break;
      case DT_RUNPATH:
        single = once(dynamic.runpath, entry->d_un.d_val);
        break;
      case DT_STRTAB:
        single = once(dynamic.strings, entry->d_un.d_ptr);
        break;
      case DT_STRSZ:
        single = once(dynamic.strings_size, entry->d_un.d_val);
        break;
      default:
        break;
    }
  }
  return Ambiguous("a dynamic section without an end");
}

bool NamesUnwinder(Window& file, uint64_t begin, uint64_t end) {
  constexpr size_t kOverlap = 32;  // longer than any of the names
  constexpr size_t kStep = Window::kSize - kOverlap;
  if (end - begin > kMaxSymbolNames) {
    return true;
  }
  // An interpreter has fifty kilobytes of names, and these skip most of them.
  static constexpr std::string_view kNames[] = {"pthread_cancel", "pthread_exit", "backtrace"};
  const auto searcher = [](std::string_view name) {
    return std::boyer_moore_horspool_searcher(name.begin(), name.end());
  };
  const std::array searchers = {searcher(kNames[0]), searcher(kNames[1]), searcher(kNames[2])};
  for (uint64_t at = begin; at < end; at += kStep) {
    const auto piece = file.Get(at, std::min<uint64_t>(Window::kSize, end - at));
    if (!piece) {
      return false;
    }
    for (const auto& search : searchers) {
      if (std::search(piece->begin(), piece->end(), search) != piece->end()) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace

bool LooksLikeElf(std::string_view head) {
  return head.starts_with(std::string_view(ELFMAG, SELFMAG));
}

Result<ElfInfo> ReadElf(int fd, ElfDetail detail) {
  Window file(fd);
  const auto magic = file.Get(0, SELFMAG);
  if (!magic || !LooksLikeElf(*magic)) {
    return Bad("magic", "not an ELF program");
  }
  // A 32-bit header is shorter, so the class is judged before the whole header is asked for.
  if (const auto start = file.Get(0, EI_NIDENT); start && (*start)[EI_CLASS] == ELFCLASS32) {
    return Bad("class", "a 32-bit program", kNo32Bit);
  }
  const auto header = file.Value<Elf64_Ehdr>(0);
  if (!header) {
    return Damaged();
  }
  TRY(CheckHeader(*header));
  TRY_ASSIGN(const Layout layout, ReadLayout(file, *header));

  ElfInfo info;
  info.type = header->e_type;
  info.machine = header->e_machine;
  if (detail == ElfDetail::kProgram && layout.interpreter.p_type == PT_INTERP) {
    const uint64_t begin = layout.interpreter.p_offset;
    const uint64_t size = std::min<uint64_t>(layout.interpreter.p_filesz, kMaxName);
    const auto path = begin > std::numeric_limits<uint64_t>::max() - size
                          ? std::nullopt
                          : file.Text(begin, begin + size);
    // The kernel wants the NUL as the last byte of the segment; one before it would end the name for some readers only.
    if (!path || !path->starts_with('/') || path->size() + 1 != layout.interpreter.p_filesz) {
      return Damaged();
    }
    info.interpreter = *path;
  }
  if (layout.dynamic.p_type != PT_DYNAMIC) {
    return info;
  }
  info.dynamic = true;
  TRY_ASSIGN(const Dynamic dynamic, ReadDynamic(file, layout.dynamic));
  if (!dynamic.strings) {
    return dynamic.needed.empty() ? Result<ElfInfo>(info) : Damaged();
  }
  const auto place = layout.Offset(*dynamic.strings);
  if (!place) {
    return dynamic.needed.empty() ? Result<ElfInfo>(info) : Damaged();
  }
  const uint64_t begin = place->first;
  const uint64_t end = begin + std::min(dynamic.strings_size.value_or(0), place->second - begin);
  const auto text = [&](uint64_t offset) -> std::optional<std::string> {
    return offset >= end - begin ? std::nullopt : file.Text(begin + offset, end);
  };
  if (detail == ElfDetail::kProgram) {
    info.unwinds = NamesUnwinder(
        file, begin, end);  // first: where it fits, the names below come from the same read
  }
  for (const uint64_t offset : dynamic.needed) {
    const auto name = text(offset);
    if (!name || name->empty()) {
      return Damaged();
    }
    info.needed.push_back(*name);
  }
  for (const auto& [offset, member] :
       {std::pair(dynamic.soname, &ElfInfo::soname), std::pair(dynamic.rpath, &ElfInfo::rpath),
        std::pair(dynamic.runpath, &ElfInfo::runpath)}) {
    if (!offset) {
      continue;
    }
    const auto value = text(*offset);
    if (!value) {
      return Damaged();
    }
    info.*member = *value;
  }
  return info;
}

}  // namespace coffer::isolation
