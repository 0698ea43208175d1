// SPDX-License-Identifier: Apache-2.0
#include "journal/record.h"

#include <nlohmann/json.hpp>
#include <string>
#include <unordered_set>
#include <vector>

namespace backplane::conform {

nlohmann::ordered_json parse_record(std::string_view text) {
  using Json = nlohmann::ordered_json;
  const auto refuse = [](const std::string& why) { throw Json::other_error::create(501, why, nullptr); };
  std::string key;
  std::vector<std::unordered_set<std::string>> keys;  // for each enclosing object, the keys seen so far
  return Json::parse(text, [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > kMaxRecordDepth) refuse("it is nested too deeply");
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key) {
      key = parsed.get<std::string>();
      if (!keys.back().insert(key).second) refuse("it has a duplicate key");
      if (keys.back().size() > kMaxRecordKeys) refuse("it has too many keys");
    }
    if (event == Json::parse_event_t::value && parsed.is_number_float() && key != "seconds" && key != "worst")
      refuse("'" + key + "' is not an integer");
    return true;
  });
}

}  // namespace backplane::conform
