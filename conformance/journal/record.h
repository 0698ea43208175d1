// SPDX-License-Identifier: Apache-2.0
// Parses the JSON of journals, bundles, waivers, keys and tolerances, which is untrusted.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace backplane::conform {

// Limits on accepted JSON. They bound the stack and keep parsing time proportional to the size of the text.
inline constexpr int kMaxRecordDepth = 16;
inline constexpr size_t kMaxRecordKeys = 512;          // in one object
inline constexpr size_t kMaxRecordValues = 2'000'000;  // in all lists and objects together
inline constexpr size_t kMaxSettingsKeys = 20'000;     // in one object

// Throws nlohmann::json::exception if the text is not JSON, exceeds these limits or repeats a key within an object.
// Also throws for a floating-point number under any key except "seconds" and "worst": all other numbers are read as
// integers, and converting an out-of-range double such as 1e300 to an integer is undefined behavior.
nlohmann::ordered_json parse_record(std::string_view text);

// The same for files that people write, which may have more keys and any numbers.
nlohmann::ordered_json parse_settings(std::string_view text);

}  // namespace backplane::conform
