// SPDX-License-Identifier: Apache-2.0
#include "isolation/seccomp/evaluator.h"

#include <stddef.h>

#include <array>
#include <cstring>
#include <optional>
#include <string>

namespace coffer::isolation {
namespace {

struct Machine {
  uint32_t a = 0;
  uint32_t x = 0;
  std::array<uint32_t, BPF_MEMWORDS> memory{};
};

Error Invalid(size_t at, const char* what) {
  return Refused("seccomp.program", "instruction " + std::to_string(at) + ": " + what);
}

std::optional<uint32_t> Arithmetic(uint16_t operation, uint32_t a, uint32_t operand) {
  switch (operation) {
    case BPF_ADD:
      return a + operand;
    case BPF_SUB:
      return a - operand;
    case BPF_MUL:
      return a * operand;
    case BPF_DIV:
      return operand == 0 ? std::nullopt : std::optional(a / operand);
    case BPF_OR:
      return a | operand;
    case BPF_AND:
      return a & operand;
    case BPF_XOR:
      return a ^ operand;
    case BPF_LSH:
      return operand > 31 ? std::nullopt : std::optional(a << operand);
    case BPF_RSH:
      return operand > 31 ? std::nullopt : std::optional(a >> operand);
    case BPF_NEG:
      return 0U - a;
    default:
      return std::nullopt;
  }
}

std::optional<bool> Test(uint16_t operation, uint32_t a, uint32_t operand) {
  switch (operation) {
    case BPF_JEQ:
      return a == operand;
    case BPF_JGT:
      return a > operand;
    case BPF_JGE:
      return a >= operand;
    case BPF_JSET:
      return (a & operand) != 0;
    default:
      return std::nullopt;
  }
}

// Loads, stores and moves. False: not one that seccomp allows.
bool Move(const sock_filter& line, const seccomp_data& data, Machine& machine) {
  switch (line.code) {
    case BPF_LD | BPF_W | BPF_ABS:
      if (line.k % 4 != 0 || line.k > sizeof(data) - 4) {
        return false;
      }
      std::memcpy(&machine.a, reinterpret_cast<const char*>(&data) + line.k, 4);
      return true;
    case BPF_LD | BPF_W | BPF_LEN:
      machine.a = sizeof(data);
      return true;
    case BPF_LDX | BPF_W | BPF_LEN:
      machine.x = sizeof(data);
      return true;
    case BPF_LD | BPF_IMM:
      machine.a = line.k;
      return true;
    case BPF_LDX | BPF_IMM:
      machine.x = line.k;
      return true;
    case BPF_MISC | BPF_TAX:
      machine.x = machine.a;
      return true;
    case BPF_MISC | BPF_TXA:
      machine.a = machine.x;
      return true;
    default:
      break;
  }
  if (line.k >= machine.memory.size()) {
    return false;
  }
  switch (line.code) {
    case BPF_LD | BPF_MEM:
      machine.a = machine.memory[line.k];
      return true;
    case BPF_LDX | BPF_MEM:
      machine.x = machine.memory[line.k];
      return true;
    case BPF_ST:
      machine.memory[line.k] = machine.a;
      return true;
    case BPF_STX:
      machine.memory[line.k] = machine.x;
      return true;
    default:
      return false;
  }
}

}  // namespace

Result<uint32_t> Evaluate(std::span<const sock_filter> program, const seccomp_data& data) {
  if (program.empty() || program.size() > BPF_MAXINSNS) {
    return Refused("seccomp.program", "a filter has 1 to 4096 instructions");
  }
  Machine machine;
  for (size_t at = 0; at < program.size(); ++at) {
    const sock_filter& line = program[at];
    const uint32_t operand = BPF_SRC(line.code) == BPF_X ? machine.x : line.k;
    switch (BPF_CLASS(line.code)) {
      case BPF_RET:
        if (line.code == (BPF_RET | BPF_K)) {
          return line.k;
        }
        if (line.code == (BPF_RET | BPF_A)) {
          return machine.a;
        }
        return Invalid(at, "unknown return");
      case BPF_ALU: {
        const std::optional<uint32_t> value = Arithmetic(BPF_OP(line.code), machine.a, operand);
        if (!value) {
          return Invalid(at, "impossible arithmetic");
        }
        machine.a = *value;
        break;
      }
      case BPF_JMP: {
        uint64_t distance = line.k;
        if (line.code != (BPF_JMP | BPF_JA)) {
          const std::optional<bool> taken = Test(BPF_OP(line.code), machine.a, operand);
          if (!taken) {
            return Invalid(at, "unknown jump");
          }
          distance = *taken ? line.jt : line.jf;
        }
        if (distance >= program.size() - at - 1) {
          return Invalid(at, "jump beyond the end");
        }
        at += distance;
        break;
      }
      default:
        if (!Move(line, data, machine)) {
          return Invalid(at, "not an instruction that seccomp allows");
        }
    }
  }
  return Invalid(program.size(), "the end is reached without a return");
}

}  // namespace coffer::isolation
