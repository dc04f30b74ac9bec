# SPDX-License-Identifier: Apache-2.0
#
# tests/fuzz/NAME_fuzz.cc becomes the libFuzzer target NAME_fuzz; seeds are in tests/fuzz/corpus/NAME/.
include_guard()

target_compile_options(coffer_options INTERFACE -fsanitize=fuzzer-no-link)
file(GLOB fuzz_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/fuzz/*_fuzz.cc)
add_custom_target(fuzzers)
foreach(source IN LISTS fuzz_sources)
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} ${source})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  file(STRINGS ${source} of_gateway REGEX "#include \"gateway/" LIMIT_COUNT 1)
  target_link_libraries(${name} PRIVATE $<IF:$<BOOL:${of_gateway}>,coffer_gateway,coffer_lib>)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
  add_dependencies(fuzzers ${name})
endforeach()
