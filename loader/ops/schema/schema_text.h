// SPDX-License-Identifier: Apache-2.0
// The bytes of schemas.txt, built into the library (schema_text.cpp.in).
#pragma once

#include <string_view>

namespace backplane::ops {

std::string_view schema_text();

}  // namespace backplane::ops
