// SPDX-License-Identifier: Apache-2.0
#include "explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cli/overwrite.h"
#include "cli/whole_file.h"
#include "explain_page.h"
#include "inputs.h"

namespace backplane::tools {
namespace {

std::string expected_text(const Json& seconds) {
  return seconds.get<double>() > 0 ? seconds_text(seconds) : "";
}

// A cost and its source, such as "1.50 ms, measured"; "" without a cost. The source "backend" is not printed.
std::string sourced_text(const Json& seconds, const Json& source) {
  std::string text = expected_text(seconds);
  if (!text.empty() && source != "backend") text += ", " + cell(source);
  return text;
}

// Returns the source of the node's cost on its device.
Json source_of(const Json& node) {
  for (const Json& verdict : node.at("verdicts"))
    if (verdict.at("device") == node.at("device") && verdict.contains("source")) return verdict.at("source");
  return "backend";
}

// Text such as "cpu: dtype: input 0 is string". Without the reason if the detail contains it.
std::string refusal_text(const Json& verdict) {
  const std::string reason = cell(verdict.at("reason")), detail = cell(verdict.at("detail"));
  if (detail.empty()) return fmt::format("{}: {}", cell(verdict.at("device")), reason);
  if (detail.find(reason) != std::string::npos) return fmt::format("{}: {}", cell(verdict.at("device")), detail);
  return fmt::format("{}: {}: {}", cell(verdict.at("device")), reason, detail);
}

// The refusals of the node's other devices.
std::string others_text(const Json& node) {
  std::string text;
  for (const Json& verdict : node.at("verdicts")) {
    if (verdict.at("device") == node.at("device") || verdict.at("answer") != "no") continue;
    text += (text.empty() ? "" : "; ") + refusal_text(verdict);
  }
  return text;
}

std::string place_text(const Json& node) {
  if (node.at("device").is_null()) return "uncovered";
  const std::string where = "island " + cell(node.at("island"));
  return node.contains("call") ? where + ", within " + cell(node.at("call")) : where;
}

// The extents that costs assume for dimensions that the model leaves open.
std::string assumed_text(const Json& extents) {
  std::string list;
  for (const auto& [name, extent] : extents.items())
    list += fmt::format("{}{} = {}", list.empty() ? "" : ", ", name, cell(extent));
  return fmt::format("Assumed: {}; choose with --dim NAME=EXTENT\n", list);
}

std::string render(const Json& report) {
  Table islands, nodes, copies, savings;
  for (const Json& island : report.at("islands")) {
    islands.row({cell(island.at("index")), cell(island.at("device")), count_text(island.at("nodes"), "node", "nodes"),
                 count_text(island.at("inputs"), "input", "inputs") + ", " +
                     count_text(island.at("outputs"), "output", "outputs"),
                 expected_text(island.at("seconds"))});
  }
  for (const Json& node : report.at("nodes")) {
    nodes.row({cell(node.at("index")), cell(node.at("op_type")), cell(node.at("name")),
               node.at("device").is_null() ? "none" : cell(node.at("device")), place_text(node),
               sourced_text(node.at("seconds"), source_of(node)), others_text(node)});
  }
  for (const Json& copy : report.at("copies")) {
    copies.row({cell(copy.at("value")), fmt::format("{} to {}", cell(copy.at("from")), cell(copy.at("to"))),
                bytes_text(copy.at("bytes").get<uint64_t>()), sourced_text(copy.at("seconds"), copy.at("source"))});
  }
  for (const Json& saving : report.at("savings")) {
    savings.row({"island " + cell(saving.at("island")), count_text(saving.at("nodes").size(), "node", "nodes"),
                 fmt::format("on {}, not {}", cell(saving.at("device")), cell(saving.at("instead_of"))),
                 seconds_text(saving.at("seconds"))});
  }
  std::string text =
      fmt::format("{}, {}, {} on {}", count_text(report.at("islands").size(), "island", "islands"),
                  count_text(report.at("nodes").size(), "node", "nodes"),
                  count_text(report.at("copies").size(), "copy", "copies"), join(report.at("devices"), ", "));
  if (report.at("seconds").get<double>() > 0) {
    const Json& cost = report.at("cost");
    text += fmt::format(", {} expected: {} of compute, {} of copies, {} of launches",
                        seconds_text(report.at("seconds")), seconds_text(cost.at("compute")),
                        seconds_text(cost.at("copies")), seconds_text(cost.at("launches")));
  }
  text += '\n';
  if (!report.at("assumed").empty()) text += assumed_text(report.at("assumed"));
  if (report.at("devices").size() > 1 && !report.at("arithmetic").empty()) {
    std::string shares;
    for (const auto& [device, share] : report.at("arithmetic").items())
      shares += fmt::format("{}{:.1f}% on {}", shares.empty() ? "" : ", ", 100 * share.get<double>(), device);
    text += fmt::format("Arithmetic: {}\n", shares);
  }
  if (const std::string uncovered = uncovered_text(uncovered_nodes(report)); !uncovered.empty()) {
    text += fmt::format("Uncovered: no device supports these nodes, so the model cannot run\n{}", uncovered);
  }
  if (!report.at("islands").empty()) text += fmt::format("Islands\n{}", islands.text());
  text += fmt::format("Nodes\n{}", nodes.text());
  if (!report.at("copies").empty()) text += fmt::format("Copies\n{}", copies.text());
  if (!report.at("savings").empty()) {
    text += fmt::format("Saved by not moving nodes to the device that computes them fastest\n{}", savings.text());
  }
  return text;
}

}  // namespace

Json uncovered_nodes(const Json& report) {
  Json nodes = Json::array();
  for (const Json& index : report.at("uncovered")) nodes.push_back(report.at("nodes").at(index.get<size_t>()));
  return nodes;
}

std::string uncovered_text(const Json& uncovered) {
  struct Group {
    std::string op, reasons;
    std::vector<std::string> nodes;
  };
  // By operator and reasons, in order of first appearance. Nodes of one operator may be refused for different reasons.
  std::vector<Group> groups;
  std::map<std::pair<std::string, std::string>, size_t> places;
  for (const Json& node : uncovered) {
    const std::string op = fmt::format("{}::{} since {}", cell(node.at("domain")), cell(node.at("op_type")),
                                       cell(node.at("since_version")));
    const std::string reasons = others_text(node);
    const auto [place, is_new] = places.try_emplace({op, reasons}, groups.size());
    if (is_new) groups.push_back({op, reasons, {}});
    const std::string name = cell(node.at("name"));
    groups[place->second].nodes.push_back(name.empty() ? "node " + cell(node.at("index")) : fmt::format("'{}'", name));
  }
  constexpr size_t kShown = 5;
  Table table;
  for (const Group& group : groups) {
    std::string nodes;
    for (size_t i = 0; i < std::min(group.nodes.size(), kShown); ++i) nodes += (i == 0 ? "" : ", ") + group.nodes[i];
    if (group.nodes.size() > kShown) nodes += fmt::format(" and {} more", group.nodes.size() - kShown);
    table.row({group.op, nodes, group.reasons});
  }
  return table.text();
}

namespace {

Action declare(cli::Command command) {
  const auto flags = std::make_shared<SessionFlags>();
  const auto page = std::make_shared<std::string>();
  const auto dims = std::make_shared<std::vector<std::string>>();
  flags->declare(command);
  declare_dims(command, *dims);
  command.add_option("--html", *page, "Also writes the placement as a picture, in one self-contained HTML file")
      .shown_as("FILE");
  return [flags, page, dims] {
    cli::keep_inputs("--html", *page, flags->files());
    flags->environment.compiles_verbosely = true;
    const Environment env = flags->environment.make();
    SessionOptions options = flags->options(env);
    options.flags = BP_SESSION_PLACE_ONLY;
    const Model model = env.open(flags->model);
    for (const auto& [name, extent] : read_extents(model.graph(), *dims)) options.symbols[name] = {extent, extent};
    Outcome outcome;
    outcome.json = parse_json(env.compile(model, options).report());
    outcome.is_positive = outcome.json.at("uncovered").empty();
    if (flags->environment.verbose && outcome.is_positive) {
      options.flags = 0;
      (void)env.compile(model, options);  // devices choose implementations, and log them, only when they compile
    }
    outcome.text = render(outcome.json);
    if (!page->empty()) {
      cli::keep_inputs("--html", *page, cli::mapped_files());
      cli::write_file(*page, explain_page(flags->model, outcome.json, model.graph()));
      outcome.text += fmt::format("{} written: open it in a browser\n", *page);
    }
    return outcome;
  };
}

}  // namespace

extern const Verb explain_verb = {"explain", "reports where each node of a model would run, and why", declare};

}  // namespace backplane::tools
