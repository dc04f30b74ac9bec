// SPDX-License-Identifier: Apache-2.0
//
// Certificates as Java reads them. Its programs know no bundle of PEM files, only key stores; the oldest form of these (JKS) is
// read by every version without a password.
#pragma once

#include <string>
#include <string_view>

namespace coffer::call {

// Of every certificate in the bundle that is well formed. What is between them is skipped.
std::string JavaTrustStore(std::string_view bundle);

}  // namespace coffer::call
