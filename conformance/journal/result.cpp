// SPDX-License-Identifier: Apache-2.0
#include "journal/result.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "journal/record.h"

namespace backplane::conform {
namespace {

using Json = nlohmann::ordered_json;

State state_of(const std::string& name) {
  const auto found = std::find(kStateNames.begin(), kStateNames.end(), name);
  if (found == kStateNames.end()) throw Json::other_error::create(501, "no state", nullptr);
  return static_cast<State>(found - kStateNames.begin());
}

}  // namespace

Label label_of(std::string_view case_name) {
  std::array<std::string_view, 3> parts;
  for (std::string_view& part : parts) {
    const size_t end = std::min(case_name.find('/'), case_name.size());
    part = case_name.substr(0, end);
    case_name.remove_prefix(std::min(end + 1, case_name.size()));
  }
  const auto& [group, op, dtype] = parts;
  if (group == "ops") return {group, op, dtype};
  return {group, group == "coverage" ? op : "", ""};
}

std::string to_json_line(const Result& result) {
  const Label label = label_of(result.name);
  Json json = {{"case", result.name}, {"group", label.group}};
  if (!label.op.empty()) json["operator"] = label.op;
  if (!label.dtype.empty()) json["dtype"] = label.dtype;
  if (result.opset != 0) json["opset"] = result.opset;
  if (!result.profile.empty()) json["profile"] = result.profile;
  json["state"] = name_of(result.state);
  if (result.was) json["was"] = name_of(*result.was);
  if (!result.exception.empty()) json["exception"] = result.exception;
  json["reason"] = result.reason;
  json["seconds"] = result.seconds;
  json["nodes"] = result.nodes;
  json["statistical"] = result.is_statistical;
  json["seed"] = result.seed;
  if (result.worst > 0) json["worst"] = std::min(result.worst, 1e300);  // JSON has no infinity
  if (result.close) json["close"] = true;
  if (result.errors != Histogram()) json["errors"] = result.errors;
  if (!result.repro.empty()) json["repro"] = result.repro;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool from_json_line(std::string_view line, Result& out_result) {
  try {
    const Json json = parse_record(line);
    Result result;
    result.name = json.at("case");
    result.state = state_of(json.at("state"));
    if (json.contains("was")) result.was = state_of(json["was"]);
    const bool is_changed = result.state == State::kWaived || result.state == State::kExpectedFail ||
                            result.state == State::kUnexpectedPass;
    if (result.was.has_value() != is_changed) return false;  // such a state never is the harness's own verdict
    result.exception = json.value("exception", "");
    result.reason = json.at("reason");
    result.seconds = json.at("seconds");
    result.nodes = json.at("nodes");
    result.is_statistical = json.at("statistical");
    result.worst = json.value("worst", 0.0);
    result.close = json.value("close", false);
    result.opset = json.value("opset", 0u);
    result.errors = json.value("errors", Histogram());
    result.profile = json.value("profile", "");
    result.seed = json.value("seed", uint64_t{0});
    result.repro = json.value("repro", "");
    out_result = std::move(result);
    return true;
  } catch (const Json::exception&) {
    return false;
  }
}

}  // namespace backplane::conform
