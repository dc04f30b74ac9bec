# SPDX-License-Identifier: Apache-2.0
#
# A wrong include does not build: the direction of dependencies between the folders of src/ (scripts/check_layers.py) is
# checked before anything is compiled, whenever a source has changed.
#
# One CMake target per folder would not do it. All folders share one root, src/, so every target that may include one of
# them finds the others too; hiding them takes a directory of links for each target, and then the paths in warnings,
# coverage and clang-tidy are those of the links.
include_guard()
find_package(Python3 COMPONENTS Interpreter QUIET)
if(NOT Python3_FOUND)
  message(FATAL_ERROR "Python 3 is missing: it checks the layers of src/ before anything is compiled. Run: scripts/setup.sh build")
endif()

# coffer_check_layers(TARGET...): none of their sources is compiled before the layers are right.
function(coffer_check_layers)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/*.cc ${CMAKE_SOURCE_DIR}/src/*.h)
  set(stamp ${CMAKE_BINARY_DIR}/layers.stamp)
  add_custom_command(OUTPUT ${stamp}
    COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/scripts/check_layers.py ${CMAKE_SOURCE_DIR}
    COMMAND ${CMAKE_COMMAND} -E touch ${stamp}
    DEPENDS ${sources} ${CMAKE_SOURCE_DIR}/scripts/check_layers.py
    COMMENT "Checking the layers of src/" VERBATIM)
  add_custom_target(layers DEPENDS ${stamp})
  foreach(target IN LISTS ARGN)
    add_dependencies(${target} layers)
  endforeach()
endfunction()
