// SPDX-License-Identifier: Apache-2.0
#include "runner/result.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace backplane::conform {

using Json = nlohmann::ordered_json;

std::string to_json_line(const Result& result) {
  Json json = {{"case", result.name},       {"state", name_of(result.state)}, {"reason", result.reason},
               {"seconds", result.seconds}, {"nodes", result.nodes},          {"statistical", result.is_statistical}};
  if (result.worst > 0) json["worst"] = std::min(result.worst, 1e300);  // JSON has no infinity
  if (result.close) json["close"] = true;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool from_json_line(std::string_view line, Result& out_result) {
  try {
    const Json json = Json::parse(line);
    const auto state = std::find(kStateNames.begin(), kStateNames.end(), json.at("state").get<std::string>());
    if (state == kStateNames.end()) return false;
    out_result.name = json.at("case");
    out_result.state = static_cast<State>(state - kStateNames.begin());
    out_result.reason = json.at("reason");
    out_result.seconds = json.at("seconds");
    out_result.nodes = json.at("nodes");
    out_result.is_statistical = json.at("statistical");
    out_result.worst = json.value("worst", 0.0);
    out_result.close = json.value("close", false);
    return true;
  } catch (const Json::exception&) {
    return false;
  }
}

}  // namespace backplane::conform
