// SPDX-License-Identifier: Apache-2.0
#include "cli/verb_doctor.h"

namespace coffer::cli {

int DoctorVerb(std::span<const std::string_view> /*words*/) { return 1; }

}  // namespace coffer::cli
