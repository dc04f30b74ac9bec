# SPDX-License-Identifier: Apache-2.0
#
# What both cross builds share. The compiler's own libraries come with the cross compiler; libc and ours (libseccomp,
# libsodium, SQLite, OpenSSL, Boost, fmt, nlohmann/json, GoogleTest) are unpacked Debian packages below COFFER_SYSROOT, and
# nothing of the host may be found in their place.
set(triplet ${CMAKE_SYSTEM_PROCESSOR}-linux-gnu)
set(CMAKE_C_COMPILER ${triplet}-gcc)
set(CMAKE_CXX_COMPILER ${triplet}-g++)
set(CMAKE_LIBRARY_ARCHITECTURE ${triplet})

# try_compile reads this file again, without the cache.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES COFFER_SYSROOT)
if(NOT COFFER_SYSROOT)
  message(FATAL_ERROR "Set COFFER_SYSROOT to a directory with the libraries of ${triplet}; scripts/vm_cross_build.sh does")
endif()
set(CMAKE_SYSROOT ${COFFER_SYSROOT})
set(CMAKE_FIND_ROOT_PATH ${COFFER_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
# The cross compiler looks into its own libc first, whose libm.a is a linker script with paths of a native system.
set(CMAKE_EXE_LINKER_FLAGS_INIT "-L${COFFER_SYSROOT}/usr/lib/${triplet}")

# Test executables cannot be asked for their tests here.
set(CMAKE_GTEST_DISCOVER_TESTS_DISCOVERY_MODE PRE_TEST)
