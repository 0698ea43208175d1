// SPDX-License-Identifier: Apache-2.0
// Parses the JSON of journals and certificates, which are untrusted.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace backplane::conform {

// Limits on accepted JSON: they bound the stack, and keep parsing time in proportion to the size of the text.
inline constexpr int kMaxRecordDepth = 16;
inline constexpr size_t kMaxRecordKeys = 512;  // of one object

// Throws nlohmann::json::exception if the text is not JSON, exceeds these limits, repeats a key within an object, or
// has a floating-point number under a key other than "seconds" and "worst": all others are read as integers, and
// converting an out-of-range double such as 1e300 to an integer is undefined behaviour.
nlohmann::ordered_json parse_record(std::string_view text);

}  // namespace backplane::conform
