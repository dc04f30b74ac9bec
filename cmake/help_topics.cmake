# SPDX-License-Identifier: Apache-2.0
#
# The pages of `coffer help TOPIC` as text in the executable: the same text that docs/ has, and that manual pages are made
# of (install.cmake), so that each is written once.
include_guard()

# What stands in `file` from the line `from` to the line `to`; all of it if `from` is empty.
function(coffer_read_section file from to result)
  file(READ "${file}" content)
  if(from)
    string(FIND "${content}" "${from}" begin)
    string(FIND "${content}" "${to}" end)
    if(begin EQUAL -1 OR end EQUAL -1)
      message(FATAL_ERROR "${file} has no section from '${from}' to '${to}'")
    endif()
    math(EXPR length "${end} - ${begin}")
    string(SUBSTRING "${content}" ${begin} ${length} content)
  endif()
  string(FIND "${content}" ")coffer\"" delimiter)
  if(NOT delimiter EQUAL -1)
    message(FATAL_ERROR "${file} holds the delimiter of a raw string")
  endif()
  set(${result} "${content}" PARENT_SCOPE)
endfunction()

function(coffer_embed_help target)
  set(manifest_file "${PROJECT_SOURCE_DIR}/docs/MANIFEST.md")
  set(config_file "${PROJECT_SOURCE_DIR}/docs/OPERATIONS.md")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${manifest_file} ${config_file})
  coffer_read_section("${manifest_file}" "" "" manifest)
  coffer_read_section("${config_file}" "### The configuration file" "### Backup" config)
  file(GENERATE OUTPUT "${PROJECT_BINARY_DIR}/generated/cli/help_topics.inc" CONTENT
    "{\"manifest\", R\"coffer(${manifest})coffer\"},\n{\"config\", R\"coffer(${config})coffer\"},\n")
  target_include_directories(${target} PRIVATE "${PROJECT_BINARY_DIR}/generated")
endfunction()
