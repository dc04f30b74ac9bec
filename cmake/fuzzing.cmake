# SPDX-License-Identifier: Apache-2.0
#
# tests/fuzz/NAME_fuzz.cc becomes the libFuzzer target NAME_fuzz; seeds are in tests/fuzz/corpus/NAME/.
#
# They link a library of their own, with the parsers and what those need: compiling all of src/ with asan, ubsan and
# coverage takes three times as long. If the linker misses something, name its file here.
include_guard()

target_compile_options(coffer_options INTERFACE -fsanitize=fuzzer-no-link)
set(fuzzed
  "base/.*"
  "policy/.*"
  "store/(state_part|tenant_id)"
  "audit/(receipt|receipt_parse|seal)"
  "audit/log/(body_match|checkpoint|encoding|log|log_file|log_home|log_lines|log_tail|merkle|merkle_sha256|records|records_scan|signer)"
  "isolation/child/(plan_block|report)"
  "isolation/runtime/(elf|loader_cache)"
  "isolation/seccomp/.*"
  "call/(evaluate|inside_frames|verb_flags|run/egress_messages|run/usual_directories|warden/protocol|warden/table|warden/wire|warden/wire_envelope|warden/wire_receipt)"
  "cli/(egress_flags|foreign_flags|run_defaults|run_flags|run_help|tool_flags)"
  "gateway/(http/.*|mcp/.*|jwks|jwt)"
  "net/(http_chunks|http_head)"
  "egress/(address_guard|client_hello|deliver_protocol|dns_message|name_table|proxy_request|resolver|socks)")
file(GLOB_RECURSE all_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/*.cc)
set(fuzzed_sources)
foreach(pattern IN LISTS fuzzed)  # one by one: a regular expression of CMake has room for nine groups
  set(matching ${all_sources})
  list(FILTER matching INCLUDE REGEX "/src/${pattern}\\.cc$")
  list(APPEND fuzzed_sources ${matching})
endforeach()
list(FILTER fuzzed_sources EXCLUDE REGEX "/main\\.cc$|/http/(connection|server)\\.cc$")
add_library(fuzzed STATIC EXCLUDE_FROM_ALL ${fuzzed_sources} ${openapi_source})
target_link_libraries(fuzzed PUBLIC coffer_options coffer_libraries OpenSSL::Crypto ZLIB::ZLIB)
get_target_property(definitions coffer_gateway COMPILE_DEFINITIONS)
target_compile_definitions(fuzzed PRIVATE ${definitions})
coffer_add_seccomp_tables(fuzzed)

file(GLOB fuzz_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/fuzz/*_fuzz.cc)
add_custom_target(fuzzers)
foreach(source IN LISTS fuzz_sources)
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} EXCLUDE_FROM_ALL ${source})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/generated)
  target_link_libraries(${name} PRIVATE fuzzed)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
  add_dependencies(fuzzers ${name})
endforeach()
