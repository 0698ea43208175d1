// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "command.h"
#include "explain.h"

namespace backplane::tools {
namespace {

// Text such as "float[1,N,?]" or "sequence of float[…]".
std::string type_text(const Json& value) {
  std::string dims;
  if (value.at("dims").is_null()) {
    dims = "[…]";
  } else {
    for (const Json& dim : value.at("dims")) dims += (dims.empty() ? "" : ",") + (dim.is_null() ? "?" : cell(dim));
    dims = "[" + dims + "]";
  }
  const std::string kind = value.at("kind") == "tensor" ? "" : cell(value.at("kind")) + " of ";
  return kind + cell(value.at("dtype")) + dims;
}

std::string render(const Json& report) {
  Table head;
  std::string opsets;
  const Json& read_as = report.at("read_as");
  for (const auto& [domain, version] : report.at("opsets").items()) {
    opsets += fmt::format("{}{} {} ", opsets.empty() ? "" : ", ", domain, cell(version));
    opsets += read_as.contains(domain) ? fmt::format("(read as {})", cell(read_as.at(domain))) : "(not ONNX's own)";
  }
  head.row({"model", cell(report.at("origin"))});
  head.row({"producer", cell(report.at("producer"))});
  head.row({"IR version", cell(report.at("ir_version"))});
  head.row({"opsets", opsets});
  head.row({"nodes", cell(report.at("nodes"))});
  head.row({"weights", fmt::format("{}, {}", cell(report.at("weights").at("count")),
                                   bytes_text(report.at("weights").at("bytes")))});
  std::string text = head.text("");
  const auto section = [&](std::string_view title, const Table& table) {
    const std::string rows = table.text();
    if (!rows.empty()) text += fmt::format("{}\n{}", title, rows);
  };
  for (const char* side : {"inputs", "outputs"}) {
    Table table;
    for (const Json& value : report.at(side)) table.row({cell(value.at("name")), type_text(value)});
    section(side, table);
  }
  Table operators, metadata, problems;
  for (const auto& [name, count] : report.at("operators").items()) operators.row({cell(count), name});
  for (const auto& [key, value] : report.at("metadata").items()) metadata.row({key, cell(value)});
  for (const Json& problem : report.at("problems")) problems.row({cell(problem)});
  section("operators", operators);
  section("metadata", metadata);
  section("problems", problems);
  if (report.at("uncovered").is_null()) {
    text += "coverage is unknown: there is no device here\n";
  } else if (!report.at("uncovered").empty()) {
    text += "uncovered: no device here supports these nodes\n" + uncovered_text(report.at("uncovered"));
  }
  return text;
}

// The nodes that no device supports, as in a session's report; null if this machine has no devices.
Json uncovered(const Environment& env, const Model& model) {
  if (env.devices().empty()) return nullptr;
  SessionOptions options;
  options.flags = BP_SESSION_PLACE_ONLY;
  return uncovered_nodes(parse_json(env.compile(model, options).report()));
}

Action declare(cli::Command command) {
  const auto flags = std::make_shared<EnvironmentFlags>();
  const auto model = std::make_shared<std::string>();
  flags->declare(command);
  command.add_option("model", *model, "An ONNX file").shown_as("FILE").required();
  return [flags, model] {
    const Environment env = flags->make();
    const Model opened = env.open(*model);
    Outcome outcome;
    outcome.json = parse_json(opened.report());
    outcome.json["uncovered"] = uncovered(env, opened);
    outcome.is_positive = outcome.json["uncovered"].empty();
    outcome.text = render(outcome.json);
    return outcome;
  };
}

}  // namespace

extern const Verb info_verb = {"info", "prints a model's operator sets, inputs, outputs, operators and problems",
                               declare};

}  // namespace backplane::tools
