// SPDX-License-Identifier: Apache-2.0
//
// The OpenAPI 3.1 document, src/gateway/openapi.json as it was when this was built. A test holds it against the table
// of routes.
#pragma once

#include <string_view>

namespace coffer::gateway {

std::string_view OpenApiDocument();

}  // namespace coffer::gateway
