# SPDX-License-Identifier: Apache-2.0
#
# coffer_add_seccomp_tables(TARGET): generates isolation/seccomp/builtin.inc and puts it on TARGET's include path.
#
# The file comes from a small program that must run on the machine that builds, also when TARGET is for another
# architecture. It needs a native compiler and a native libseccomp:
#   COFFER_HOST_CXX      the native C++ compiler; found by itself
#   COFFER_SECCOMP_GEN   a generator built before; then neither compiler nor libseccomp is needed
# One generator and one output serve both architectures, so the result does not depend on where it was made.

set(COFFER_SECCOMP_GEN "" CACHE FILEPATH "Prebuilt seccomp table generator for this machine")

if(NOT COFFER_HOST_CXX)
  if(CMAKE_CROSSCOMPILING)
    find_program(COFFER_HOST_CXX NAMES g++ c++ clang++ NO_CMAKE_FIND_ROOT_PATH DOC "Native C++ compiler")
  else()
    set(COFFER_HOST_CXX "${CMAKE_CXX_COMPILER}" CACHE FILEPATH "Native C++ compiler")
  endif()
endif()

function(coffer_add_seccomp_tables target)
  set(source "${PROJECT_SOURCE_DIR}/src")
  set(folder "${source}/isolation/seccomp")
  set(generated "${PROJECT_BINARY_DIR}/generated")
  set(output "${generated}/isolation/seccomp/builtin.inc")

  if(NOT TARGET coffer_seccomp_tables)
    if(COFFER_SECCOMP_GEN)
      set(generator "${COFFER_SECCOMP_GEN}")
    else()
      if(NOT COFFER_HOST_CXX)
        message(FATAL_ERROR "no native C++ compiler for the seccomp tables: set COFFER_HOST_CXX or COFFER_SECCOMP_GEN")
      endif()
      set(generator "${PROJECT_BINARY_DIR}/seccomp_gen")
      set(generator_sources
          "${folder}/gen/main.cc" "${folder}/profiles.cc" "${folder}/role_profiles.cc" "${folder}/argument_rules.cc" "${folder}/identity_rules.cc" "${folder}/compile.cc"
          "${folder}/emitter.cc" "${folder}/syscall_table.cc" "${source}/base/error.cc")
      set(generator_headers
          "${folder}/gen/libseccomp_table.h" "${folder}/profile.h" "${folder}/role_profiles.h" "${folder}/argument_rules.h" "${folder}/identity_rules.h" "${folder}/compile.h"
          "${folder}/emitter.h" "${folder}/syscall_table.h" "${source}/policy/envelope.h" "${source}/policy/layer.h"
          "${source}/base/result.h" "${source}/base/error.h" "${source}/base/clock.h")
      # One file of them all: everything else waits for the tables, and nine times the headers take three times as long.
      set(together "${generated}/seccomp_gen.cc")
      list(TRANSFORM generator_sources REPLACE "(.+)" "#include \"\\1\"" OUTPUT_VARIABLE lines)
      list(JOIN lines "\n" text)
      file(CONFIGURE OUTPUT "${together}" CONTENT "${text}\n")
      add_custom_command(
        OUTPUT "${generator}"
        COMMAND "${COFFER_HOST_CXX}" -std=gnu++20 -O0 -D_GNU_SOURCE "-I${source}" "${together}"
                -o "${generator}" -lseccomp
        DEPENDS ${generator_sources} ${generator_headers}
        COMMENT "Building the seccomp table generator"
        VERBATIM)
    endif()
    add_custom_command(
      OUTPUT "${output}"
      COMMAND "${CMAKE_COMMAND}" -E make_directory "${generated}/isolation/seccomp"
      COMMAND "${generator}" "${output}"
      DEPENDS "${generator}"
      COMMENT "Generating the seccomp tables"
      VERBATIM)
    add_custom_target(coffer_seccomp_tables DEPENDS "${output}")
  endif()

  add_dependencies(${target} coffer_seccomp_tables)
  set_property(SOURCE "${folder}/builtin.cc" APPEND PROPERTY OBJECT_DEPENDS "${output}")
  target_include_directories(${target} PRIVATE "${generated}")
endfunction()
