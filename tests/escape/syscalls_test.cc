// SPDX-License-Identifier: Apache-2.0
//
// SC: system calls that untrusted code has no business with, and the ways around a filter.
#include <elf.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/support/host.h"
#include "tests/support/verdicts.h"

namespace coffer::test {
namespace {

class SyscallEscape : public LevelTest {};

struct Named {
  const char* name;
  long number;
};
#define COFFER_NAMED(name) \
  Named { #name, SYS_##name }
// What must be refused. What a sweep with nonsense arguments cannot reach anyway proves nothing, so root's control must
// reach each of them.
constexpr Named kForbidden[] = {
    COFFER_NAMED(io_uring_setup),
    COFFER_NAMED(io_uring_enter),
    COFFER_NAMED(io_uring_register),
    COFFER_NAMED(bpf),
    COFFER_NAMED(userfaultfd),
    COFFER_NAMED(perf_event_open),
    COFFER_NAMED(ptrace),
    COFFER_NAMED(process_vm_readv),
    COFFER_NAMED(process_vm_writev),
    COFFER_NAMED(keyctl),
    COFFER_NAMED(add_key),
    COFFER_NAMED(request_key),
    COFFER_NAMED(mount),
    COFFER_NAMED(umount2),
    COFFER_NAMED(pivot_root),
    COFFER_NAMED(fsopen),
    COFFER_NAMED(fsconfig),
    COFFER_NAMED(fsmount),
    COFFER_NAMED(fspick),
    COFFER_NAMED(open_tree),
    COFFER_NAMED(move_mount),
    COFFER_NAMED(mount_setattr),
    COFFER_NAMED(unshare),
    COFFER_NAMED(setns),
    COFFER_NAMED(open_by_handle_at),
    COFFER_NAMED(name_to_handle_at),
    COFFER_NAMED(quotactl),
    COFFER_NAMED(acct),
    COFFER_NAMED(swapon),
    COFFER_NAMED(swapoff),
    COFFER_NAMED(reboot),
    COFFER_NAMED(clock_settime),
    COFFER_NAMED(settimeofday),
    COFFER_NAMED(chroot),
    COFFER_NAMED(fanotify_init),
    COFFER_NAMED(pidfd_getfd),
    COFFER_NAMED(sethostname),
    COFFER_NAMED(setdomainname),
    COFFER_NAMED(syslog),
    COFFER_NAMED(clone3),
    COFFER_NAMED(kcmp),
    COFFER_NAMED(init_module),
    COFFER_NAMED(finit_module),
    COFFER_NAMED(delete_module),
    COFFER_NAMED(kexec_load),
};
#undef COFFER_NAMED

std::set<long> Reached(const std::string& out) {
  std::set<long> numbers;
  for (const std::string& line : Lines(out)) {
    long number = 0;
    if (sscanf(line.c_str(), "reached %ld", &number) == 1) {
      numbers.insert(number);
    }
  }
  return numbers;
}

TEST_P(SyscallEscape, SC_01_SweepOfAllNumbers) {
  const std::set<long> outside = Reached(RunOutside({"sweep-syscalls"}).out);
  const RunResult result = RunProbe(Flags({"--wall", "60s", "--cpu", "60s"}), {"sweep-syscalls"},
                                    {.timeout = Seconds(90)});
  const std::set<long> inside = Reached(result.out);
  ASSERT_TRUE(Contains(result.out, "total reached")) << result.Describe();
  // Not in every kernel; SC-07 has them.
  const std::set<long> maybe_missing = {SYS_init_module, SYS_finit_module, SYS_delete_module,
                                        SYS_kexec_load};
  for (const Named& call : kForbidden) {
    EXPECT_FALSE(inside.contains(call.number)) << call.name << " is reachable inside";
    EXPECT_TRUE(outside.contains(call.number) || maybe_missing.contains(call.number) || !IsRoot())
        << "NO-CONTROL: " << call.name;
  }
  // The sweep inside must not find more than outside, and the filter must be a list of what is allowed: numbers that
  // no kernel of today has are refused too, and at least a hundred real ones.
  for (const long number : inside) {
    EXPECT_TRUE(outside.contains(number)) << number << " is reachable inside only";
  }
  EXPECT_GT(outside.size(), 250U) << "NO-CONTROL";
  EXPECT_LT(inside.size(), outside.size() - 60) << "the filter refuses very little";
  EXPECT_GT(inside.size(), 100U) << "nothing would run with so few";
  RecordProperty("reached_outside", static_cast<int>(outside.size()));
  RecordProperty("reached_inside", static_cast<int>(inside.size()));
}

TEST_P(SyscallEscape, SC_02_IoUring) { ExpectContained("SC-02", Flags(), {"io_uring"}); }

TEST_P(SyscallEscape, SC_03_Bpf) {
  ExpectContained("SC-03", Flags(), {"bpf"}, {.syscalls = {{"", "bpf"}}});
}
TEST_P(SyscallEscape, SC_03_PerfEvents) {
  ExpectContained("SC-03", Flags(), {"perf"}, {.syscalls = {{"", "perf_event_open"}}});
}
TEST_P(SyscallEscape, SC_03_Userfaultfd) {
  ExpectContained("SC-03", Flags(), {"userfaultfd"}, {.syscalls = {{"", "userfaultfd"}}});
}

TEST_P(SyscallEscape, SC_04_TraceAChild) { ExpectContained("SC-04", Flags(), {"ptrace-child"}); }
TEST_P(SyscallEscape, SC_04_MemoryOfAChild) { ExpectContained("SC-04", Flags(), {"vm-child"}); }

TEST_P(SyscallEscape, SC_04_TraceInitAndTheHost) {
  Background witness({ProbePath(), "wait", "witness"});
  ASSERT_TRUE(witness.WaitForOutput("ready"));
  const std::string pid = std::to_string(witness.pid());
  EXPECT_TRUE(Contains(RunOutside({"ptrace-pid", pid}).out, "OPEN") || TracingIsForbidden())
      << "NO-CONTROL";
  const RunResult result = RunProbe(
      Flags(), {"ptrace-pid", "1", pid, std::to_string(getpid()), std::to_string(getppid())});
  EXPECT_FALSE(Contains(result.out, "OPEN")) << result.Describe();
  EXPECT_GT(DeniedCount(result.receipt, "ptrace"), 0) << result.Describe();
}

TEST_P(SyscallEscape, SC_05_DescriptorsOfOthers) {
  Expectation expectation;
  expectation.labels = {"pidfd_getfd"};
  ExpectContained("SC-05", Flags(), {"pidfd-getfd", "child"}, expectation);
  const RunResult result = RunProbe(Flags(), {"pidfd-getfd", "1"});
  ExpectRan(result);
  EXPECT_FALSE(Contains(result.out, "pidfd_getfd: OPEN")) << result.Describe();
}

TEST_P(SyscallEscape, SC_06_Mounts) {
  TempDir dir;
  Expectation expectation;
  expectation.control = Control::kNamespace;
  expectation.control_verb = {"mount-all", dir.path()};
  for (const char* type : {"tmpfs", "proc", "sysfs", "cgroup", "cgroup2", "mqueue", "devpts",
                           "overlay", "bind", "remount-rw"}) {
    expectation.syscalls[std::string("mount-") + type] = "mount";
  }
  ExpectContained("SC-06", Flags(), {"mount-all", "/tmp"}, expectation);
}

TEST_P(SyscallEscape, SC_07_TheMachine) {
  // Modules and kexec are not in every kernel: there the receipt must say that the refusal was ours.
  ExpectContained("SC-07", Flags(), {"machine"});
}

TEST_P(SyscallEscape, SC_08_Fanotify) {
  Expectation expectation;
  expectation.syscalls = {{"class-content", "fanotify_init"}, {"report-fid", "fanotify_init"}};
  ExpectContained("SC-08", Flags(), {"fanotify"}, expectation);
}

// A 32-bit program of 200 bytes: unshare(CLONE_NEWUSER), then exit with what it answered (0: it worked).
std::string Program32() {
#if defined(__aarch64__)
  const uint32_t code[] = {0xE3A00201, 0xE3007151, 0xEF000000, 0xE3A07001, 0xEF000000};
  const uint16_t machine = EM_ARM;
  const uint32_t flags = 0x05000000;  // EABI 5
#else
  const unsigned char code[] = {0xb8, 0x36, 0x01, 0,    0, 0xbb, 0, 0, 0,    0x10, 0xcd,
                                0x80, 0x89, 0xc3, 0xb8, 1, 0,    0, 0, 0xcd, 0x80};
  const uint16_t machine = EM_386;
  const uint32_t flags = 0;
#endif
  struct {
    Elf32_Ehdr head;
    Elf32_Phdr segment;
  } file = {};
  constexpr uint32_t kBase = 0x10000;
  memcpy(file.head.e_ident, ELFMAG, SELFMAG);
  file.head.e_ident[EI_CLASS] = ELFCLASS32;
  file.head.e_ident[EI_DATA] = ELFDATA2LSB;
  file.head.e_ident[EI_VERSION] = EV_CURRENT;
  file.head.e_type = ET_EXEC;
  file.head.e_machine = machine;
  file.head.e_version = EV_CURRENT;
  file.head.e_entry = kBase + sizeof file;
  file.head.e_phoff = sizeof file.head;
  file.head.e_flags = flags;
  file.head.e_ehsize = sizeof file.head;
  file.head.e_phentsize = sizeof file.segment;
  file.head.e_phnum = 1;
  file.segment.p_type = PT_LOAD;
  file.segment.p_vaddr = kBase;
  file.segment.p_filesz = file.segment.p_memsz = sizeof file + sizeof code;
  file.segment.p_flags = PF_R | PF_X;
  file.segment.p_align = 0x1000;
  std::string bytes(reinterpret_cast<const char*>(&file), sizeof file);
  bytes.append(reinterpret_cast<const char*>(code), sizeof code);
  return bytes;
}

TEST_P(SyscallEscape, SC_09_TheOtherInstructionSet) {
  TempDir dir;
  const std::string program = dir.Write("program32", Program32(), 0755);
  const RunResult control = RunProgram({program});
  // 97: this processor or kernel does not run 32-bit programs at all.
  const bool runs = control.exit != 97;
  EXPECT_TRUE(!runs || control.exit == 0) << "NO-CONTROL: " << control.Describe();
  const RunResult named = RunCoffer(Flags(), {program});
  EXPECT_EQ(named.exit, 126) << named.Describe();
  EXPECT_EQ(named.ErrorClass(), "policy.runtime.elf.class") << named.Describe();
  // One that coffer does not read is killed at its first call; never an answer from the kernel.
  const RunResult made = RunCoffer(Flags({"--in", program}),
                                   {"sh", "-c", "cp program32 own && chmod 755 own && ./own"});
  EXPECT_EQ(made.exit, runs ? 128 + SIGSYS : 126) << made.Describe();
  if (runs) {
    EXPECT_TRUE(Contains(made.err, "32-bit programs do not run here")) << made.Describe();
  }
}

TEST_P(SyscallEscape, SC_10_TerminalInjectionOnItsOwnTerminal) {
  Expectation expectation;
  expectation.labels = {"tiocsti", "tiocsti-high", "tioclinux"};
  expectation.syscalls = {{"tiocsti", "ioctl"}, {"tiocsti-high", "ioctl"}, {"tioclinux", "ioctl"}};
  const RunResult result = RunProbe(Flags(), {"tty-own"});
  const auto attempts = ParseAttempts(result.out);
  ASSERT_FALSE(attempts.empty()) << result.Describe();
  if (attempts.contains("ptmx")) {
    EXPECT_EQ(attempts.at("ptmx").state,
              Attempt::State::kRefused);  // no terminals to be had at all
    EXPECT_TRUE(Contains(RunOutside({"tty-own"}).out, "tiocsti: OPEN")) << "NO-CONTROL";
    return;
  }
  ExpectContained("SC-10", Flags(), {"tty-own"}, expectation);
}

TEST_P(SyscallEscape, SC_18_AFilterCannotBeLoosened) {
  Expectation expectation;
  expectation.labels = {"unshare-after"};
  expectation.syscalls = {{"unshare-after", "unshare"}};
  ExpectContained("SC-18", Flags(), {"seccomp-loosen"}, expectation);
}

TEST_P(SyscallEscape, SC_20_DirtyPipeShape) {
  TempDir dir;
  const std::string bytes(8192, 'o');
  const std::string file = dir.Write("file", bytes, 0444);
  if (MountsAreRefused(Flags({"--ro", file}))) {
    return;
  }
  EXPECT_TRUE(Contains(RunOutside({"dirty-pipe-shape", file}).out, "splice: OPEN")) << "NO-CONTROL";
  const RunResult result = RunProbe(Flags({"--ro", file}), {"dirty-pipe-shape", file});
  EXPECT_TRUE(ParseAttempts(result.out).contains("splice")) << result.Describe();
  EXPECT_FALSE(ParseAttempts(result.out).contains("open")) << "the file must be readable\n"
                                                           << result.Describe();
  EXPECT_EQ(ReadFile(file), bytes) << "the page cache was written to";
}

TEST_P(SyscallEscape, SC_21_DirtyCowShape) {
  TempDir dir;
  const std::string bytes(8192, 'o');
  const std::string file = dir.Write("file", bytes, 0444);
  if (MountsAreRefused(Flags({"--ro", file}))) {
    return;
  }
  EXPECT_TRUE(Contains(RunOutside({"dirty-cow-shape", file, "1"}).out, "race: OPEN"))
      << "NO-CONTROL";
  const RunResult result =
      RunProbe(Flags({"--ro", file, "--cpu", "30s"}), {"dirty-cow-shape", file, "5"});
  EXPECT_FALSE(ParseAttempts(result.out).empty()) << result.Describe();
  EXPECT_EQ(ReadFile(file), bytes) << "a read-only file was written to";
}

TEST_P(SyscallEscape, DeniedCallsAreInTheReceipt) {
  NothingIsAttacked("what the receipt says about a refusal; SC_02 has the attack");
  const RunResult result = RunProbe(Flags(), {"io_uring"});
  EXPECT_EQ(DeniedCount(result.receipt, "io_uring_setup"), 1) << result.Describe();
  ASSERT_TRUE(result.receipt.is_object());
  bool found = false;
  for (const Json& denial : result.receipt["denials"]) {
    for (const char* field : {"surface", "operation", "target", "rule", "reason", "fix"}) {
      EXPECT_TRUE(denial.contains(field)) << field << " in " << denial.dump();
    }
    found = found || Contains(denial.dump(), "io_uring_setup");
  }
  EXPECT_TRUE(found) << result.receipt["denials"].dump();
}

INSTANTIATE_TEST_SUITE_P(Level, SyscallEscape, ::testing::Values("container", "process"),
                         LevelTestName);

}  // namespace
}  // namespace coffer::test
