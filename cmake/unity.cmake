# SPDX-License-Identifier: Apache-2.0
#
# Sources of one folder are compiled several at a time (ADR 59). Most of the time of a file goes into headers and into code
# that every file makes again of the same types, and so it is spent once for all of them.
#
# What is known in one file of a folder is then known in others too. So a function in an unnamed namespace has a name of its
# own there (scripts/check_names.py). clang-tidy and the presets dev, fuzz and coverage compile each file alone, where a
# missing include shows.
include_guard()

set(COFFER_UNITY_FILES 8)  # a change of one file compiles that many
# The folders whose files take longest, by what they include. The others take a second or two each.
set(COFFER_UNITY_FOLDERS "/src/(audit|daemon|gateway/http|gateway/mcp|policy)/")
# One sets macros before it includes its library. The others have coroutines: g++ 12 takes those of a file that another one
# includes for a header's, and warns of their frames.
set(COFFER_UNITY_ALONE "/toml_read\\.cc$|/http/(connection|connection_read|server)\\.cc$")

# coffer_unity(TARGET): its sources in those folders, folder by folder.
function(coffer_unity target)
  if(NOT COFFER_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(SORT sources)
  set(folder_before "")
  foreach(source IN LISTS sources)
    if(NOT source MATCHES "${COFFER_UNITY_FOLDERS}" OR NOT source MATCHES "^${CMAKE_SOURCE_DIR}/(.*)/[^/]*\\.cc$")
      continue()
    endif()
    string(REPLACE "/" "_" folder "${CMAKE_MATCH_1}")
    if(NOT folder STREQUAL folder_before)
      set(folder_before ${folder})
      set(number 0)
    endif()
    math(EXPR group "${number} / ${COFFER_UNITY_FILES}")
    math(EXPR number "${number} + 1")
    if(NOT source MATCHES "${COFFER_UNITY_ALONE}")
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder}_${group})
    endif()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()
