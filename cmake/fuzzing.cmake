# SPDX-License-Identifier: Apache-2.0
#
# tests/fuzz/NAME_fuzz.cc becomes the libFuzzer target NAME_fuzz; seeds are in tests/fuzz/corpus/NAME/.
#
# They link the libraries of the sanitized tests: one build serves both.
include_guard()

# Coverage, which shows libFuzzer what an input reached.
target_compile_options(coffer_lib PRIVATE -fsanitize=fuzzer-no-link)
target_compile_options(coffer_gateway PRIVATE -fsanitize=fuzzer-no-link)

file(GLOB fuzz_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/fuzz/*_fuzz.cc)
add_custom_target(fuzzers)
foreach(source IN LISTS fuzz_sources)
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} EXCLUDE_FROM_ALL ${source})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/generated)
  target_link_libraries(${name} PRIVATE coffer_gateway)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
  add_dependencies(fuzzers ${name})
endforeach()
