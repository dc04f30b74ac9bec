# SPDX-License-Identifier: Apache-2.0
#
# Everything that can be chosen, in one place. Presets set these.
include_guard()

option(BUILD_TESTING "Build the tests, the probes and coffer-faults" ON)
option(COFFER_FUZZ "Build the fuzz targets of tests/fuzz (clang only)" OFF)
option(COFFER_UNITY "Compile several sources of a folder at a time (cmake/unity.cmake)" OFF)
set(COFFER_UNITY_FILES 16 CACHE STRING "So many sources at most: a change of one compiles all of its group")
option(COFFER_COVERAGE "Instrument for gcov" OFF)
set(COFFER_SANITIZE "" CACHE STRING "Comma-separated sanitizers, e.g. address,undefined; makes coffer dynamic")

# A fixed load address saves a call about 30 us (relocation, and a dozen pages it dirties) and 50 kB per boundary; stack,
# heap and mappings stay randomised (ADR 1). static-pie is one option away.
# A sanitizer's runtime cannot be linked statically, so those builds are dynamic.
set(COFFER_LINK static CACHE STRING "How coffer is linked: static-pie, static or dynamic")
set_property(CACHE COFFER_LINK PROPERTY STRINGS static-pie static dynamic)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()
if(COFFER_SANITIZE OR COFFER_COVERAGE OR COFFER_FUZZ)
  set(COFFER_LINK_EFFECTIVE dynamic)
else()
  set(COFFER_LINK_EFFECTIVE ${COFFER_LINK})
endif()
if(NOT COFFER_LINK_EFFECTIVE MATCHES "^(static-pie|static|dynamic)$")
  message(FATAL_ERROR "COFFER_LINK is '${COFFER_LINK}'; choose static-pie, static or dynamic")
endif()
if(COFFER_FUZZ AND NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  message(FATAL_ERROR "COFFER_FUZZ needs clang: use the preset `asan`")
endif()
