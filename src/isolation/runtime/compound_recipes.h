// SPDX-License-Identifier: Apache-2.0
//
// Recipes of programs that consist of many programs, or of a program and its data: git, gcc, java, npm, pandoc.
//
// They are for declared tools, which see listed files only. Each names what the program starts or
// reads by itself; what a tool needs beyond that is another runtime beside it.
#pragma once

#include "base/result.h"
#include "isolation/runtime/program.h"
#include "isolation/runtime/set_builder.h"

namespace coffer::isolation {

// git's own commands, its templates, and the shell that hooks and some of the commands are written for.
Status AddGit(SetBuilder& set, const Program& program);
// The compiler proper, assembler, linker, headers and the libraries that are linked.
Status AddGcc(SetBuilder& set, const Program& program);
// The whole Java home, with the configuration that it links to in /etc.
Status AddJava(SetBuilder& set, const Program& program);
// Node's package manager: JavaScript in several places. The shell runs scripts of packages.
Status AddNpm(SetBuilder& set, const Program& program);
Status AddPandoc(SetBuilder& set, const Program& program);
// A program that needs nothing but its libraries.
Status AddNothing(SetBuilder& set, const Program& program);

}  // namespace coffer::isolation
