// SPDX-License-Identifier: Apache-2.0
// The JSON of journals and certificates, which come from outside.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace backplane::conform {

// Throws nlohmann::json::exception for text that is no JSON, and for a number with a point or an exponent outside of
// the keys that hold one ("seconds", "worst"): what reads an integer there would convert it, and of 1e300 nobody knows
// to what.
nlohmann::ordered_json parse_record(std::string_view text);

}  // namespace backplane::conform
