// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "cli/progress.h"
#include "command.h"
#include "inputs.h"

namespace backplane::tools {
namespace {

constexpr size_t kShown = 20;

// Counts the nodes that a device supports and how many of them are measured, and sums the measured times.
Json count_sources(const Json& report, const Json& device) {
  size_t taken = 0, measured = 0;
  double seconds = 0;
  for (const Json& node : report.at("nodes")) {
    for (const Json& verdict : node.at("verdicts")) {
      if (verdict.at("device") != device || !verdict.contains("source")) continue;
      ++taken;
      if (verdict.at("source") != "measured") continue;
      ++measured;
      seconds += verdict.at("seconds").get<double>();
    }
  }
  return {{"device", device}, {"nodes", taken}, {"measured", measured}, {"seconds", seconds}};
}

double slowest_verdict(const Json& node) {
  double seconds = 0;
  for (const Json& verdict : node.at("verdicts")) seconds = std::max(seconds, verdict.value("seconds", 0.0));
  return seconds;
}

std::string render(const Json& result) {
  Table devices, nodes;
  for (const Json& device : result.at("devices")) {
    devices.row({cell(device.at("device")),
                 fmt::format("{} of {} nodes measured", cell(device.at("measured")), cell(device.at("nodes"))),
                 seconds_text(device.at("seconds"))});
  }
  const Json& list = result.at("nodes");
  for (size_t i = 0; i < std::min(list.size(), kShown); ++i) {
    std::string times;
    for (const Json& verdict : list[i].at("verdicts")) {
      if (!verdict.contains("seconds")) continue;
      times += fmt::format("{}{} {}{}", times.empty() ? "" : ", ", cell(verdict.at("device")),
                           seconds_text(verdict.at("seconds")),
                           verdict.at("source") == "measured" ? "" : fmt::format(" ({})", cell(verdict.at("source"))));
    }
    nodes.row({cell(list[i].at("index")), cell(list[i].at("op_type")), cell(list[i].at("name")), times});
  }
  return devices.text("") + "Slowest\n" + nodes.text();
}

Action declare(cli::Command command) {
  const auto flags = std::make_shared<SessionFlags>();
  const auto dims = std::make_shared<std::vector<std::string>>();
  flags->declare(command);
  declare_dims(command, *dims);
  return [flags, dims] {
    const Environment env = flags->environment.make();
    SessionOptions options = flags->options(env);
    options.flags = BP_SESSION_PLACE_ONLY;
    options.options["loader.costs"] = "measure";
    const Model model = env.open(flags->model);
    for (const auto& [name, extent] : read_extents(model.graph(), *dims)) options.symbols[name] = {extent, extent};
    const Json report = [&] {
      const cli::Progress progress("measuring nodes");
      return parse_json(env.compile(model, options).report());
    }();
    Outcome outcome;
    outcome.json["devices"] = Json::array();
    size_t measured = 0;
    for (const Json& device : report.at("devices")) {
      outcome.json["devices"].push_back(count_sources(report, device));
      measured += outcome.json["devices"].back().at("measured").get<size_t>();
    }
    std::vector<Json> nodes(report.at("nodes").begin(), report.at("nodes").end());
    std::ranges::stable_sort(nodes, std::greater(), slowest_verdict);
    outcome.json["nodes"] = nodes;
    outcome.is_positive = measured > 0;
    outcome.text = render(outcome.json);
    return outcome;
  };
}

}  // namespace

extern const Verb profile_verb = {"profile", "measures a model's nodes on each device, for later placements", declare};

}  // namespace backplane::tools
