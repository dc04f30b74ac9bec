// SPDX-License-Identifier: Apache-2.0
#include "isolation/seccomp/oci_import.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "isolation/seccomp/builtin.h"
#include "seccomp_testing.h"

namespace coffer::isolation {
namespace {

ImportContext Arm64() { return {{}, "arm64", 6, 1}; }

// The verdict of the imported profile on aarch64.
std::string Ask(std::string_view json, const std::string& name, const Args& args = {},
                const ImportContext& context = Arm64()) {
  const Result<Profile> profile = ImportOciProfile(json, context);
  if (!profile.ok()) {
    return profile.error().message;
  }
  const SyscallTable& table =
      TableFor(context.arch == "arm64" ? SCMP_ARCH_AARCH64 : SCMP_ARCH_X86_64);
  const auto program = Compile(*profile, table);
  if (!program.ok()) {
    return program.error().message;
  }
  return Verdict(*program, Call(table.audit_arch, table.Find(name).value(), args));
}

std::string Complaint(std::string_view json) {
  const Result<Profile> profile = ImportOciProfile(json, Arm64());
  if (profile.ok()) {
    return "accepted";
  }
  EXPECT_EQ(profile.error().kind, ErrorKind::kRefused);
  EXPECT_EQ(profile.error().message.find('\n'), std::string::npos);
  return profile.error().message;
}

TEST(OciImport, AllowListNarrows) {
  const char* json = R"({"defaultAction": "SCMP_ACT_ERRNO",
                         "syscalls": [{"names": ["read", "write", "openat"], "action": "SCMP_ACT_ALLOW"}]})";
  EXPECT_EQ(Ask(json, "read"), "allow");
  EXPECT_EQ(Ask(json, "close"), "notify") << "EPERM is recorded";
  EXPECT_EQ(Ask(json, "openat", {0, 0, 0100, 0644}), "allow");
  EXPECT_EQ(Ask(json, "openat", {0, 0, 0100, 04755}), "notify") << "our own condition stays";
}

TEST(OciImport, NeverLoosens) {
  const char* everything = R"({"defaultAction": "SCMP_ACT_ALLOW"})";
  for (const char* name : {"mount", "bpf", "io_uring_setup", "ptrace", "unshare", "keyctl"}) {
    EXPECT_EQ(Ask(everything, name), "notify") << name;
  }
  EXPECT_EQ(Ask(everything, "clone3"), "errno 38");
  EXPECT_EQ(Ask(everything, "clone", {CLONE_NEWUSER}), "notify");
  EXPECT_EQ(Ask(everything, "socket", {AF_INET, SOCK_STREAM, 0}), "notify")
      << "no network namespace";
  EXPECT_EQ(
      Ask(everything, "socket", {AF_INET, SOCK_STREAM, 0}, {{.inet_sockets = true}, "arm64", 6, 1}),
      "allow");
  EXPECT_EQ(Ask(everything, "read"), "allow");
  const char* named = R"({"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [
      {"names": ["mount", "unshare", "bpf", "clone", "clone3"], "action": "SCMP_ACT_ALLOW"}]})";
  EXPECT_EQ(Ask(named, "mount"), "notify");
  EXPECT_EQ(Ask(named, "clone", {CLONE_NEWUSER}), "notify");
  EXPECT_EQ(Ask(named, "clone", {17}), "allow");
}

TEST(OciImport, EveryAction) {
  const auto with = [](const std::string& action) {
    return Ask(
        R"({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["read"], "action": ")" +
            action + R"(", "errnoRet": 13}]})",
        "read");
  };
  EXPECT_EQ(with("SCMP_ACT_ALLOW"), "allow");
  EXPECT_EQ(with("SCMP_ACT_LOG"), "allow");
  EXPECT_EQ(with("SCMP_ACT_ERRNO"), "errno 13");
  EXPECT_EQ(with("SCMP_ACT_NOTIFY"), "notify");
  EXPECT_EQ(with("SCMP_ACT_TRACE"), "errno 38");
  EXPECT_EQ(with("SCMP_ACT_TRAP"), "kill");
  EXPECT_EQ(with("SCMP_ACT_KILL"), "kill");
  EXPECT_EQ(with("SCMP_ACT_KILL_THREAD"), "kill");
  EXPECT_EQ(with("SCMP_ACT_KILL_PROCESS"), "kill");
  EXPECT_NE(with("SCMP_ACT_BLESS").find("unknown action \"SCMP_ACT_BLESS\""), std::string::npos);
}

TEST(OciImport, EveryOperator) {
  const auto with = [](const std::string& op, uint64_t argument) {
    return Ask(
        R"({"defaultAction": "SCMP_ACT_KILL", "syscalls": [{"name": "lseek", "action": "SCMP_ACT_ALLOW",
                   "args": [{"index": 1, "value": 10, "valueTwo": 8, "op": ")" +
            op + R"("}]}]})",
        "lseek", {0, argument});
  };
  struct Case {
    const char* op;
    const char* at_9;
    const char* at_10;
    const char* at_11;
  };
  for (const Case& test :
       {Case{"SCMP_CMP_EQ", "kill", "allow", "kill"}, Case{"SCMP_CMP_NE", "allow", "kill", "allow"},
        Case{"SCMP_CMP_LT", "allow", "kill", "kill"}, Case{"SCMP_CMP_LE", "allow", "allow", "kill"},
        Case{"SCMP_CMP_GT", "kill", "kill", "allow"}, Case{"SCMP_CMP_GE", "kill", "allow", "allow"},
        Case{"SCMP_CMP_MASKED_EQ", "allow", "kill", "kill"}}) {
    EXPECT_EQ(with(test.op, 9), test.at_9) << test.op;
    EXPECT_EQ(with(test.op, 10), test.at_10) << test.op;
    EXPECT_EQ(with(test.op, 11), test.at_11) << test.op;
  }
  EXPECT_NE(with("SCMP_CMP_SMELL", 0).find("unknown operator"), std::string::npos);
}

TEST(OciImport, TheStricterRuleWinsWhateverTheOrder) {
  const std::string allow = R"({"names": ["read"], "action": "SCMP_ACT_ALLOW"})";
  const std::string kill = R"({"names": ["read"], "action": "SCMP_ACT_KILL",
                               "args": [{"index": 0, "value": 3, "op": "SCMP_CMP_EQ"}]})";
  for (const std::string& rules : {allow + "," + kill, kill + "," + allow}) {
    const std::string json = R"({"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [)" + rules + "]}";
    EXPECT_EQ(Ask(json, "read", {3}), "kill");
    EXPECT_EQ(Ask(json, "read", {4}), "allow");
  }
}

TEST(OciImport, AlternativesAreAddedUp) {
  const char* json = R"({"defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": 38, "syscalls": [
      {"names": ["personality"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 0, "value": 0, "op": "SCMP_CMP_EQ"}]},
      {"names": ["personality"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 0, "value": 8, "op": "SCMP_CMP_EQ"}]},
      {"names": ["personality"], "action": "SCMP_ACT_ALLOW",
       "args": [{"index": 0, "value": 4294967295, "op": "SCMP_CMP_EQ"}]}]})";
  EXPECT_EQ(Ask(json, "personality", {0}), "allow");
  EXPECT_EQ(Ask(json, "personality", {0xffffffff}), "allow");
  EXPECT_EQ(Ask(json, "personality", {8}), "notify") << "compat refuses it";
  EXPECT_EQ(Ask(json, "read"), "errno 38");
}

TEST(OciImport, IncludesAndExcludes) {
  const auto with = [](const std::string& filter, const ImportContext& context) {
    return Ask(R"({"defaultAction": "SCMP_ACT_KILL", "syscalls": [
        {"names": ["read"], "action": "SCMP_ACT_ALLOW", "comment": "x", )" +
                   filter + "}]}",
               "read", {}, context);
  };
  const ImportContext arm = Arm64();
  const ImportContext amd = {{}, "amd64", 5, 10};
  EXPECT_EQ(with(R"("includes": {}, "excludes": {})", arm), "allow");
  EXPECT_EQ(with(R"("includes": {"arches": ["arm64", "arm"]})", arm), "allow");
  EXPECT_EQ(with(R"("includes": {"arches": ["arm64", "arm"]})", amd), "kill");
  EXPECT_EQ(with(R"("excludes": {"arches": ["amd64"]})", arm), "allow");
  EXPECT_EQ(with(R"("excludes": {"arches": ["amd64"]})", amd), "kill");
  EXPECT_EQ(with(R"("includes": {"caps": ["CAP_SYS_ADMIN"]})", arm), "kill")
      << "a boundary has no capability";
  EXPECT_EQ(with(R"("excludes": {"caps": ["CAP_SYS_ADMIN"]})", arm), "allow");
  EXPECT_EQ(with(R"("includes": {"minKernel": "4.8"})", arm), "allow");
  EXPECT_EQ(with(R"("includes": {"minKernel": "5.11"})", amd), "kill");
  EXPECT_EQ(with(R"("includes": {"minKernel": "5.10"})", amd), "allow");
  EXPECT_NE(with(R"("includes": {"minKernel": "new"})", arm).find("minKernel"), std::string::npos);
  EXPECT_NE(with(R"("includes": {"maxKernel": "9.9"})", arm).find("unknown key"),
            std::string::npos);
}

TEST(OciImport, Architectures) {
  EXPECT_EQ(
      Complaint(
          R"({"defaultAction": "SCMP_ACT_ERRNO", "architectures": ["SCMP_ARCH_AARCH64", "SCMP_ARCH_ARM"]})"),
      "accepted");
  EXPECT_EQ(Complaint(R"({"defaultAction": "SCMP_ACT_ERRNO", "archMap": [
      {"architecture": "SCMP_ARCH_X86_64", "subArchitectures": ["SCMP_ARCH_X86"]},
      {"architecture": "SCMP_ARCH_AARCH64", "subArchitectures": null}]})"),
            "accepted");
  EXPECT_NE(
      Complaint(R"({"defaultAction": "SCMP_ACT_ERRNO", "architectures": ["SCMP_ARCH_X86_64"]})")
          .find("not for this architecture"),
      std::string::npos);
  EXPECT_NE(Complaint(R"({"defaultAction": "SCMP_ACT_ERRNO", "architectures": ["vax"]})")
                .find("unknown architecture"),
            std::string::npos);
}

TEST(OciImport, PodmanErrorNames) {
  const char* json =
      R"({"defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": 38, "defaultErrno": "ENOSYS",
      "syscalls": [{"names": ["read"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1, "errno": "EPERM", "args": null},
                   {"names": ["write"], "action": "SCMP_ACT_ERRNO", "errno": "EACCES"}]})";
  EXPECT_EQ(Ask(json, "read"), "notify");
  EXPECT_EQ(Ask(json, "write"), "errno 13");
  EXPECT_EQ(Ask(json, "close"), "errno 38");
}

TEST(OciImport, SaysWhatIsWrong) {
  struct Case {
    const char* json;
    const char* says;
  };
  const Case cases[] = {
      {"", "not JSON"},
      {"[]", "is not an object"},
      {"null", "is not an object"},
      {"{}", "defaultAction is missing"},
      {R"({"defaultAction": 7})", "defaultAction is not a string"},
      {R"({"defaultAction": "allow"})", "unknown action"},
      {R"({"defaultAction": "SCMP_ACT_ALLOW", "x\ny": 1})", "unknown key \"x?y\""},
      {R"({"defaultAction": "SCMP_ACT_ALLOW", "defaultAction": "SCMP_ACT_KILL"})",
       "the key \"defaultAction\" appears twice"},
      {R"({"defaultAction": "SCMP_ACT_ALLOW", "listenerPath": "/run/x"})", "unknown key"},
      {R"({"defaultAction": "SCMP_ACT_ALLOW", "flags": ["ROOT"]})", "unknown flag"},
      {R"({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": {}})", "syscalls is not a list"},
      {R"({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [7]})", "is not an object"},
      {R"({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": []}]})",
       "names no system call"},
      {R"({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["read"]}]})",
       "action is missing"},
      {R"({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": [1], "action": "SCMP_ACT_ALLOW"}]})",
       "not a string"},
      {R"({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["a b"], "action": "SCMP_ACT_ALLOW"}]})",
       "not the name of a system call"},
      {R"({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"name": "read", "names": ["read"],
           "action": "SCMP_ACT_ALLOW"}]})",
       "both name and names"},
      {R"({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"name": "read", "action": "SCMP_ACT_KILL", "args": 3}]})",
       "args is not a list"},
      {R"({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"name": "read", "action": "SCMP_ACT_KILL",
           "args": [{"index": 6, "value": 1, "op": "SCMP_CMP_EQ"}]}]})",
       "index is missing or not from 0 to 5"},
      {R"({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"name": "read", "action": "SCMP_ACT_KILL",
           "args": [{"index": 0, "value": -1, "op": "SCMP_CMP_EQ"}]}]})",
       "not a whole number"},
      {R"({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"name": "read", "action": "SCMP_ACT_KILL",
           "args": [{"index": 0, "value": 1.5, "op": "SCMP_CMP_EQ"}]}]})",
       "not a whole number"},
      {R"({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"name": "read", "action": "SCMP_ACT_KILL",
           "args": [{"index": 0, "value": 1}]}]})",
       "op is missing"},
      {R"({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"name": "read", "action": "SCMP_ACT_KILL",
           "args": [{"index": 0, "value": 1, "op": "SCMP_CMP_EQ"}, {"index": 0, "value": 2, "op": "SCMP_CMP_EQ"}]}]})",
       "two conditions on argument 0"},
      {R"({"defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": 0})", "not an error number"},
      {R"({"defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": 4096})", "not an error number"},
      {R"({"defaultAction": "SCMP_ACT_ERRNO", "defaultErrno": "EWHAT"})", "unknown error name"},
      {R"({"defaultAction": "SCMP_ACT_ERRNO", "defaultErrno": "EPERM", "defaultErrnoRet": 2})",
       "disagree"},
  };
  for (const Case& test : cases) {
    EXPECT_NE(Complaint(test.json).find(test.says), std::string::npos) << test.json << "\n"
                                                                       << Complaint(test.json);
  }
  EXPECT_NE(Complaint(std::string(2 << 20, ' ')).find("larger than 1 MiB"), std::string::npos);
}

TEST(OciImport, TooManyRulesAreRefusedAndNotTruncated) {
  std::string json = R"({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [)";
  for (int i = 0; i < 3000; ++i) {
    json += std::string(i == 0 ? "" : ",") +
            R"({"name": "prctl", "action": "SCMP_ACT_KILL", "args": [{"index": 1, "value": )" +
            std::to_string(i) + R"(, "op": "SCMP_CMP_EQ"}]})";
  }
  EXPECT_NE(Complaint(json + "]}").find("more than 16384 rules"), std::string::npos);
}

// The shape of Docker's own file, with the parts that are easy to get wrong.
TEST(OciImport, DockerStyleProfile) {
  const char* json = R"({
    "defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": 1,
    "archMap": [{"architecture": "SCMP_ARCH_X86_64", "subArchitectures": ["SCMP_ARCH_X86", "SCMP_ARCH_X32"]},
                {"architecture": "SCMP_ARCH_AARCH64", "subArchitectures": ["SCMP_ARCH_ARM"]}],
    "syscalls": [
      {"names": ["accept", "read", "write", "openat", "futex", "mmap2", "_llseek"], "action": "SCMP_ACT_ALLOW"},
      {"names": ["process_vm_readv", "ptrace"], "action": "SCMP_ACT_ALLOW", "includes": {"minKernel": "4.8"}},
      {"names": ["socket"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 0, "value": 40, "op": "SCMP_CMP_NE"}]},
      {"names": ["clone"], "action": "SCMP_ACT_ALLOW",
       "args": [{"index": 0, "value": 2114060288, "op": "SCMP_CMP_MASKED_EQ"}],
       "excludes": {"caps": ["CAP_SYS_ADMIN"], "arches": ["s390", "s390x"]}},
      {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38, "excludes": {"caps": ["CAP_SYS_ADMIN"]}},
      {"names": ["mount", "setns"], "action": "SCMP_ACT_ALLOW", "includes": {"caps": ["CAP_SYS_ADMIN"]}}
    ]})";
  EXPECT_EQ(Ask(json, "read"), "allow");
  EXPECT_EQ(Ask(json, "ptrace"), "notify");
  EXPECT_EQ(Ask(json, "clone", {17}), "allow");
  EXPECT_EQ(Ask(json, "clone", {CLONE_NEWUSER}), "notify");
  EXPECT_EQ(Ask(json, "clone3"), "errno 38");
  EXPECT_EQ(Ask(json, "mount"), "notify");
  EXPECT_EQ(Ask(json, "getpid"), "notify");
  const ImportContext inet = {{.inet_sockets = true}, "arm64", 6, 1};
  EXPECT_EQ(Ask(json, "socket", {AF_INET, SOCK_STREAM, 0}, inet), "allow");
  EXPECT_EQ(Ask(json, "socket", {40, SOCK_STREAM, 0}, inet), "notify");
}

TEST(OciImport, NativeContextKnowsThisMachine) {
  const ImportContext context = NativeImportContext({.inet_sockets = true});
  EXPECT_GE(context.kernel_major, 4);
  EXPECT_TRUE(context.options.inet_sockets);
#if defined(__aarch64__)
  EXPECT_EQ(context.arch, "arm64");
#else
  EXPECT_EQ(context.arch, "amd64");
#endif
}

}  // namespace
}  // namespace coffer::isolation
