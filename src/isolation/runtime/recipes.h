// SPDX-License-Identifier: Apache-2.0
//
// What each named runtime consists of, beyond its program and the libraries that are found by themselves.
//
// A recipe knows what a language loads at run time: its standard library, the libraries of its extension modules, the
// everyday tools of a shell, the helpers of a compound program. It names nothing that is setuid (AddProgram refuses
// those whatever the list says).
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "isolation/runtime/program.h"
#include "isolation/runtime/set_builder.h"

namespace coffer::isolation {

struct Recipe {
  std::string_view name;
  std::string_view program;  // searched for on SearchPath(); empty: none
  std::string_view package;  // Debian package that brings it
  std::string_view summary;
  Status (*add)(SetBuilder& set, const Program& program);
  // What belongs to a link to the program, at the place of the link; null: nothing.
  void (*add_beside)(SetBuilder& set, const RealPaths::Place& link) = nullptr;
};

std::span<const Recipe> Recipes();
const Recipe* FindRecipe(std::string_view name);

// The runtime that would bring `command`; empty if no recipe does.
std::string FindRuntimeWith(std::string_view command);

// The recipe for a program that was found at `place`, by the name of the file, then by the name it was called:
// python3.11 -> python3, dash -> sh. Nothing for any other program.
const Recipe* FindRecipeFor(const RealPaths::Place& place);

}  // namespace coffer::isolation
