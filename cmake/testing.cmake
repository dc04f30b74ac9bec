# SPDX-License-Identifier: Apache-2.0
#
# Tests are found by where they stand:
#   tests/unit/**/*_test.cc                               one executable, unit_tests
#   tests/unit/{net,egress,gateway,daemon}/**, tests/gateway/*_test.cc   one executable, gateway_tests
#   tests/{integration,escape,posture,faults}/*_test.cc   one executable each; other *.cc in the folder go into all
#   tests/daemon/*.cc                                     one executable, daemon_tests, one test at a time: many measure
#   tests/support/*.cc                                    linked into every test
#   tests/conformance/schema_oracle/                      our schema validator against ajv (scripts/schema_oracle.sh)
#   tests/conformance/log_agreement/                      our verifier of audit logs against the one in Python
#   tests/conformance/otlp_oracle/                        exported traces against the OTLP schema (scripts/otlp_oracle.sh)
#   tests/conformance/mcp/                                MCP over HTTP against the official suite (scripts/mcp_conformance.sh)
#   tests/conformance/mcp_clients/                        coffer mcp with the official clients and servers (scripts/mcp_clients.sh)
#   tests/conformance/openapi_lint/                       openapi.json against a linter (scripts/lint_openapi.sh)
#   tests/conformance/sdk_types/                          sdk/typescript against the TypeScript compiler (scripts/check_sdk_types.sh)
#   tests/sdk/                                            sdk/python and sdk/typescript against a real daemon and bad servers
#   tests/docs/                                           the examples of README.md and docs/, run and compared
#   tests/containers/                                     coffer inside containers as Docker and its kin make them
#   tests/probes/*.c, *.cc                                small static programs that run inside boundaries
# Every test runs as its own process, with its folder's name as label; the label `once` says that its answer does not depend
# on the uid, so that `make test` runs it as root alone. A file called *_serial_test.cc looks at
# state of the whole host and never runs beside another test. What a test needs to find is in its environment:
#   COFFER_BIN, COFFER_FAULTS_BIN, COFFER_PROBES (a directory), COFFER_SOURCE (the checkout)
# and never compiled in, because `make test-user` runs a copy of the build somewhere else.
include_guard()
include(GoogleTest)

# A machine may have one of the two from elsewhere; what does not test must build there all the same.
find_package(GTest QUIET)
find_library(COFFER_RAPIDCHECK librapidcheck.a)
if(NOT GTest_FOUND OR NOT COFFER_RAPIDCHECK)
  message(WARNING "GoogleTest or RapidCheck is missing, so there are no tests in this build. Run: scripts/setup.sh test")
  return()
endif()

set(COFFER_TESTS_DIR ${CMAKE_BINARY_DIR}/tests)
set(COFFER_TEST_ENVIRONMENT
  # Interpreters are taken from PATH: those of the developer's own home are not what a test means.
  PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
  COFFER_BIN=${CMAKE_BINARY_DIR}/coffer
  COFFER_FAULTS_BIN=${CMAKE_BINARY_DIR}/coffer-faults
  COFFER_PROBES=${COFFER_TESTS_DIR}/probes
  COFFER_SOURCE=${CMAKE_SOURCE_DIR}
  ASAN_OPTIONS=detect_leaks=0  # seconds for each process; see unit:leaks below
  UBSAN_OPTIONS=print_stacktrace=1)

# Probes: static, plain, without our library, so that they run in the emptiest of roots. main.cc and the files without
# a main() make up the program `probe`; any other file is a program of its own.
set(COFFER_PROBE_TARGETS)
function(coffer_add_probe name)
  add_executable(probe_${name} ${ARGN})
  target_compile_definitions(probe_${name} PRIVATE _GNU_SOURCE)
  target_compile_options(probe_${name} PRIVATE -O1 -Wall -Wextra -Werror)
  target_link_options(probe_${name} PRIVATE -static)
  set_target_properties(probe_${name} PROPERTIES
    OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${COFFER_TESTS_DIR}/probes)
  set(COFFER_PROBE_TARGETS ${COFFER_PROBE_TARGETS} probe_${name} PARENT_SCOPE)
endfunction()
file(GLOB probe_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/probes/*.c ${CMAKE_SOURCE_DIR}/tests/probes/*.cc)
set(probe_parts)
foreach(source IN LISTS probe_sources)
  file(STRINGS ${source} has_main REGEX "^int main\\(" LIMIT_COUNT 1)
  get_filename_component(name ${source} NAME_WE)
  if(has_main AND NOT name STREQUAL "main")
    coffer_add_probe(${name} ${source})
  else()
    list(APPEND probe_parts ${source})
  endif()
endforeach()
if(probe_parts)
  coffer_add_probe(probe ${probe_parts})
endif()

# A program with a library of its own beside it, as projects have them: own_tree/bin/tool and own_tree/lib/libown.so.
add_library(probe_own_library SHARED ${CMAKE_SOURCE_DIR}/tests/probes/own_tree/own.c)
set_target_properties(probe_own_library PROPERTIES
  OUTPUT_NAME own LIBRARY_OUTPUT_DIRECTORY ${COFFER_TESTS_DIR}/probes/own_tree/lib)
add_executable(probe_own_tool ${CMAKE_SOURCE_DIR}/tests/probes/own_tree/tool.c)
target_link_libraries(probe_own_tool PRIVATE probe_own_library)
set_target_properties(probe_own_tool PROPERTIES
  OUTPUT_NAME tool RUNTIME_OUTPUT_DIRECTORY ${COFFER_TESTS_DIR}/probes/own_tree/bin
  BUILD_RPATH "$ORIGIN/../lib" BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN/../lib")
list(APPEND COFFER_PROBE_TARGETS probe_own_library probe_own_tool)

# What every test includes is parsed once: two seconds of the three that a small test takes to compile.
file(GLOB support_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/support/*.cc)
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/test_support.cc CONTENT "")  # written only once: WRITE would relink every test
add_library(test_support STATIC ${support_sources} ${CMAKE_BINARY_DIR}/test_support.cc)
target_link_libraries(test_support PUBLIC coffer_lib GTest::gmock)
target_include_directories(test_support PUBLIC ${CMAKE_SOURCE_DIR})
# Tests are compiled far more often than their code matters for speed. The last -O counts.
set(COFFER_TEST_OPTIONS -O1)
set(COFFER_TEST_LINK_OPTIONS)
if(CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo" AND NOT COFFER_SANITIZE)
  # Lines for a debugger are nine tenths of a test's bytes, and each uid that runs tests has a copy of them all
  # (scripts/run_tests.sh). The preset dev has them.
  list(APPEND COFFER_TEST_OPTIONS -g0)
  set(COFFER_TEST_LINK_OPTIONS -Wl,--strip-debug)
endif()
target_compile_options(test_support PRIVATE ${COFFER_TEST_OPTIONS})
target_precompile_headers(test_support PRIVATE <gmock/gmock.h> <gtest/gtest.h> <nlohmann/json.hpp>)

# coffer_add_tests(NAME LABEL TIMEOUT SOURCE...)
function(coffer_add_tests name label timeout)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE test_support GTest::gtest_main)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # GCC 12 sees overflows in lists of strings that are not there (its bug 105651).
    target_compile_options(${name} PRIVATE -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow)
  endif()
  target_compile_options(${name} PRIVATE ${COFFER_TEST_OPTIONS})
  target_link_options(${name} PRIVATE ${COFFER_TEST_LINK_OPTIONS})
  target_precompile_headers(${name} REUSE_FROM test_support)
  if(label MATCHES "^(unit|gateway|daemon)$")
    coffer_unity(${name})  # scripts/check_names.py looks at the names of these folders
  endif()
  if(NOT TARGET ${label}_suite)
    add_custom_target(${label}_suite)  # make asan SUITES='unit gateway' builds no more than it runs
  endif()
  add_dependencies(${label}_suite ${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${COFFER_TESTS_DIR})
  if(NOT label MATCHES "^(unit|gateway)$" AND TARGET coffer)
    add_dependencies(${name} coffer coffer-faults ${COFFER_PROBE_TARGETS})
  endif()
  if(CMAKE_CROSSCOMPILING)
    return()  # the virtual machine runs the executables; this host cannot ask them for their tests
  endif()
  set(serial FALSE)
  if(name MATCHES "_serial_test$" OR label STREQUAL "daemon")
    set(serial TRUE)
  endif()
  gtest_discover_tests(${name}
    WORKING_DIRECTORY ${COFFER_TESTS_DIR}
    TEST_PREFIX "${label}:"
    DISCOVERY_TIMEOUT 120
    NO_PRETTY_VALUES
    TEST_LIST tests_of_${name}
    PROPERTIES LABELS ${label} TIMEOUT ${timeout} RUN_SERIAL ${serial})
  # Parsers and rules, which neither start a program nor look at a file's owner: the same for every uid.
  set(once_suites)
  foreach(source IN LISTS ARGN)
    if(source MATCHES "/tests/unit/(gateway|net|policy)/")
      file(STRINGS ${source} lines REGEX "^(TEST|TEST_F|TEST_P|RC_GTEST_PROP)[(]")
      list(TRANSFORM lines REPLACE "^[A-Z_]+[(]([A-Za-z0-9_]+).*" "\\1")
      list(APPEND once_suites ${lines})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES once_suites)
  # gtest_discover_tests takes a list apart; what it found is known only when ctest reads its files.
  set(script ${CMAKE_BINARY_DIR}/${name}_environment.cmake)
  file(CONFIGURE OUTPUT ${script} @ONLY CONTENT [[
set(once_suites "@once_suites@")
if(tests_of_@name@)
  set_tests_properties(${tests_of_@name@} PROPERTIES ENVIRONMENT "@COFFER_TEST_ENVIRONMENT@")
  foreach(test IN LISTS tests_of_@name@)
    if(test MATCHES "RS_21_|LongAnswersThatAreNotReadHoldUpNobody")
      # They look for traces of any boundary on the host, so that none of another test may come and go meanwhile; or take
      # both processors for seconds.
      set_tests_properties("${test}" PROPERTIES RUN_SERIAL TRUE)
    elseif(test MATCHES "^daemon:(AgentLoop|Agents|BrokenGateway|CallsOfDaemon|Cancelled|ConfigFile|DaemonEgress|Deliver)[.]" OR
           test MATCHES "^daemon:(DeliverTls|Exports|Files|Hangup|Keys|McpDaemon|Peers|Processes|Record|RecordedText)[.]" OR
           test MATCHES "^daemon:(RequestMistakes|Retries|RolePosture|Sessions|SessionSize|SessionVolumes|Storage)[.]" OR
           test MATCHES "^daemon:(Tenants|TenantRoutes|Tokens|Tools|ToolsDirectory|Uploads)[.]" OR
           test STREQUAL "daemon:Metrics.ARealPrometheusScrapesIt")
      # They wait for states and not for times, so that a neighbour delays them and changes nothing.
      set_tests_properties("${test}" PROPERTIES RUN_SERIAL FALSE)
    endif()
    # The longest begin first, also in the first run, of which ctest knows no times.
    if(test MATCHES "^faults:(Rungs|Level/RunKill|TornLog)[.]|^daemon:Crash|FS_05_TheSharedNameIsSwappedWhileCofferLooks/container")
      set_tests_properties("${test}" PROPERTIES COST 60)
    elseif(test MATCHES "CliProcesses.EndsWithTheLifetime|RS_04_FileLocksAreMemory|RS_12_ChildrenThatTheKernelForgets" OR
           test MATCHES "ARealPrometheusScrapesIt|Deliver.WhatIsRefusedEachTime|BothVerifiersSayTheSame|ALostSessionIsBegunAgain")
      set_tests_properties("${test}" PROPERTIES COST 15)
    endif()
    string(REGEX REPLACE "^[a-z]+:([A-Za-z0-9_]+/)?([A-Za-z0-9_]+)[.].*" "\\2" suite "${test}")
    list(FIND once_suites "${suite}" once)
    if(NOT once EQUAL -1 OR test MATCHES "^faults:(TornLog|LogTornTest|LogFaultTest|LogKillTest|StoreKillTest)[.]")
      # Files that one program writes, and no boundary: the same for every uid, so one run of the two has them.
      set_tests_properties("${test}" PROPERTIES LABELS "@label@;once")
    endif()
  endforeach()
endif()
]])
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${script})
endfunction()

file(GLOB_RECURSE unit_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/unit/*.cc)
# What needs Boost and OpenSSL is an executable of its own, gateway_tests.
list(FILTER unit_sources EXCLUDE REGEX "/tests/unit/(net|egress|gateway|daemon)/")
if(unit_sources)
  coffer_add_tests(unit_tests unit 60 ${unit_sources})
  target_link_libraries(unit_tests PRIVATE ${COFFER_RAPIDCHECK})
  if(COFFER_PROBE_TARGETS)
    add_dependencies(unit_tests ${COFFER_PROBE_TARGETS})
  endif()
  if(COFFER_SANITIZE MATCHES "address" AND NOT CMAKE_CROSSCOMPILING)
    # All unit tests in one process, so that the leak checker runs once; but those that make boundaries in another: without
    # cgroups all that init has of our memory counts as theirs, and after hundreds of tests that is too much. TreeUsage counts the
    # memory of its own process, so each of its tests has one, without the look for leaks.
    add_test(NAME unit:leaks COMMAND unit_tests --gtest_brief=1 --gtest_filter=-LadderTest.*:TreeUsage.*)
    add_test(NAME unit:leaks-of-calls COMMAND unit_tests --gtest_brief=1 --gtest_filter=LadderTest.*)
    set_tests_properties(unit:leaks unit:leaks-of-calls PROPERTIES LABELS unit TIMEOUT 600
      ENVIRONMENT "${COFFER_TEST_ENVIRONMENT};ASAN_OPTIONS=detect_leaks=1")
  endif()
endif()

# The seam of base/sys for tests that bring a fault::Next of their own (tests/faults/log_fault_test.cc).
add_library(coffer_fault_seam OBJECT ${CMAKE_SOURCE_DIR}/src/base/sys.cc)
target_compile_definitions(coffer_fault_seam PRIVATE COFFER_FAULT_INJECTION)
target_link_libraries(coffer_fault_seam PRIVATE coffer_options)

foreach(folder IN ITEMS integration escape posture faults)
  file(GLOB test_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${folder}/*_test.cc)
  file(GLOB helper_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${folder}/*.cc)
  if(NOT test_sources)
    continue()
  endif()
  list(REMOVE_ITEM helper_sources ${test_sources})
  foreach(source IN LISTS test_sources)
    get_filename_component(name ${source} NAME_WE)
    coffer_add_tests(${folder}_${name} ${folder} 300 ${source} ${helper_sources})
    if(name MATCHES "_fault_test$")
      target_sources(${folder}_${name} PRIVATE $<TARGET_OBJECTS:coffer_fault_seam>)
    endif()
  endforeach()
endforeach()

# The same questions to our schema validator and to ajv. The script puts ajv below the build directory.
set(schema_answer_source ${CMAKE_SOURCE_DIR}/tests/conformance/schema_oracle/schema_answer.cc)
if(EXISTS ${schema_answer_source})
  add_executable(schema_answer ${schema_answer_source})
  target_link_libraries(schema_answer PRIVATE coffer_lib)
  set_target_properties(schema_answer PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${COFFER_TESTS_DIR})
  if(NOT CMAKE_CROSSCOMPILING)
    add_test(NAME conformance:schema_oracle
      COMMAND ${CMAKE_SOURCE_DIR}/scripts/schema_oracle.sh ${COFFER_TESTS_DIR})
    set_tests_properties(conformance:schema_oracle PROPERTIES
      COST 40 LABELS "conformance;once" TIMEOUT 900 SKIP_RETURN_CODE 77 ENVIRONMENT "${COFFER_TEST_ENVIRONMENT}")
  endif()
endif()

# Our verifier of audit logs and the one in Python: the same answers to good, forged and mutated logs.
add_executable(log_answer ${CMAKE_SOURCE_DIR}/tests/conformance/log_agreement/log_answer.cc)
target_link_libraries(log_answer PRIVATE coffer_lib)
target_include_directories(log_answer PRIVATE ${CMAKE_SOURCE_DIR})
set_target_properties(log_answer PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${COFFER_TESTS_DIR})
if(NOT CMAKE_CROSSCOMPILING)
  add_test(NAME conformance:log_agreement
    COMMAND python3 ${CMAKE_SOURCE_DIR}/tests/conformance/log_agreement/compare.py
      --program ${COFFER_TESTS_DIR}/log_answer --verifier ${CMAKE_SOURCE_DIR}/sdk/python)
  set_tests_properties(conformance:log_agreement PROPERTIES
    COST 40 LABELS "conformance;once" TIMEOUT 600 ENVIRONMENT "${COFFER_TEST_ENVIRONMENT}")
endif()

# The gateway: its own unit tests, and tests that talk to a real server.
if(TARGET coffer_gateway)
  file(GLOB_RECURSE gateway_test_sources CONFIGURE_DEPENDS
    ${CMAKE_SOURCE_DIR}/tests/unit/net/*.cc ${CMAKE_SOURCE_DIR}/tests/unit/egress/*.cc ${CMAKE_SOURCE_DIR}/tests/unit/gateway/*.cc ${CMAKE_SOURCE_DIR}/tests/unit/daemon/*.cc
    ${CMAKE_SOURCE_DIR}/tests/gateway/*.cc)
  coffer_add_tests(gateway_tests gateway 120 ${gateway_test_sources})
  target_link_libraries(gateway_tests PRIVATE coffer_gateway)
endif()

# The API's description against a linter's rules.
if(TARGET coffer_gateway)
  add_test(NAME conformance:openapi_lint COMMAND ${CMAKE_SOURCE_DIR}/scripts/lint_openapi.sh ${COFFER_TESTS_DIR})
  set_tests_properties(conformance:openapi_lint PROPERTIES
    LABELS "conformance;once" TIMEOUT 900 SKIP_RETURN_CODE 77 ENVIRONMENT "${COFFER_TEST_ENVIRONMENT}")
endif()

# What MCP's conformance suite is run against (make conformance-mcp).
if(TARGET coffer_gateway)
  add_executable(mcp_fixtures EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/tests/conformance/mcp/mcp_fixtures.cc
    ${CMAKE_SOURCE_DIR}/tests/gateway/fake_service.cc)
  target_link_libraries(mcp_fixtures PRIVATE coffer_gateway)
  target_include_directories(mcp_fixtures PRIVATE ${CMAKE_SOURCE_DIR})
  set_target_properties(mcp_fixtures PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${COFFER_TESTS_DIR})
endif()

# Our traces against OpenTelemetry's own schema. The script puts that below the build directory.
if(TARGET coffer AND NOT CMAKE_CROSSCOMPILING)
  add_test(NAME conformance:otlp_oracle
    COMMAND ${CMAKE_SOURCE_DIR}/scripts/otlp_oracle.sh ${COFFER_TESTS_DIR} $<TARGET_FILE:coffer>)
  set_tests_properties(conformance:otlp_oracle PROPERTIES
    LABELS "conformance;once" TIMEOUT 900 SKIP_RETURN_CODE 77 ENVIRONMENT "${COFFER_TEST_ENVIRONMENT}")
endif()

# The examples of README.md and docs/, run as a reader would.
if(TARGET cofferd AND NOT CMAKE_CROSSCOMPILING)
  set(run_examples python3 ${CMAKE_SOURCE_DIR}/tests/docs/run_examples.py $<TARGET_FILE:coffer>)
  add_test(NAME docs:examples COMMAND ${run_examples})
  add_test(NAME docs:self_test COMMAND ${run_examples} --self-test)
  set_tests_properties(docs:examples docs:self_test PROPERTIES
    LABELS docs TIMEOUT 600 ENVIRONMENT "${COFFER_TEST_ENVIRONMENT}")
endif()

# The clients of sdk/, each with daemons that it starts itself.
if(TARGET cofferd AND NOT CMAKE_CROSSCOMPILING)
  foreach(language IN ITEMS python typescript)
    add_test(NAME sdk:${language} COMMAND python3 ${CMAKE_SOURCE_DIR}/tests/sdk/run.py ${language})
    set_tests_properties(sdk:${language} PROPERTIES
      COST 40 LABELS "sdk;once" TIMEOUT 600 SKIP_RETURN_CODE 77 ENVIRONMENT "${COFFER_TEST_ENVIRONMENT}")
  endforeach()
  add_test(NAME conformance:sdk_types COMMAND ${CMAKE_SOURCE_DIR}/scripts/check_sdk_types.sh ${COFFER_TESTS_DIR})
  set_tests_properties(conformance:sdk_types PROPERTIES
    LABELS "conformance;once" TIMEOUT 900 SKIP_RETURN_CODE 77 ENVIRONMENT "${COFFER_TEST_ENVIRONMENT}")
endif()

# Inside containers with Docker's default filter and without it, made by crun.
if(TARGET coffer AND NOT CMAKE_CROSSCOMPILING)
  add_test(NAME containers:docker COMMAND python3 ${CMAKE_SOURCE_DIR}/tests/containers/test_containers.py)
  set_tests_properties(containers:docker PROPERTIES
    LABELS containers TIMEOUT 300 SKIP_RETURN_CODE 77 ENVIRONMENT "${COFFER_TEST_ENVIRONMENT}")
endif()

# The whole daemon, started for every test.
if(TARGET cofferd)
  file(GLOB daemon_test_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/daemon/*.cc)
  coffer_add_tests(daemon_tests daemon 600 ${daemon_test_sources}
    ${CMAKE_SOURCE_DIR}/tests/gateway/harness.cc ${CMAKE_SOURCE_DIR}/tests/gateway/fake_service.cc)
  target_link_libraries(daemon_tests PRIVATE coffer_gateway)
  add_dependencies(daemon_tests coffer cofferd)
endif()
