// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "command.h"

namespace backplane::tools {
namespace {

std::string expected_text(const Json& seconds) {
  return seconds.get<double>() > 0 ? seconds_text(seconds) : "";
}

// What the devices that did not get the node said of it.
std::string others_text(const Json& node) {
  std::string text;
  for (const Json& verdict : node.at("verdicts")) {
    if (verdict.at("device") == node.at("device") || verdict.at("answer") == "yes") continue;
    text += fmt::format("{}{} ({}): {}", text.empty() ? "" : "; ", cell(verdict.at("device")),
                        cell(verdict.at("reason")), cell(verdict.at("detail")));
  }
  return text;
}

std::string render(const Json& report) {
  Table islands, nodes, copies;
  for (const Json& island : report.at("islands")) {
    islands.row({cell(island.at("index")), cell(island.at("device")), fmt::format("{} nodes", cell(island.at("nodes"))),
                 fmt::format("{} inputs, {} outputs", cell(island.at("inputs")), cell(island.at("outputs"))),
                 expected_text(island.at("seconds"))});
  }
  for (const Json& node : report.at("nodes")) {
    const bool runs = node.at("island").is_number() && node.at("island") != BP_NONE;
    nodes.row({cell(node.at("index")), cell(node.at("op_type")), cell(node.at("name")), cell(node.at("device")),
               runs ? "island " + cell(node.at("island")) : "before the runs", expected_text(node.at("seconds")),
               others_text(node)});
  }
  for (const Json& copy : report.at("copies")) {
    copies.row({cell(copy.at("value")), fmt::format("{} to {}", cell(copy.at("from")), cell(copy.at("to"))),
                bytes_text(copy.at("bytes"))});
  }
  std::string text =
      fmt::format("{} islands, {} nodes, {} copies on {}", report.at("islands").size(), report.at("nodes").size(),
                  report.at("copies").size(), join(report.at("devices"), ", "));
  if (report.at("seconds").get<double>() > 0) text += fmt::format(", {} expected", seconds_text(report.at("seconds")));
  text += fmt::format("\nIslands\n{}Nodes\n{}", islands.text(), nodes.text());
  if (!report.at("copies").empty()) text += fmt::format("Copies\n{}", copies.text());
  return text;
}

}  // namespace

Action declare_explain(CLI::App& command) {
  const auto flags = std::make_shared<SessionFlags>();
  flags->declare(command);
  return [flags] {
    const Environment env = flags->environment.make();
    SessionOptions options = flags->options(env);
    options.flags = BP_SESSION_PLACE_ONLY;
    Outcome outcome;
    outcome.json = Json::parse(env.compile(env.open(flags->model), options).report());
    outcome.text = render(outcome.json);
    return outcome;
  };
}

}  // namespace backplane::tools
