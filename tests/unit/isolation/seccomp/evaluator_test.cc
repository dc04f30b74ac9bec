// SPDX-License-Identifier: Apache-2.0
#include "isolation/seccomp/evaluator.h"

#include <stddef.h>

#include "seccomp_testing.h"

namespace coffer::isolation {
namespace {

constexpr sock_filter Ret(uint32_t value) { return BPF_STMT(BPF_RET | BPF_K, value); }
constexpr sock_filter Load(uint32_t offset) { return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset); }

uint32_t RunProgram(const std::vector<sock_filter>& program, const seccomp_data& data = {}) {
  const Result<uint32_t> value = Evaluate(program, data);
  EXPECT_TRUE(value.ok()) << value.error().message;
  return value.ok() ? *value : 0xdeadbeef;
}

bool Valid(const std::vector<sock_filter>& program) { return Evaluate(program, {}).ok(); }

TEST(Evaluator, ReturnsConstantsAndTheAccumulator) {
  EXPECT_EQ(RunProgram({Ret(7)}), 7U);
  EXPECT_EQ(RunProgram({BPF_STMT(BPF_LD | BPF_IMM, 9), BPF_STMT(BPF_RET | BPF_A, 0)}), 9U);
}

TEST(Evaluator, LoadsEveryWordOfTheCall) {
  seccomp_data data = Call(0x11, 0x22, {0x3333333344444444, 0, 0, 0, 0, 0x5555555566666666});
  data.instruction_pointer = 0x7777777788888888;
  const auto at = [&](size_t offset) {
    return RunProgram({Load(static_cast<uint32_t>(offset)), BPF_STMT(BPF_RET | BPF_A, 0)}, data);
  };
  EXPECT_EQ(at(offsetof(seccomp_data, nr)), 0x22U);
  EXPECT_EQ(at(offsetof(seccomp_data, arch)), 0x11U);
  EXPECT_EQ(at(offsetof(seccomp_data, instruction_pointer)), 0x88888888U);
  EXPECT_EQ(at(offsetof(seccomp_data, args)), 0x44444444U);
  EXPECT_EQ(at(offsetof(seccomp_data, args) + 4), 0x33333333U);
  EXPECT_EQ(at(offsetof(seccomp_data, args) + 40), 0x66666666U);
  EXPECT_EQ(at(offsetof(seccomp_data, args) + 44), 0x55555555U);
}

TEST(Evaluator, JumpsBothWays) {
  const std::vector<sock_filter> program = {
      Load(0),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 10, 0, 2),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 10, 2, 3),
      Ret(99),
      Ret(1),
      Ret(2),
      Ret(3),
  };
  EXPECT_EQ(RunProgram(program, Call(0, 5)), 1U);
  EXPECT_EQ(RunProgram(program, Call(0, 10)), 2U);
  EXPECT_EQ(RunProgram(program, Call(0, 11)), 3U);
}

TEST(Evaluator, ComparesUnsigned) {
  const std::vector<sock_filter> program = {Load(0), BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 5, 0, 1),
                                            Ret(1), Ret(0)};
  EXPECT_EQ(RunProgram(program, Call(0, 0xffffffff)), 1U);
  EXPECT_EQ(RunProgram(program, Call(0, 5)), 0U);
}

TEST(Evaluator, DoesArithmeticAndMemory) {
  EXPECT_EQ(RunProgram({BPF_STMT(BPF_LD | BPF_IMM, 6), BPF_STMT(BPF_ST, 3),
                        BPF_STMT(BPF_LDX | BPF_MEM, 3), BPF_STMT(BPF_ALU | BPF_MUL | BPF_X, 0),
                        BPF_STMT(BPF_ALU | BPF_SUB | BPF_K, 1), BPF_STMT(BPF_RET | BPF_A, 0)}),
            35U);
  EXPECT_EQ(
      RunProgram({BPF_STMT(BPF_LD | BPF_IMM, 0xf0f0), BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xff),
                  BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 4), BPF_STMT(BPF_RET | BPF_A, 0)}),
      0xfU);
}

TEST(Evaluator, RefusesWhatTheKernelRefuses) {
  EXPECT_FALSE(Valid({}));
  EXPECT_FALSE(Valid(std::vector<sock_filter>(4097, Ret(0))));
  EXPECT_FALSE(Valid({Load(0)})) << "no return at the end";
  EXPECT_FALSE(Valid({Load(2), Ret(0)})) << "unaligned";
  EXPECT_FALSE(Valid({Load(64), Ret(0)})) << "beyond seccomp_data";
  EXPECT_FALSE(Valid({BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0), Ret(0)})) << "byte load";
  EXPECT_FALSE(Valid({BPF_STMT(BPF_LD | BPF_W | BPF_IND, 0), Ret(0)})) << "indirect load";
  EXPECT_FALSE(Valid({BPF_STMT(BPF_ST, 16), Ret(0)})) << "no such memory";
  EXPECT_FALSE(Valid({BPF_STMT(BPF_ALU | BPF_DIV | BPF_K, 0), Ret(0)})) << "division by zero";
  EXPECT_FALSE(Valid({BPF_STMT(BPF_JMP | BPF_JA, 1), Ret(0)})) << "jump beyond the end";
  EXPECT_FALSE(Valid({BPF_STMT(BPF_JMP | BPF_JA, 0xffffffff), Ret(0)}))
      << "jump backwards by overflow";
  EXPECT_FALSE(Valid({BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0), Ret(0)}))
      << "jump beyond the end";
}

}  // namespace
}  // namespace coffer::isolation
