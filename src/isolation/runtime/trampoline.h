// SPDX-License-Identifier: Apache-2.0
//
// Console scripts of Python whose interpreter does not fit into a first line: its path is long,
// holds a space, or is that of an environment that can be moved. pip and uv then write a script
// that is shell and Python at once:
//
//   #!/bin/sh
//   '''exec' '/a long/path/.venv/bin/python' "$0" "$@"
//   ' '''
//
// The shell runs the second line, and Python takes the first lines for a string. What runs in the
// end is that interpreter with the script as its argument, as if the first line had named it.
#pragma once

#include <string>
#include <string_view>

namespace coffer::isolation {

// The interpreter that such a script names; empty if it is not exactly of that form. `head` is the
// start of the file, and `directory` holds the script: scripts that can be moved name a program
// beside themselves.
std::string TrampolineTarget(std::string_view head, std::string_view directory);

}  // namespace coffer::isolation
