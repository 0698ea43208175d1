// SPDX-License-Identifier: Apache-2.0
// The JSON of journals and certificates, which come from outside.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace backplane::conform {

// Bounds of what is accepted: the time and the stack that a text takes follow from its size alone.
inline constexpr int kMaxRecordDepth = 16;
inline constexpr size_t kMaxRecordKeys = 512;  // of one object

// Throws nlohmann::json::exception if the text is not JSON, beyond those bounds, has a key twice in one object, or if
// any key other than "seconds" and "worst" holds a floating-point number: every other number is read as an integer, and
// converting an out-of-range double such as 1e300 is undefined behaviour.
nlohmann::ordered_json parse_record(std::string_view text);

}  // namespace backplane::conform
