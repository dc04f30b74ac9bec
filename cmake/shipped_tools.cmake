# SPDX-License-Identifier: Apache-2.0
#
# The manifests of tools/ as text in the executable, so that the shipped tools are there with nothing installed beside it.
include_guard()

function(coffer_embed_tools target)
  set(output "${PROJECT_BINARY_DIR}/generated/call/shipped_tools.inc")
  file(GLOB manifests CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tools/*.toml")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${manifests})
  set(text "")
  foreach(manifest IN LISTS manifests)
    get_filename_component(name "${manifest}" NAME)
    file(READ "${manifest}" content)
    string(FIND "${content}" ")coffer\"" delimiter)
    if(NOT delimiter EQUAL -1)
      message(FATAL_ERROR "${manifest} holds the delimiter of a raw string")
    endif()
    string(APPEND text "{\"${name}\", R\"coffer(${content})coffer\"},\n")
  endforeach()
  # configure_file would replace @words@; and a file that did not change must not be touched.
  file(GENERATE OUTPUT "${output}" CONTENT "${text}")
  target_include_directories(${target} PRIVATE "${PROJECT_BINARY_DIR}/generated")
endfunction()
