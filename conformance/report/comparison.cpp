// SPDX-License-Identifier: Apache-2.0
#include "report/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

namespace backplane::conform {
namespace {

// Ignores errors of up to a tenth of the bound, and growth by up to 50%: results vary that much whenever the order
// of sums changes.
bool is_less_accurate(const Result& before, const Result& after) {
  return after.worst > 0.1 && after.worst > 1.5 * before.worst;
}

std::vector<PropertyChange> compare_properties(const Run& before, const Run& after) {
  const auto list = before.properties();
  const std::map<std::string, std::string> old(list.begin(), list.end());
  std::map<std::string, std::string> gone = old;
  std::vector<PropertyChange> changes;
  for (const auto& [label, value] : after.properties()) {
    const auto found = old.find(label);
    const std::string was = found == old.end() ? "" : found->second;
    if (was != value) changes.push_back({label, was, value});
    gone.erase(label);
  }
  for (const auto& [label, value] : gone) changes.push_back({label, value, ""});
  return changes;
}

struct Side {
  const Run& run;
  const Result& result;

  bool passed() const { return result.state == State::kPass; }
  bool is_bad() const { return run.is_bad(result); }
};

void compare_case(const Side& was, const Side& now, RunComparison& out) {
  Change change{now.result.name, was.result.state, now.result.state, now.result.reason};
  if (was.passed() && now.passed() && is_less_accurate(was.result, now.result)) {
    change.text =
        fmt::format("the largest error was {:.2g} of its bound and is now {:.2g}", was.result.worst, now.result.worst);
    out.less_accurate.push_back(std::move(change));
  } else if (was.result.state == now.result.state) {
    ++out.same;
  } else if (was.passed() || (now.is_bad() && !was.is_bad())) {  // "not supported" after a pass is a regression
    out.worse.push_back(std::move(change));
  } else if (now.passed() || (was.is_bad() && !now.is_bad())) {
    change.text = was.result.reason;
    out.better.push_back(std::move(change));
  } else {
    ++out.same;
  }
}

void add_list(std::string& text, std::string_view title, const std::vector<Change>& changes) {
  const auto state = [](const std::optional<State>& one) { return one ? name_of(*one) : std::string_view("none"); };
  for (const Change& change : changes) {
    text += fmt::format("{:14} {}: {} -> {}{}\n", title, change.name, state(change.before), state(change.after),
                        change.text.empty() ? "" : ": " + change.text);
  }
}

}  // namespace

RunComparison compare_runs(const Run& before, const Run& after) {
  RunComparison comparison{.title = before.title(), .properties = compare_properties(before, after)};
  std::map<std::string_view, const Result*> old;
  for (const Result& result : before.results) old.emplace(result.name, &result);
  for (const Result& now : after.results) {
    const auto found = old.find(now.name);
    if (found == old.end()) {
      comparison.appeared.push_back({now.name, {}, now.state, now.reason});
      continue;
    }
    compare_case({before, *found->second}, {after, now}, comparison);
    old.erase(found);
  }
  for (const auto& [name, result] : old)
    comparison.vanished.push_back({std::string(name), result->state, {}, result->reason});
  return comparison;
}

std::string RunComparison::conclusion() const {
  return fmt::format("{} worse, {} better, {} less accurate, {} only in this run, {} only in the other, {} the same",
                     worse.size(), better.size(), less_accurate.size(), appeared.size(), vanished.size(), same);
}

std::string RunComparison::to_text() const {
  std::string text;
  for (const PropertyChange& property : properties)
    text += fmt::format("{:14} {}: '{}' -> '{}'\n", "differs", property.label, property.before, property.after);
  add_list(text, "better", better);
  add_list(text, "less accurate", less_accurate);
  add_list(text, "new", appeared);
  add_list(text, "gone", vanished);
  add_list(text, "worse", worse);
  return text + conclusion() + '\n';
}

std::string RunComparison::to_json() const {
  const auto list = [](const std::vector<Change>& changes) {
    nlohmann::ordered_json out = nlohmann::ordered_json::array();
    for (const Change& change : changes) {
      nlohmann::ordered_json one = {
          {"case", change.name}, {"before", nullptr}, {"after", nullptr}, {"text", change.text}};
      if (change.before) one["before"] = name_of(*change.before);
      if (change.after) one["after"] = name_of(*change.after);
      out.push_back(std::move(one));
    }
    return out;
  };
  nlohmann::ordered_json json = {{"title", title},
                                 {"verdict", conclusion()},
                                 {"holds", holds()},
                                 {"same", same},
                                 {"worse", list(worse)},
                                 {"better", list(better)},
                                 {"less_accurate", list(less_accurate)},
                                 {"appeared", list(appeared)},
                                 {"vanished", list(vanished)},
                                 {"facts", nlohmann::ordered_json::array()}};
  for (const PropertyChange& property : properties)
    json["facts"].push_back({property.label, property.before, property.after});
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace backplane::conform
