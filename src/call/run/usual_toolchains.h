// SPDX-License-Identifier: Apache-2.0
//
// Where version managers keep the interpreters that they install: pyenv, uv, nvm, fnm, mise, asdf.
//
// They count as toolchains without being declared (run_config.h): a link in a virtual environment, or a first line, may
// lead to an interpreter there. In return no call can have one of them mounted writable, nor what lies around a place where
// one could be made, so no payload writes there.
#pragma once

#include <string>
#include <vector>

namespace coffer::call {

// Adds those that exist, as real paths: directories of the caller's own that no other user can change. Looking for them
// takes some thirty system calls, so it is done for calls with mounts, scripts or programs outside /usr.
void AddUsualToolchains(std::vector<std::string>& toolchains);
// All of these places, whether there is something or not: what a payload made there would count for the next call.
std::vector<std::string> UsualToolchainPlaces();

}  // namespace coffer::call
