// SPDX-License-Identifier: Apache-2.0
//
// The compiler against two oracles: the definition of a Profile, and libseccomp's own compiler.
#include "isolation/seccomp/compile.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <sstream>

#include "seccomp_testing.h"

namespace coffer::isolation {
namespace {

using policy::SyscallProfile;

// The shape the kernel's checker wants, whatever path is taken.
void CheckShape(const std::vector<sock_filter>& program) {
  ASSERT_FALSE(program.empty());
  ASSERT_LE(program.size(), 4096U);
  EXPECT_EQ(program.back().code, BPF_RET | BPF_K);
  for (size_t at = 0; at < program.size(); ++at) {
    const sock_filter& line = program[at];
    if (BPF_CLASS(line.code) == BPF_JMP) {
      const size_t furthest =
          line.code == (BPF_JMP | BPF_JA) ? line.k : std::max<size_t>(line.jt, line.jf);
      ASSERT_LT(at + 1 + furthest, program.size()) << "at " << at;
    }
  }
}

// Values at which a comparison with the rule's constants changes its mind.
constexpr std::array<uint64_t, 5> kPlainEdges = {0, 1, ~uint64_t{0}, 0xffffffff, 0x100000000};
std::vector<uint64_t> EdgeValues(const Profile& profile, std::string_view syscall) {
  std::set<uint64_t> values(kPlainEdges.begin(), kPlainEdges.end());
  for (const Rule& rule : profile.rules) {
    if (rule.syscall == syscall) {
      for (const Condition& condition : rule.conditions) {
        for (const uint64_t base :
             {condition.value, condition.mask, condition.value | ~condition.mask,
              condition.value ^ condition.mask}) {
          values.insert({base - 1, base, base + 1, base ^ 0x8000000000000000, base ^ 0x100000000});
        }
      }
    }
  }
  return {values.begin(), values.end()};
}

// Calls `check` with every number and, where arguments matter, random choices among their edge values.
template <typename Check>
void ForCalls(const Profile& profile, const SyscallTable& table, std::mt19937_64& random,
              Check check) {
  for (uint32_t number = 0; number <= 600; ++number) {
    const std::vector<uint64_t> values = EdgeValues(profile, table.Find(number));
    const int rounds = values.size() == kPlainEdges.size() ? 2 : 200;
    for (int round = 0; round < rounds; ++round) {
      Args args;
      for (size_t i = 0; i < args.size(); ++i) {
        args[i] = random() % 8 == 0 ? random() : values[random() % values.size()];
      }
      check(Call(table.audit_arch, number, args));
    }
  }
  for (const uint32_t number :
       {0x40000000U, 0x40000001U, 0x40000200U, 0x7fffffffU, 0x80000000U, 0xfffffffeU}) {
    check(Call(table.audit_arch, number));
  }
  for (const uint32_t arch :
       std::initializer_list<uint32_t>{AUDIT_ARCH_ARM, AUDIT_ARCH_I386, AUDIT_ARCH_PPC64, 0}) {
    check(Call(arch, static_cast<uint32_t>(random() % 600)));
  }
}

std::string CallText(const SyscallTable& table, const seccomp_data& call) {
  std::ostringstream text;
  text << table.Find(static_cast<uint32_t>(call.nr)) << " " << call.nr << " arch " << std::hex
       << call.arch;
  for (const uint64_t value : call.args) {
    text << " " << value;
  }
  return text.str();
}

std::string RulesText(const Profile& profile, std::string_view syscall) {
  std::ostringstream text;
  for (const Rule& rule : profile.rules) {
    if (rule.syscall == syscall) {
      text << VerdictText(KernelAction(rule.action)) << " if" << std::hex;
      for (const Condition& c : rule.conditions) {
        text << " (" << int{c.arg} << " & " << c.mask << ") op" << static_cast<int>(c.compare)
             << " " << c.value;
      }
      text << "\n";
    }
  }
  return text.str();
}

void ExpectMeansTheSame(const Profile& profile, const SyscallTable& table,
                        std::mt19937_64& random) {
  const auto program = Compile(profile, table);
  ASSERT_TRUE(program.ok()) << program.error().message;
  CheckShape(*program);
  const Oracle oracle(profile, table);
  ForCalls(profile, table, random, [&](const seccomp_data& call) {
    ASSERT_EQ(Verdict(*program, call), VerdictText(KernelAction(oracle.Decide(call))))
        << CallText(table, call) << "\n"
        << RulesText(profile, table.Find(static_cast<uint32_t>(call.nr)));
  });
}

Condition RandomCondition(std::mt19937_64& random) {
  constexpr uint64_t kMasks[] = {kWholeArgument, kLowHalf,           0xf,
                                 0x7e020000,     0xffffffff00000000, 0x8000000080000000};
  constexpr uint64_t kValues[] = {
      0, 1, 2, 0x5412, 0xffffffff, 0x100000000, 0x100005412, ~uint64_t{0}, uint64_t{1} << 63};
  Condition condition;
  condition.arg = static_cast<uint8_t>(random() % 6);
  condition.compare = static_cast<Compare>(random() % 6);
  condition.mask = kMasks[random() % std::size(kMasks)];
  condition.value =
      kValues[random() % std::size(kValues)] & (random() % 4 == 0 ? ~uint64_t{0} : condition.mask);
  return condition;
}

Action RandomAction(std::mt19937_64& random) {
  const Action actions[] = {kAllow, kNotify, kKill, FailWith(ENOSYS), FailWith(EACCES)};
  return actions[random() % std::size(actions)];
}

TEST(Compile, BuiltinProfilesMeanWhatTheySay) {
  std::mt19937_64 random(1);
  for (const uint32_t arch : kArches) {
    for (const SyscallProfile name :
         {SyscallProfile::kStrict, SyscallProfile::kDefault, SyscallProfile::kCompat}) {
      for (const FilterOptions options : {FilterOptions{false, false}, FilterOptions{true, true}}) {
        ExpectMeansTheSame(BuiltinProfile(name, options), TableFor(arch), random);
      }
    }
  }
}

TEST(Compile, RandomProfilesMeanWhatTheySay) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 60; ++round) {
    const SyscallTable& table = TableFor(kArches[round % 2]);
    Profile profile;
    profile.fallback = RandomAction(random);
    profile.beyond = RandomAction(random);
    const size_t rules = random() % 200;
    for (size_t i = 0; i < rules; ++i) {
      const SyscallEntry& entry =
          table.by_number[random() % (round % 3 == 0 ? 10 : table.by_number.size())];
      Rule rule{std::string(table.NameOf(entry)), RandomAction(random), {}};
      for (size_t n = random() % 4; n > 0; --n) {
        rule.conditions.push_back(RandomCondition(random));
      }
      profile.rules.push_back(std::move(rule));
    }
    ExpectMeansTheSame(profile, table, random);
    if (HasFatalFailure()) {
      FAIL() << "round " << round;
    }
  }
}

TEST(Compile, ProgramsBeyondTheReachOfAJump) {
  std::mt19937_64 random(3);
  Profile profile;
  for (const SyscallEntry& entry : TableFor(SCMP_ARCH_X86_64).by_number) {
    const std::string name(TableFor(SCMP_ARCH_X86_64).NameOf(entry));
    for (uint64_t i = 0; i < 2; ++i) {
      profile.rules.push_back({name,
                               RandomAction(random),
                               {{0, Compare::kEqual, entry.number * 2 + i, kWholeArgument}}});
    }
  }
  const auto program = Compile(profile, TableFor(SCMP_ARCH_X86_64));
  ASSERT_TRUE(program.ok());
  EXPECT_GT(program->size(), 2000U);
  ExpectMeansTheSame(profile, TableFor(SCMP_ARCH_X86_64), random);
}

TEST(Compile, RefusesWhatTheKernelWouldNotTake) {
  Profile profile;
  for (uint64_t i = 0; i < 5000; ++i) {
    profile.rules.push_back(
        {"read",
         kAllow,
         {{0, Compare::kEqual, i, kWholeArgument}, {1, Compare::kLess, i, kLowHalf}}});
  }
  const auto too_long = Compile(profile, TableFor(SCMP_ARCH_AARCH64));
  ASSERT_FALSE(too_long.ok());
  EXPECT_EQ(too_long.error().code, "seccomp.too-long");
  const auto seventh = Compile({kNotify, kNotify, {{"read", kAllow, {{6, Compare::kEqual, 0, 1}}}}},
                               TableFor(SCMP_ARCH_AARCH64));
  ASSERT_FALSE(seventh.ok());
  EXPECT_EQ(seventh.error().code, "seccomp.argument");
}

TEST(Compile, UnknownNamesHaveNoEffect) {
  const auto with =
      Compile({kNotify, kNotify, {{"read", kAllow, {}}, {"no_such_call", kAllow, {}}}},
              TableFor(SCMP_ARCH_AARCH64));
  const auto without =
      Compile({kNotify, kNotify, {{"read", kAllow, {}}}}, TableFor(SCMP_ARCH_AARCH64));
  ASSERT_TRUE(with.ok() && without.ok());
  EXPECT_EQ(with->size(), without->size());
}

TEST(Compile, AProfileOfOneVerdictIsAFewInstructions) {
  const auto program = Compile({kKill, kKill, {}}, TableFor(SCMP_ARCH_AARCH64));
  ASSERT_TRUE(program.ok());
  EXPECT_LE(program->size(), 6U);
  EXPECT_EQ(Verdict(*program, Call(AUDIT_ARCH_AARCH64, 3)), "kill");
}

// --- differential: libseccomp compiles the same rules ---

using Context = std::unique_ptr<void, void (*)(scmp_filter_ctx)>;

uint32_t LibraryAction(Action action) {
  switch (action.kind) {
    case ActionKind::kAllow:
      return SCMP_ACT_ALLOW;
    case ActionKind::kNotify:
      return SCMP_ACT_NOTIFY;
    case ActionKind::kErrno:
      return SCMP_ACT_ERRNO(action.error);
    case ActionKind::kKill:
      break;
  }
  return SCMP_ACT_KILL_PROCESS;
}

class LibraryFilter {
 public:
  LibraryFilter(Action fallback, uint32_t arch)
      : arch_(arch), context_(nullptr, ::seccomp_release) {
    context_.reset(::seccomp_init(LibraryAction(fallback)));
    Check(::seccomp_attr_set(context_.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS));
    if (::seccomp_arch_native() != arch) {
      Check(::seccomp_arch_add(context_.get(), arch));
      Check(::seccomp_arch_remove(context_.get(), ::seccomp_arch_native()));
    }
  }

  void Add(const Rule& rule) {
    if (::seccomp_syscall_resolve_name_arch(arch_, rule.syscall.c_str()) < 0) {
      return;  // not on this architecture
    }
    const int number =
        ::seccomp_syscall_resolve_name(rule.syscall.c_str());  // translated by the library
    std::vector<scmp_arg_cmp> tests;
    for (const Condition& condition : rule.conditions) {
      tests.push_back(Convert(condition));
    }
    const int answer =
        ::seccomp_rule_add_exact_array(context_.get(), LibraryAction(rule.action), number,
                                       static_cast<unsigned>(tests.size()), tests.data());
    EXPECT_EQ(answer, 0) << rule.syscall << " " << number << " " << tests.size();
  }

  std::vector<sock_filter> Export() const {
    const int fd = ::memfd_create("filter", MFD_CLOEXEC);
    EXPECT_EQ(::seccomp_export_bpf(context_.get(), fd), 0);
    std::vector<sock_filter> program(static_cast<size_t>(::lseek(fd, 0, SEEK_END)) /
                                     sizeof(sock_filter));
    EXPECT_EQ(::pread(fd, program.data(), program.size() * sizeof(sock_filter), 0),
              static_cast<ssize_t>(program.size() * sizeof(sock_filter)));
    ::close(fd);
    return program;
  }

 private:
  static void Check(int answer) { EXPECT_EQ(answer, 0) << "libseccomp"; }
  // The library masks only for equality.
  static scmp_arg_cmp Convert(const Condition& condition) {
    if (condition.compare == Compare::kEqual) {
      return {condition.arg, SCMP_CMP_MASKED_EQ, condition.mask, condition.value};
    }
    constexpr scmp_compare kOperators[] = {SCMP_CMP_EQ, SCMP_CMP_NE, SCMP_CMP_LT,
                                           SCMP_CMP_LE, SCMP_CMP_GT, SCMP_CMP_GE};
    EXPECT_EQ(condition.mask, kWholeArgument);
    return {condition.arg, kOperators[static_cast<size_t>(condition.compare)], condition.value, 0};
  }

  uint32_t arch_;
  Context context_;
};

// Our rules are tried in order; the library has no order. So the same meaning is asked from three of its filters: one
// that refuses what the conditional refusals refuse, one that knows what is allowed or answered by an errno, and one for the
// errnos of calls that are allowed otherwise.
TEST(Differential, BuiltinProfilesAgreeWithLibseccomp) {
  std::mt19937_64 random(4);
  for (const uint32_t arch : kArches) {
    const SyscallTable& table = TableFor(arch);
    for (const SyscallProfile name :
         {SyscallProfile::kStrict, SyscallProfile::kDefault, SyscallProfile::kCompat}) {
      Profile profile = BuiltinProfile(name, {true, true});
      profile.beyond = profile.fallback;  // the library has no notion of numbers that are too new
      // libseccomp 2.5.4 merges several rules for two arguments of one call wrongly, and has no "otherwise". These are
      // compared with the definition alone, above.
      const std::set<std::string> apart = {"setuid",    "setgid",    "setreuid", "setregid",
                                           "setresuid", "setresgid", "ioctl",    "prlimit64"};
      std::erase_if(profile.rules, [&](const Rule& rule) { return apart.contains(rule.syscall); });
      const auto ours = Compile(profile, table);
      ASSERT_TRUE(ours.ok());
      LibraryFilter refuses(kAllow, arch);
      LibraryFilter allows(kNotify, arch);
      LibraryFilter answers(kAllow, arch);
      std::set<std::string> allowed_otherwise;
      for (const Rule& rule : profile.rules) {
        if (rule.action == kAllow && rule.conditions.empty()) {
          allowed_otherwise.insert(rule.syscall);
        }
      }
      for (const Rule& rule : profile.rules) {
        if (rule.action != kNotify && rule.action != kAllow && !rule.conditions.empty() &&
            allowed_otherwise.contains(rule.syscall)) {
          answers.Add(rule);
        } else if (rule.action != kNotify) {
          allows.Add(rule);
        } else if (!rule.conditions.empty()) {
          const bool any_bit =
              rule.conditions[0].compare == Compare::kNotEqual;  // one rule per bit: libseccomp
          for (int bit = 0; any_bit && bit < 32; ++bit) {        // has no "any of these bits"
            if ((rule.conditions[0].mask >> bit & 1) != 0) {
              const uint64_t mask = uint64_t{1} << bit;
              refuses.Add(
                  {rule.syscall, kKill, {{rule.conditions[0].arg, Compare::kEqual, mask, mask}}});
            }
          }
          if (!any_bit) {
            refuses.Add({rule.syscall, kKill, rule.conditions});
          }
        }
      }
      const std::vector<sock_filter> library_refuses = refuses.Export();
      const std::vector<sock_filter> library_allows = allows.Export();
      const std::vector<sock_filter> library_answers = answers.Export();
      ForCalls(profile, table, random, [&](const seccomp_data& call) {
        std::string expected = Verdict(library_allows, call);
        if (expected != "kill" && Verdict(library_refuses, call) == "kill") {
          expected = "notify";
        }
        if (const std::string answer = Verdict(library_answers, call);
            expected == "allow" && answer != "kill") {
          expected = answer;
        }
        ASSERT_EQ(Verdict(*ours, call), expected) << CallText(table, call);
      });
    }
  }
}

// libseccomp 2.5.4 merges several rules for one call wrongly if they order the same argument in different ways (it
// allows `a5 < 0 && a0 <= 2 || a0 >= 2^63 && a4 == x` for a0 = 1). So a call gets several rules only in the rounds that
// compare for equality alone; all the rest is covered by the comparison with the definition above.
TEST(Differential, RandomProfilesAgreeWithLibseccomp) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 200; ++round) {
    const uint32_t arch = kArches[round % 2];
    const bool equality_only = round % 4 < 2;
    const SyscallTable& table = TableFor(arch);
    Profile profile;
    profile.fallback = RandomAction(random);
    profile.beyond = profile.fallback;
    LibraryFilter library(profile.fallback, arch);
    std::map<std::string, Action>
        actions;  // one action for one call: conflicts mean something else to the library
    for (size_t i = random() % 80; i > 0; --i) {
      Rule rule{std::string(table.NameOf(table.by_number[random() % table.by_number.size()])),
                RandomAction(random),
                {}};
      const auto [known, fresh] = actions.emplace(rule.syscall, rule.action);
      rule.action = known->second;
      if (rule.action == profile.fallback || (!fresh && !equality_only)) {
        continue;  // the library refuses a rule that says the same as its default
      }
      std::set<uint8_t> used;
      for (size_t n = random() % 4; n > 0; --n) {
        Condition condition = RandomCondition(random);
        if (equality_only) {
          condition.compare = Compare::kEqual;
        } else if (condition.compare != Compare::kEqual) {
          condition.mask = kWholeArgument;  // the library masks only for equality
        }
        condition.value &= condition.mask;
        if (used.insert(condition.arg).second) {
          rule.conditions.push_back(condition);
        }
      }
      library.Add(rule);
      profile.rules.push_back(std::move(rule));
    }
    const auto ours = Compile(profile, table);
    ASSERT_TRUE(ours.ok());
    const std::vector<sock_filter> theirs = library.Export();
    ForCalls(profile, table, random, [&](const seccomp_data& call) {
      ASSERT_EQ(Verdict(*ours, call), Verdict(theirs, call))
          << "round " << round << ": " << CallText(table, call) << "\n"
          << RulesText(profile, table.Find(static_cast<uint32_t>(call.nr)));
    });
    if (HasFatalFailure()) {
      return;
    }
  }
}

}  // namespace
}  // namespace coffer::isolation
