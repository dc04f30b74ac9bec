# SPDX-License-Identifier: Apache-2.0
#
# Sources of one folder are compiled several at a time (ADR 59), and the headers of libraries that nearly all of them read are
# parsed once (ADR 71). Most of the time of a file goes into headers and into code that every file makes again of the same
# types, and so it is spent once for all of them.
#
# What is known in one file of a folder is then known in others too, and what a precompiled header has is known everywhere. So
# what is declared in an unnamed namespace has a name of its own in its folder (scripts/check_names.py), and a source includes
# what it uses (scripts/check_includes.py). clang-tidy and the presets dev and coverage compile each file alone, without
# precompiled headers.
include_guard()

# Alone stay two files that compile a library with macros of their own, and those that coffer-faults compiles again: the linker
# takes all of an object or nothing.
set(COFFER_UNITY_ALONE "/toml_read\\.cc$|/src/base/(clone|fault|format|sys)\\.cc$")

# Headers of src/ that do not change with it, and are read by most of its files.
set(COFFER_COMMON_HEADERS
  <algorithm> <array> <charconv> <chrono> <functional> <map> <memory> <optional> <set> <span> <string> <string_view> <variant>
  <vector> <fmt/format.h> <nlohmann/json.hpp>)
# As net/asio.h has them.
set(COFFER_ASIO_HEADERS
  <boost/asio/as_tuple.hpp> <boost/asio/awaitable.hpp> <boost/asio/basic_stream_socket.hpp> <boost/asio/co_spawn.hpp>
  <boost/asio/generic/stream_protocol.hpp> <boost/asio/io_context.hpp> <boost/asio/use_awaitable.hpp>)

# coffer_unity(TARGET): its sources below src/ and tests/, folder by folder, in groups of nearly one size.
function(coffer_unity target)
  if(NOT COFFER_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources EXCLUDE REGEX "${COFFER_UNITY_ALONE}")
  list(SORT sources)
  set(folders)
  foreach(source IN LISTS sources)
    if(source MATCHES "^${CMAKE_SOURCE_DIR}/((src|tests)/.*)/[^/]*\\.cc$")
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

# coffer_precompile(TARGET HEADER...): its sources find the headers parsed, where sources are compiled together.
function(coffer_precompile target)
  if(NOT COFFER_UNITY)
    return()
  endif()
  target_precompile_headers(${target} PRIVATE ${ARGN})
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "${COFFER_UNITY_ALONE}")
  set_source_files_properties(${sources} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
endfunction()
