// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>

#include "journal/level.h"
#include "report/page_template.h"
#include "report/summary.h"
#include "report/tally.h"
#include "report/write.h"

namespace backplane::conform {
namespace {

using Json = nlohmann::ordered_json;

// The labels of Histogram's buckets, which count elements by error / bound, and the first bucket whose errors exceed
// the bound.
constexpr const char* kBuckets[] = {"exact", "≤ 1/128", "1/64", "1/32", "1/16", "1/8", "1/4", "1/2", "1", "2", "more"};
constexpr size_t kBeyond = 9;
static_assert(std::size(kBuckets) == Histogram().size());

constexpr std::pair<std::string_view, std::string_view> kMeanings[] = {
    {"L0", "loadable"}, {"L1", "functional"}, {"L2", "accurate"}, {"L3", "robust"}};

std::string_view meaning_of(std::string_view level) {
  const auto found =
      std::find_if(std::begin(kMeanings), std::end(kMeanings), [&](auto& one) { return one.first == level; });
  return found == std::end(kMeanings) ? "" : found->second;
}

Json states_of(const Tally& tally) {
  Json json = Json::object();
  for (size_t i = 0; i < kStateNames.size(); ++i) {
    if (tally.states[i] != 0) json[std::string(kStateNames[i])] = tally.states[i];
  }
  return json;
}

// Empty for test data of ONNX and of vendors, which has no levels.
Json levels_of(const Run& run, const std::vector<Level>& levels) {
  Json json = Json::array();
  if (!has_levels(run.header)) return json;
  for (const Level& level : levels) {
    json.push_back({{"level", level.name},
                    {"means", meaning_of(level.name)},
                    {"reached", level.reached},
                    {"reason", level.reason}});
  }
  return json;
}

Json groups_of(const Run& run) {
  Json json = Json::array();
  for (const auto& [group, tally] : tally_groups(run)) {
    json.push_back(
        {{"group", group}, {"states", states_of(tally)}, {"failures", tally.bad}, {"seconds", tally.seconds}});
  }
  return json;
}

Json coverage_of(const Run& run) {
  Json json = Json::array();
  for (const CoverageRow& row : tally_coverage(run)) {
    json.push_back({{"op", row.op},
                    {"type", row.dtype},
                    {"opset", row.opset},
                    {"states", states_of(row.tally)},
                    {"worst", std::min(row.tally.worst, 1e300)},  // JSON has no infinity
                    {"histogram", row.tally.errors}});
  }
  return json;
}

Json failures_of(const Run& run) {
  Json json = Json::array();
  for (const Result& result : run.results) {
    if (!run.is_bad(result)) continue;
    json.push_back(
        {{"case", result.name}, {"state", name_of(result.state)}, {"reason", result.reason}, {"repro", result.repro}});
  }
  return json;
}

}  // namespace

std::string html_page(const Run& run, const RunComparison* comparison) {
  const Tally all = tally_all(run);
  const RunOutcome outcome = conform::outcome(run.header, run.results);
  const Json data = {{"title", run.title()},
                     {"fault", outcome.fault},
                     {"facts", run.properties()},
                     {"states", kStateNames},
                     {"totals", states_of(all)},
                     {"no_node", all.no_node},
                     {"seconds", all.seconds},
                     {"levels", levels_of(run, outcome.levels)},
                     {"scope", scope_of(run.header, outcome)},
                     {"groups", groups_of(run)},
                     {"failures", failures_of(run)},
                     {"coverage", coverage_of(run)},
                     {"bins", kBuckets},
                     {"errors", all.errors},
                     {"over", kBeyond},
                     {"comparison", comparison == nullptr ? Json() : Json::parse(comparison->to_json())}};
  // Every "<" in the data is escaped, so that no name or reason can end the script element or start another.
  std::string text;
  for (const char c : data.dump(-1, ' ', false, Json::error_handler_t::replace)) {
    if (c == '<')
      text += "\\u003c";
    else
      text += c;
  }
  constexpr std::string_view kPlace = "\"BACKPLANE_RUN\"";
  std::string page(kPageTemplate);
  return page.replace(page.find(kPlace), kPlace.size(), text);
}

}  // namespace backplane::conform
