// SPDX-License-Identifier: Apache-2.0
#include "journal/header.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <nlohmann/json.hpp>

#include "journal/record.h"

namespace backplane::conform {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const Header& header) {
  const Identity& who = header.identity;
  Json json = {{"journal", 1},
               {"harness", header.harness},
               {"plugin", header.plugin},
               {"plugin_sha256", header.plugin_sha256},
               {"backend", {{"id", who.backend}, {"version", who.version}, {"vendor", who.vendor}}},
               {"device",
                {{"index", who.device_index},
                 {"name", who.device},
                 {"driver", who.driver},
                 {"arch", who.arch},
                 {"flags", who.flags}}},
               {"selection", header.selection},
               {"profiles", header.profiles},
               {"filter", header.filter},
               {"shard", {header.shard.index, header.shard.count}},
               {"seed", header.seeds.seed}};
  if (header.seeds.nonce) json["nonce_seed"] = *header.seeds.nonce;
  json["cases"] = header.cases;
  json["list"] = header.list;
  if (!header.models.empty()) json["models"] = header.models;
  json["waivers"] = header.waivers;
  json["started"] = header.started;
  return json;
}

// True if the text is as long as `form`, has a digit where `form` has a 0, and has otherwise the same characters.
bool has_form(std::string_view text, std::string_view form) {
  return std::ranges::equal(text, form, [](char c, char f) { return f == '0' ? c >= '0' && c <= '9' : c == f; });
}

// The number whose `count` digits start at `begin`.
unsigned number_in(std::string_view text, size_t begin, size_t count) {
  unsigned number = 0;
  for (const char digit : text.substr(begin, count)) number = number * 10 + static_cast<unsigned>(digit - '0');
  return number;
}

}  // namespace

uint64_t Seeds::of_cases() const {
  return nonce.value_or(seed);
}

std::string utc_now() {
  return utc_in(0);
}

std::string utc_in(int64_t seconds) {
  return fmt::format("{:%FT%TZ}", fmt::gmtime(std::time(nullptr) + seconds));
}

bool is_time(std::string_view text) {
  return has_form(text, "0000-00-00T00:00:00Z") && is_day(text.substr(0, 10)) && number_in(text, 11, 2) < 24 &&
         number_in(text, 14, 2) < 60 && number_in(text, 17, 2) <= 60;  // 60 is a leap second
}

bool is_day(std::string_view text) {
  if (!has_form(text, "0000-00-00")) return false;
  const std::chrono::year_month_day day(std::chrono::year(static_cast<int>(number_in(text, 0, 4))),
                                        std::chrono::month(number_in(text, 5, 2)),
                                        std::chrono::day(number_in(text, 8, 2)));
  return day.ok();
}

std::string to_json_line(const Header& header) {
  return Json{{"run", to_json(header)}}.dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool from_json_line(std::string_view line, Header& out_header) {
  try {
    const Json all = parse_record(line);
    const Json& json = all.at("run");
    if (json.at("journal") != 1) return false;
    Header header;
    header.harness = json.at("harness");
    header.plugin = json.at("plugin");
    header.plugin_sha256 = json.at("plugin_sha256");
    header.identity.backend = json.at("backend").at("id");
    header.identity.version = json.at("backend").at("version");
    header.identity.vendor = json.at("backend").at("vendor");
    header.identity.device_index = json.at("device").at("index");
    header.identity.device = json.at("device").at("name");
    header.identity.driver = json.at("device").at("driver");
    header.identity.arch = json.at("device").at("arch");
    header.identity.flags = json.at("device").at("flags");
    header.selection = json.at("selection");
    header.profiles = json.at("profiles");
    header.filter = json.at("filter");
    header.shard = {json.at("shard").at(0), json.at("shard").at(1)};
    if (header.shard.index < 1 || header.shard.index > header.shard.count) return false;
    header.seeds.seed = json.at("seed");
    if (json.contains("nonce_seed")) header.seeds.nonce = json["nonce_seed"].get<uint64_t>();
    header.cases = json.at("cases");
    header.list = json.at("list");
    if (json.contains("models")) header.models = json["models"];
    header.waivers = json.at("waivers");
    header.started = json.at("started");
    out_header = std::move(header);
    return true;
  } catch (const Json::exception&) {
    return false;
  }
}

std::string difference(const Header& a, const Header& b, bool shards_of_one_run) {
  Json first = to_json(a), second = to_json(b);
  for (const char* key : {"started", "plugin"}) {
    first.erase(key);
    second.erase(key);
  }
  if (shards_of_one_run) {
    if (first["shard"][1] == second["shard"][1]) second["shard"] = first["shard"];
  }
  for (const char* key : {"nonce_seed", "models"}) {
    if (second.contains(key) && !first.contains(key)) first[key] = nullptr;
  }
  for (const auto& [key, value] : first.items()) {
    if (!second.contains(key)) return fmt::format("{} is {} here and missing there", key, value.dump());
    if (second[key] != value) return fmt::format("{} is {} here and {} there", key, value.dump(), second[key].dump());
  }
  return "";
}

}  // namespace backplane::conform
