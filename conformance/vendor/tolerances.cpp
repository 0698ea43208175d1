// SPDX-License-Identifier: Apache-2.0
#include "vendor/tolerances.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "journal/case_name.h"
#include "journal/digest.h"
#include "journal/record.h"

namespace backplane::conform {
namespace {

using Json = nlohmann::ordered_json;

// Reads an object with the keys "relative" and "absolute". A missing key keeps its value from `otherwise`. The key
// `skip` is ignored.
Tolerance parse(const Json& json, const std::string& where, const char* skip, Tolerance otherwise) {
  if (!json.is_object()) throw Usage(fmt::format("{} is {}: it must be an object", where, json.dump()));
  for (const auto& [key, value] : json.items()) {
    if (key == skip) continue;
    if (key != "relative" && key != "absolute")
      throw Usage(fmt::format("{} has the key '{}': it may have only 'relative' and 'absolute'", where, key));
    if (!value.is_number() || !(value.get<double>() >= 0))
      throw Usage(fmt::format("{}: '{}' is {}: it must be a number >= 0", where, key, value.dump()));
    if (key == "absolute")
      otherwise.absolute = value.get<double>();
    else
      otherwise.relative = otherwise.relative_of_bfloat16 = value.get<double>();
  }
  return otherwise;
}

}  // namespace

Tolerances Tolerances::read(const std::filesystem::path& data) {
  const std::filesystem::path file = data / "tolerance.json";
  Tolerances tolerances;
  if (std::error_code error; !std::filesystem::exists(file, error)) return tolerances;
  const std::string where = fmt::format("'{}'", file.string());
  Json json;
  try {
    json = parse_settings(read_file(file));
  } catch (const Json::exception& error) {
    throw Usage(fmt::format("{} is not valid JSON: {}", where, error.what()));
  }
  tolerances.all_ = parse(json, where, "cases", {});
  const Json cases = json.value("cases", Json::object());
  if (!cases.is_object()) throw Usage(fmt::format("{}: 'cases' is {}: it must be an object", where, cases.dump()));
  for (const auto& [pattern, entry] : cases.items()) {
    tolerances.entries_.emplace_back(pattern,
                                     parse(entry, fmt::format("{}: '{}'", where, pattern), "", tolerances.all_));
  }
  return tolerances;
}

Tolerance Tolerances::of(const std::string& case_name) const {
  Tolerance tolerance = all_;
  for (const auto& [pattern, entry] : entries_) {
    if (fnmatch(pattern.c_str(), case_name.c_str(), 0) == 0) tolerance = entry;
  }
  return tolerance;
}

std::vector<std::string> Tolerances::unused(const std::vector<std::string>& case_names) const {
  std::vector<std::string> unused;
  for (const auto& entry : entries_) {
    const std::string& pattern = entry.first;
    const bool is_used = std::any_of(case_names.begin(), case_names.end(), [&](const std::string& name) {
      return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
    });
    if (!is_used) unused.push_back(pattern);
  }
  return unused;
}

}  // namespace backplane::conform
