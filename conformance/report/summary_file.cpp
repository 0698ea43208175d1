// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "report/summary.h"
#include "report/tally.h"
#include "report/write.h"

namespace backplane::conform {
namespace {

using Json = nlohmann::ordered_json;

// One key for each state, as in the summary of a run.
Json counts_of(const Tally& tally) {
  Json json = {{"passed", tally[State::kPass]}, {"failed", tally[State::kFail]}, {"crashed", tally[State::kCrash]}};
  for (size_t i = 0; i < kStateNames.size(); ++i) {
    const State state = static_cast<State>(i);
    if (state != State::kPass && state != State::kFail && state != State::kCrash) json[kStateNames[i]] = tally[state];
  }
  json["total"] = tally.total();
  json["seconds"] = tally.seconds;
  return json;
}

}  // namespace

std::string summary_json(const Run& run) {
  const RunOutcome outcome = conform::outcome(run.header, run.results);
  Json json = counts_of(tally_all(run));
  json["levels"] = outcome.reached();
  json["conditions"] = outcome.conditions;
  json["fault"] = outcome.fault;
  json["title"] = run.title();
  json["facts"] = Json::object();
  for (const auto& [label, value] : run.properties()) json["facts"][label] = value;
  json["groups"] = Json::object();
  for (const auto& [group, tally] : tally_groups(run)) json["groups"][group] = counts_of(tally);
  return json.dump(2, ' ', true, Json::error_handler_t::replace) + '\n';
}

}  // namespace backplane::conform
