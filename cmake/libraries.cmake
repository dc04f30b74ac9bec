# SPDX-License-Identifier: Apache-2.0
#
# What we link: static archives of libseccomp, libsodium, SQLite, libpsl and libidn2; nlohmann/json is headers only, and fmt
# compiled in src/base/format.cc (Debian ships no libfmt.a).
# All of them come from the group `build` of deploy/packages.txt.
include_guard()

add_library(coffer_libraries INTERFACE)

function(coffer_need_archive name header package)
  find_library(COFFER_${name}_ARCHIVE lib${name}.a)
  find_path(COFFER_${name}_INCLUDE ${header})
  if(NOT COFFER_${name}_ARCHIVE OR NOT COFFER_${name}_INCLUDE)
    message(FATAL_ERROR "lib${name}.a or ${header} is missing. Run: scripts/setup.sh build (Debian package ${package})")
  endif()
  target_link_libraries(coffer_libraries INTERFACE ${COFFER_${name}_ARCHIVE})
endfunction()

function(coffer_need_header name header package)
  find_path(COFFER_${name}_INCLUDE ${header})
  if(NOT COFFER_${name}_INCLUDE)
    message(FATAL_ERROR "${header} is missing. Run: scripts/setup.sh build (Debian package ${package})")
  endif()
endfunction()

coffer_need_archive(seccomp seccomp.h libseccomp-dev)
coffer_need_archive(sodium sodium.h libsodium-dev)
coffer_need_archive(sqlite3 sqlite3.h libsqlite3-dev)
# The public suffix list, names beyond ASCII, and what those need: in this order, each uses the next.
coffer_need_archive(psl libpsl.h libpsl-dev)
coffer_need_archive(idn2 idn2.h libidn2-dev)
coffer_need_archive(unistring unicase.h libunistring-dev)
coffer_need_header(fmt fmt/format.h libfmt-dev)
coffer_need_header(json nlohmann/json.hpp nlohmann-json3-dev)
coffer_need_header(toml toml++/toml.h libtomlplusplus-dev)
