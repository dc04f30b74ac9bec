# SPDX-License-Identifier: Apache-2.0
#
# Sources of one folder are compiled several at a time (ADR 59). Most of the time of a file goes into headers and into code
# that every file makes again of the same types, and so it is spent once for all of them.
#
# What is known in one file of a folder is then known in others too. So what is declared in an unnamed namespace has a name of
# its own there (scripts/check_names.py). clang-tidy and the presets dev, fuzz and coverage compile each file alone, where a
# missing include shows.
include_guard()

set(COFFER_UNITY_FILES 8)  # a change of one file compiles at most that many
# Alone stay two files that compile a library with macros of their own, and those that coffer-faults compiles again: the linker
# takes all of an object or nothing.
set(COFFER_UNITY_ALONE "/toml_read\\.cc$|/src/base/(clone|fault|format|sys)\\.cc$")

# coffer_unity(TARGET): its sources below src/, folder by folder, in groups of nearly one size.
function(coffer_unity target)
  if(NOT COFFER_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources EXCLUDE REGEX "${COFFER_UNITY_ALONE}")
  list(SORT sources)
  set(folders)
  foreach(source IN LISTS sources)
    if(source MATCHES "^${CMAKE_SOURCE_DIR}/(src/.*)/[^/]*\\.cc$")
      string(REPLACE "/" "_" folder "${CMAKE_MATCH_1}")
      list(APPEND folders ${folder})
      list(APPEND sources_of_${folder} ${source})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES folders)
  foreach(folder IN LISTS folders)
    list(LENGTH sources_of_${folder} count)
    math(EXPR groups "(${count} + ${COFFER_UNITY_FILES} - 1) / ${COFFER_UNITY_FILES}")
    set(number 0)
    foreach(source IN LISTS sources_of_${folder})
      math(EXPR group "${number} * ${groups} / ${count}")
      math(EXPR number "${number} + 1")
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder}_${group})
    endforeach()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # g++ takes the frame of a coroutine, and a type with a member of an unnamed namespace, for a header's if its file is
  # included. Alone they are not warned of.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()
