// SPDX-License-Identifier: Apache-2.0
//
// Writes builtin.inc: the tables of names and the finished filters of every profile and role, for both architectures.
//
// Runs on the machine that builds, which need not be the one the program is for. What it prints tells which names of
// the profiles the installed libseccomp has never heard of; those calls are refused (ENOSYS, if they are newer than
// every known one).
#include <array>
#include <cinttypes>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "isolation/seccomp/compile.h"
#include "isolation/seccomp/gen/libseccomp_table.h"
#include "isolation/seccomp/profile.h"
#include "isolation/seccomp/role_profiles.h"

namespace coffer::isolation {
namespace {

constexpr std::array kProfiles = {policy::SyscallProfile::kStrict, policy::SyscallProfile::kDefault,
                                  policy::SyscallProfile::kCompat};
static_assert(static_cast<int>(policy::SyscallProfile::kStrict) == 0 &&
              static_cast<int>(policy::SyscallProfile::kDefault) == 1 &&
              static_cast<int>(policy::SyscallProfile::kCompat) == 2);  // rows of kPrograms

struct Target {
  const char* macro;
  uint32_t arch;
};
constexpr Target kTargets[] = {{"__aarch64__", SCMP_ARCH_AARCH64},
                               {"__x86_64__", SCMP_ARCH_X86_64}};

void WriteEntries(std::FILE* out, const char* name, std::span<const SyscallEntry> entries) {
  std::fprintf(out, "constexpr SyscallEntry %s[] = {\n", name);
  for (const SyscallEntry& entry : entries) {
    std::fprintf(out, "{%u, %u, %u},", entry.number, entry.name_at, entry.name_size);
  }
  std::fprintf(out, "\n};\n");
}

void WriteTable(std::FILE* out, const SyscallTable& table) {
  std::fprintf(out, "constexpr uint32_t kAuditArch = 0x%08x;\nconstexpr bool kHasX32 = %s;\n",
               table.audit_arch, table.has_x32 ? "true" : "false");
  std::fprintf(out, "constexpr char kSyscallNames[] =");
  for (const SyscallEntry& entry : table.by_number) {
    std::fprintf(out, "\n\"%.*s\"", static_cast<int>(entry.name_size), table.NameOf(entry).data());
  }
  std::fprintf(out, ";\n");
  WriteEntries(out, "kSyscallsByName", table.by_name);
  WriteEntries(out, "kSyscallsByNumber", table.by_number);
}

// Writes programs under names of their own. Equal ones share one.
class ProgramWriter {
 public:
  ProgramWriter(std::FILE* out, const SyscallTable& table) : out_(out), table_(table) {}

  // The name of the program's array, or nothing if the profile cannot be compiled.
  std::optional<std::string> Write(const Profile& profile) {
    const auto program = Compile(profile, table_);
    if (!program.ok()) {
      std::fprintf(stderr, "seccomp tables: %s\n", program.error().message.c_str());
      return std::nullopt;
    }
    std::string text;
    for (const sock_filter& line : *program) {
      text += "{" + std::to_string(line.code) + "," + std::to_string(line.jt) + "," +
              std::to_string(line.jf) + "," + std::to_string(line.k) + "u},\n";
    }
    const auto [entry, fresh] = known_.emplace(text, static_cast<int>(known_.size()));
    std::string name = "kProgram" + std::to_string(entry->second);
    if (fresh) {
      std::fprintf(out_, "constexpr sock_filter %s[] = {\n%s};\n", name.c_str(), text.c_str());
    }
    return name;
  }

 private:
  std::FILE* out_;
  const SyscallTable& table_;
  std::map<std::string, int> known_;
};

bool WritePrograms(std::FILE* out, ProgramWriter& writer) {
  std::string matrix;
  for (const policy::SyscallProfile profile : kProfiles) {
    matrix += "  {{";
    for (unsigned bits = 0; bits < kFilterOptionSets; ++bits) {
      const auto name = writer.Write(BuiltinProfile(profile, FilterOptionsOf(bits)));
      if (!name) {
        return false;
      }
      matrix += *name + ", ";
    }
    matrix += "}},\n";
  }
  std::fprintf(
      out,
      "// [profile][IndexOf(options)]\n"
      "constexpr std::array<std::array<std::span<const sock_filter>, %u>, %zu> kPrograms = "
      "{{\n%s}};\n",
      kFilterOptionSets, kProfiles.size(), matrix.c_str());
  return true;
}

bool WriteRoles(std::FILE* out, ProgramWriter& writer) {
  std::string row;
  for (size_t kind = 0; kind < kRoleKinds; ++kind) {
    const auto name = writer.Write(RoleProfile(static_cast<RoleKind>(kind)));
    if (!name) {
      return false;
    }
    row += *name + ", ";
  }
  std::fprintf(out,
               "// [RoleKind]\n"
               "constexpr std::array<std::span<const sock_filter>, %zu> kRolePrograms = {{%s}};\n",
               kRoleKinds, row.c_str());
  return true;
}

// Names that no architecture has: misspelt, or newer than the library.
void ReportUnknown(const std::vector<SyscallTable>& tables) {
  std::set<std::string> unknown;
  for (const Rule& rule : BuiltinProfile(policy::SyscallProfile::kCompat, {true, true}).rules) {
    bool found = false;
    for (const SyscallTable& table : tables) {
      found = found || table.Find(rule.syscall).has_value();
    }
    if (!found) {
      unknown.insert(rule.syscall);
    }
  }
  if (unknown.empty()) {
    return;
  }
  std::printf("seccomp tables: refused, because this libseccomp does not know them:");
  for (const std::string& name : unknown) {
    std::printf(" %s", name.c_str());
  }
  std::printf("\n");
}

int Generate(const char* path) {
  std::FILE* out = std::fopen(path, "w");
  if (out == nullptr) {
    std::perror(path);
    return 1;
  }
  std::fprintf(out, "// Generated by isolation/seccomp/gen/main.cc. Do not edit.\n");
  std::vector<LibseccompTable> owners;
  std::vector<SyscallTable> tables;
  for (const Target& target : kTargets) {
    owners.emplace_back(target.arch);
  }
  bool ok = true;
  for (size_t i = 0; i < owners.size(); ++i) {
    tables.push_back(owners[i].table());
    std::fprintf(out, "#%s defined(%s)\n", i == 0 ? "if" : "elif", kTargets[i].macro);
    WriteTable(out, tables[i]);
    ProgramWriter writer(out, tables[i]);
    ok = WritePrograms(out, writer) && WriteRoles(out, writer) && ok;
  }
  std::fprintf(out, "#else\n#error \"no seccomp tables for this architecture\"\n#endif\n");
  ReportUnknown(tables);
  ok = std::fclose(out) == 0 && ok;
  if (!ok) {
    std::remove(path);
  }
  return ok ? 0 : 1;
}

}  // namespace
}  // namespace coffer::isolation

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: seccomp_gen OUTPUT\n");
    return 2;
  }
  return coffer::isolation::Generate(argv[1]);
}
