// SPDX-License-Identifier: Apache-2.0
//
// Home directories, as /etc/passwd has them: too broad to be shown as a whole, wherever they lie.
#pragma once

#include <string>
#include <string_view>

namespace coffer::isolation {

// The home of this process's user: by its effective uid, not by the environment. Empty if there is none.
std::string OwnHome();

// The home of the user of this name; empty if there is none.
std::string HomeOf(std::string_view user);

// True if `directory` is the home of any user in /etc/passwd, by whatever name.
bool IsAnyHome(const std::string& directory);

}  // namespace coffer::isolation
