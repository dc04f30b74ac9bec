# SPDX-License-Identifier: Apache-2.0
#
# Warnings, hardening, sanitizers: the interface target coffer_options, used by everything we compile.
include_guard()

# -g1: backtraces with lines, at a third of the compile and link cost of -g.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1 -DNDEBUG")
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g1 -DNDEBUG")
if(COFFER_SANITIZE OR COFFER_COVERAGE)
  set(debug_info -g1)
else()
  set(debug_info -g)
endif()
set(CMAKE_CXX_FLAGS_DEBUG "-Og ${debug_info}")
set(CMAKE_C_FLAGS_DEBUG "-Og ${debug_info}")

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
  # Without the sloppiness ccache passes by everything that uses a precompiled header. With the other two a second checkout
  # finds what the first one compiled: -ffile-prefix-map keeps its directory out of what is made.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros
      CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE})
endif()

add_library(coffer_options INTERFACE)
target_include_directories(coffer_options INTERFACE ${CMAKE_SOURCE_DIR}/src)
target_compile_definitions(coffer_options INTERFACE _GNU_SOURCE
                           COFFER_VERSION="${PROJECT_VERSION}")
target_compile_options(coffer_options INTERFACE
  -Wall -Wextra -Werror -Wshadow -Wvla -Wno-missing-field-initializers
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor -Woverloaded-virtual>)

# g++ looks for garbage whenever its memory has doubled from 128 MB on, and finds little: 6 to 8 % of its time, more with a
# precompiled header. Memory is that of a third more for the largest files, under a gigabyte.
target_compile_options(coffer_options INTERFACE
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:--param=ggc-min-heapsize=524288>)

# One build of the library serves the static executable, the tests and the sanitizers.
target_compile_options(coffer_options INTERFACE -fPIE -ffunction-sections -fdata-sections)
# A path of the machine that built it has no business in an executable; gcov alone needs it.
if(NOT COFFER_COVERAGE)
  target_compile_options(coffer_options INTERFACE -ffile-prefix-map=${CMAKE_SOURCE_DIR}/=)
endif()

# Hardening. Sanitizers bring their own checks and dislike _FORTIFY_SOURCE.
target_compile_options(coffer_options INTERFACE -fstack-protector-strong)
if(NOT COFFER_SANITIZE AND NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
  target_compile_options(coffer_options INTERFACE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
endif()
include(CheckCXXCompilerFlag)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  check_cxx_compiler_flag(-fcf-protection COFFER_HAS_CF_PROTECTION)
  if(COFFER_HAS_CF_PROTECTION)
    target_compile_options(coffer_options INTERFACE -fcf-protection)
  endif()
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  check_cxx_compiler_flag(-mbranch-protection=standard COFFER_HAS_BRANCH_PROTECTION)
  if(COFFER_HAS_BRANCH_PROTECTION)
    target_compile_options(coffer_options INTERFACE -mbranch-protection=standard)
  endif()
endif()
target_link_options(coffer_options INTERFACE
  -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack -Wl,--gc-sections)

if(COFFER_SANITIZE)
  target_compile_options(coffer_options INTERFACE
    -fsanitize=${COFFER_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(coffer_options INTERFACE -fsanitize=${COFFER_SANITIZE})
  # So that code may know: a sanitizer's allocator needs far more address space than a payload may have.
  target_compile_definitions(coffer_options INTERFACE COFFER_SANITIZED)
endif()
if(COFFER_COVERAGE)
  target_compile_options(coffer_options INTERFACE --coverage -fprofile-update=atomic)
  target_link_options(coffer_options INTERFACE --coverage)
endif()
