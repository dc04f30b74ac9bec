# SPDX-License-Identifier: Apache-2.0
#
# coffer_gateway: what cofferd is made of. Boost (headers only), OpenSSL and zlib are linked here and nowhere else: `coffer`
# starts on every call, and must not pay for them.
include_guard()

find_package(OpenSSL 3.0 QUIET)
find_package(ZLIB QUIET)
find_path(COFFER_boost_INCLUDE boost/beast/http/basic_parser.hpp)
if(NOT OpenSSL_FOUND OR NOT ZLIB_FOUND OR NOT COFFER_boost_INCLUDE)
  message(FATAL_ERROR "OpenSSL 3, zlib or the headers of Boost 1.81 are missing. Run: scripts/setup.sh build "
                      "(Debian packages libssl-dev, zlib1g-dev, libboost1.81-dev)")
endif()

file(GLOB_RECURSE COFFER_GATEWAY_SOURCES CONFIGURE_DEPENDS
  ${CMAKE_SOURCE_DIR}/src/net/*.cc ${CMAKE_SOURCE_DIR}/src/egress/*.cc ${CMAKE_SOURCE_DIR}/src/gateway/*.cc ${CMAKE_SOURCE_DIR}/src/daemon/*.cc)
list(FILTER COFFER_GATEWAY_SOURCES EXCLUDE REGEX "/main\\.cc$|/src/gateway/mcp/|/src/net/http_(head|chunks)\\.cc$")  # `coffer mcp` needs these

# openapi.json becomes a string of the program. One raw literal may not be longer than 64 KiB everywhere: pieces.
set(openapi_json ${CMAKE_SOURCE_DIR}/src/gateway/openapi.json)
set(openapi_source ${CMAKE_BINARY_DIR}/generated/openapi_json.cc)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${openapi_json})
file(READ ${openapi_json} openapi_text)
string(LENGTH "${openapi_text}" openapi_length)
set(openapi_literals "")
foreach(offset RANGE 0 ${openapi_length} 8000)
  string(SUBSTRING "${openapi_text}" ${offset} 8000 piece)
  string(APPEND openapi_literals "R\"openapi(${piece})openapi\"\n")
endforeach()
file(CONFIGURE OUTPUT ${openapi_source} @ONLY CONTENT [[
// Made from src/gateway/openapi.json.
#include "gateway/http/openapi.h"
namespace coffer::gateway {
std::string_view OpenApiDocument() {
  return
@openapi_literals@;
}
}  // namespace coffer::gateway
]])

add_library(coffer_gateway STATIC ${COFFER_GATEWAY_SOURCES} ${openapi_source})
target_link_libraries(coffer_gateway PUBLIC coffer_lib OpenSSL::SSL OpenSSL::Crypto ZLIB::ZLIB)
# As in coffer_lib, so that both see one library; Asio without the parts that this library does not use.
target_compile_definitions(coffer_gateway PRIVATE
  JSON_NO_IO "FMT_STATIC_THOUSANDS_SEPARATOR=','" BOOST_ASIO_NO_DEPRECATED BOOST_ASIO_DISABLE_VISIBILITY)
# g++ 12 takes Asio's own allocation of coroutine frames for a mistake.
target_compile_options(coffer_gateway PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-mismatched-new-delete>)

# cofferd: the daemon, and the egress process of `coffer run --allow`. Dynamic, because names are looked up by modules of the C library
# and OpenSSL is the host's to mend. What is C++ of it is linked in: to bind it takes 0.6 ms of each such call.
add_executable(cofferd ${CMAKE_SOURCE_DIR}/src/daemon/main.cc)
target_link_libraries(cofferd PRIVATE coffer_gateway)
set_target_properties(cofferd PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
target_link_options(cofferd PRIVATE -pie)
if(NOT COFFER_SANITIZE)
  target_link_options(cofferd PRIVATE -static-libstdc++ -static-libgcc)
endif()
coffer_copy_in_pieces(cofferd)
