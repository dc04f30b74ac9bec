// SPDX-License-Identifier: Apache-2.0
//
// Configuration that packages keep in /etc and link to from /usr: openssl.cnf, the JVM's security files, ImageMagick's
// colours, the loader's cache. Programs of the host's /usr do not start, or behave oddly, without it.
//
// It is a list of names, never /etc itself. What holds passwords, keys, tokens or addresses is not
// on it (pip.conf, npmrc, gitconfig, maven's settings.xml, /etc/ssl/private). Only what every user
// may read is shown: a name that is not root's or not public is left out, and a file in a directory
// of the list that is not public is covered or kept out by its mode.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "isolation/host_path.h"

namespace coffer::isolation {

// True for /etc/java-17-openjdk and what lies below it; false for /etc/passwd.
bool IsPackageEtc(std::string_view path);

// What of the list this host has, absolute. Nothing if /etc cannot be listed.
std::vector<std::string> FindPackageEtc();

// Files below a directory of the list that the boundary could read and not every user may,
// relative, each to be covered; fifos and sockets too. None as root, whose boundaries have a uid
// that owns nothing. kRefused if a directory below is not public, or there is more than a
// configuration has.
Result<std::vector<std::string>> FindNotPublic(const HostPath& directory);

}  // namespace coffer::isolation
