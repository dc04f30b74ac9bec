# SPDX-License-Identifier: Apache-2.0
#
# Cross build for x86_64 with Debian's g++-x86-64-linux-gnu; used by scripts/vm_cross_build.sh.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
include(${CMAKE_CURRENT_LIST_DIR}/debian_cross.cmake)
