// SPDX-License-Identifier: Apache-2.0
#include "journal/record.h"

#include <nlohmann/json.hpp>
#include <string>

namespace backplane::conform {

nlohmann::ordered_json parse_record(std::string_view text) {
  using Json = nlohmann::ordered_json;
  std::string key;
  return Json::parse(text, [&](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::key) key = parsed.get<std::string>();
    if (event == Json::parse_event_t::value && parsed.is_number_float() && key != "seconds" && key != "worst")
      throw Json::other_error::create(501, "'" + key + "' is no integer", nullptr);
    return true;
  });
}

}  // namespace backplane::conform
