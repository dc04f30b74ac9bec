# SPDX-License-Identifier: Apache-2.0
#
# coffer: one static executable, because its own start is part of every call's time.
# coffer-faults: the same program with the fault seam of base/fault.h switched on; tests only, never installed.
include_guard()

function(coffer_link_mode target)
  if(COFFER_LINK_EFFECTIVE STREQUAL "static-pie")
    target_link_options(${target} PRIVATE -static-pie)
  elseif(COFFER_LINK_EFFECTIVE STREQUAL "static")
    target_link_options(${target} PRIVATE -static -no-pie)
  else()
    target_link_options(${target} PRIVATE -pie)
  endif()
  if(COFFER_SANITIZE MATCHES "address")
    target_sources(${target} PRIVATE ${CMAKE_BINARY_DIR}/sanitizer_options.cc)
  endif()
endfunction()

# A linker writes its file here and there, and the page cache then holds it in pages of 4 KiB, each of which is mapped and
# unmapped on its own; a copy written in pieces of 64 KiB starts a tenth faster (measured on ext4, Linux 6.18; CMake's own
# copy writes 4 KiB). Larger pieces are faster still, but then a single fault maps, and keeps, a megabyte.
function(coffer_copy_in_pieces target)
  add_custom_command(TARGET ${target} POST_BUILD
    COMMAND dd if=$<TARGET_FILE:${target}> of=$<TARGET_FILE:${target}>.copy bs=64k status=none
    COMMAND chmod 755 $<TARGET_FILE:${target}>.copy
    COMMAND ${CMAKE_COMMAND} -E rename $<TARGET_FILE:${target}>.copy $<TARGET_FILE:${target}> VERBATIM)
endfunction()

# Tests start the program with an environment of their own, so ASAN_OPTIONS does not reach it; looking for leaks takes
# seconds at each exit, and the unit tests do it once for all (unit:leaks).
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/sanitizer_options.cc CONTENT [[
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }
]])

set(COFFER_MAIN ${CMAKE_SOURCE_DIR}/src/cli/main.cc)
if(NOT EXISTS ${COFFER_MAIN})
  message(STATUS "src/cli/main.cc is not there yet: coffer is not built")
  return()
endif()

add_executable(coffer ${COFFER_MAIN})
target_link_libraries(coffer PRIVATE coffer_lib)
set_target_properties(coffer PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
coffer_link_mode(coffer)
coffer_copy_in_pieces(coffer)

if(BUILD_TESTING)
  # Only the sources that look at the seam are compiled again; the linker takes everything else from coffer_lib.
  # That is right only while no other header pulls base/fault.h in, so this is checked here.
  set(fault_sources ${COFFER_MAIN})
  file(GLOB_RECURSE fault_candidates CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/*.cc ${CMAKE_SOURCE_DIR}/src/*.h)
  foreach(file IN LISTS fault_candidates)
    file(STRINGS ${file} uses REGEX "#include \"base/fault\\.h\"|COFFER_FAULT_INJECTION" LIMIT_COUNT 1)
    if(uses AND file MATCHES "\\.cc$")
      list(APPEND fault_sources ${file})
    elseif(uses AND NOT file MATCHES "/base/(fault|sys)\\.h$")
      message(FATAL_ERROR "${file} is a header and mentions the fault seam: include base/fault.h in a .cc only")
    endif()
  endforeach()
  list(REMOVE_DUPLICATES fault_sources)
  add_executable(coffer-faults ${fault_sources})
  target_compile_definitions(coffer-faults PRIVATE COFFER_FAULT_INJECTION)
  target_link_libraries(coffer-faults PRIVATE coffer_lib)
  set_target_properties(coffer-faults PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
  coffer_link_mode(coffer-faults)
endif()
