// SPDX-License-Identifier: Apache-2.0
//
// The own tree of a program: the directory below which a file that came with the program may name further files.
//
// A first line, an ELF header, a pyvenv.cfg or a link may have been written by an earlier payload, so what they name is
// not the caller's word. It is taken from the system, from the program's own tree, or from a toolchain that the caller
// declared (opened_runtime.h), and from nowhere else.
#pragma once

#include <string>

#include "isolation/runtime/real_path.h"

namespace coffer::isolation {

// For /home/u/app/bin/tool it is /home/u/app; for /home/u/proj/tool, /home/u/proj. Where a link was
// followed that another user than root could have made, it is the directory of that link, or the
// virtual environment around it, not the place where the link leads. Empty if that would be too
// broad (/home/u/tool) or is the system's, which needs no such tree.
std::string OwnTree(const RealPaths::Place& place);

}  // namespace coffer::isolation
