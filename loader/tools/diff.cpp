// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <set>

#include "cli/progress.h"
#include "cli/whole_file.h"
#include "command.h"
#include "compare.h"
#include "inputs.h"
#include "onnx/wire.h"

namespace backplane::tools {
namespace {

constexpr size_t kShown = 10;

struct Flags {
  SessionFlags session;
  InputFlags inputs;
  // Larger than the tolerance for single results, because differences accumulate from node to node.
  Tolerance tolerance{.relative = 1e-3, .absolute = 1e-4};
};

onnx::ModelProto read_model(const std::string& path) {
  constexpr uint64_t kMaxModel = uint64_t{2} << 30;  // the most that a message of ONNX can have
  onnx::ModelProto model;
  if (!model.ParseFromString(cli::read_file(path, kMaxModel)))
    throw Failure(fmt::format("'{}' cannot be read a second time: was it changed or removed meanwhile?", path));
  return model;
}

void describe_type(view::Value value, onnx::TypeProto& type) {
  auto* tensor = type.mutable_tensor_type();
  tensor->set_elem_type(static_cast<int32_t>(value.dtype()));
  for (uint32_t i = 0; i < static_cast<uint32_t>(std::max(value.rank(), 0)); ++i) {
    auto* dim = tensor->mutable_shape()->add_dim();
    if (value.extent(i) >= 0) {
      dim->set_dim_value(value.extent(i));
    } else if (!value.symbol(i).empty()) {
      dim->set_dim_param(std::string(value.symbol(i)));
    }
  }
  if (value.rank() == 0) tensor->mutable_shape();
}

// A node of the file, and the result to compare.
struct Step {
  int node;
  std::string value;
};

// Adds the intermediate values to the model's outputs, if they still exist in the canonical graph, which has their
// types. Returns these values and the original outputs, in the order of nodes in the file.
std::vector<Step> expose_values(onnx::ModelProto& model, view::Graph graph) {
  std::map<std::string_view, view::Value> values;
  for (const view::Node& node : graph.nodes()) {
    for (uint32_t i = 0; i < node.output_count(); ++i) values.emplace(node.output(i).name(), node.output(i));
  }
  std::set<std::string> outputs;
  for (const auto& output : model.graph().output()) outputs.insert(output.name());
  std::vector<Step> steps;
  for (int i = 0; i < model.graph().node_size(); ++i) {
    for (const std::string& name : model.graph().node(i).output()) {
      if (name.empty()) continue;
      const auto value = values.find(name);
      if (value == values.end() || !value->second.is_tensor()) continue;
      steps.push_back({i, name});
      if (outputs.contains(name)) continue;
      auto* info = model.mutable_graph()->add_output();
      info->set_name(name);
      describe_type(value->second, *info->mutable_type());
    }
  }
  return steps;
}

struct Results {
  std::map<std::string, onnx::Tensor> values;  // of the steps, by name
  uint32_t nodes = 0, nodes_on_first = 0;      // of the session, and those that the first device ran
  Json faults;                                 // why devices, or islands on them, were excluded after a failure
};

// Runs the model in a session over `devices`, the first of which runs everything that it supports and that no pin
// places elsewhere.
Results run_on(const Environment& env, const Model& model, SessionOptions options, std::vector<std::string> devices,
               const std::vector<Input>& inputs, const std::vector<Step>& steps) {
  const std::string first = devices.front();
  options.devices = std::move(devices);
  if (options.fallback == BP_FALLBACK_ALLOW) options.fallback = BP_FALLBACK_PREFER;
  const Session session = env.compile(model, options);
  BoundExec bound = bind_inputs(session, inputs);
  bound.exec.run();
  Results results;
  const Json report = parse_json(session.report());
  results.faults = report.at("faults");
  for (const Json& node : report.at("nodes")) {
    ++results.nodes;
    if (node.at("device") == first) ++results.nodes_on_first;
  }
  for (const Step& step : steps) {
    const uint32_t index = model.graph().find_output(step.value);
    if (index == BP_NONE) continue;
    onnx::Value value = onnx::read_output(env, bound.exec, model.graph(), index);
    if (value.kind == BP_KIND_TENSOR) results.values.emplace(step.value, std::move(value.tensor));
  }
  return results;
}

std::string render(const Json& report) {
  const Json& devices = report.at("devices");
  const std::string ran = fmt::format("{} of {} nodes ran on {}", cell(report.at("nodes_judged")),
                                      cell(report.at("nodes")), cell(devices[1]));
  if (!report.at("faults").empty())
    return fmt::format("{} failed, and {} ran the model: {}\n", cell(devices[1]), cell(devices[0]),
                       cell(report.at("faults")[0]));
  if (report.at("nodes_judged") == 0) return fmt::format("nothing to compare: {}\n", ran);
  if (report.at("values") == 0) return fmt::format("nothing to compare: no node has a tensor as its result; {}\n", ran);
  if (report.at("differences").empty()) {
    return fmt::format("{} and {} agree on all {} values; {}\n", cell(devices[0]), cell(devices[1]),
                       cell(report.at("values")), ran);
  }
  Table table;
  const Json& differences = report.at("differences");
  for (size_t i = 0; i < std::min(differences.size(), kShown); ++i) {
    table.row({fmt::format("node {}", cell(differences[i].at("node"))), cell(differences[i].at("op_type")),
               cell(differences[i].at("name")), cell(differences[i].at("value")), cell(differences[i].at("text"))});
  }
  return fmt::format("{} differs from {} in {} of {} values; the first are\n{}", cell(devices[1]), cell(devices[0]),
                     differences.size(), cell(report.at("values")), table.text());
}

Outcome diff(const Flags& flags) {
  const Environment env = flags.session.environment.make();
  const SessionOptions options = flags.session.options(env);
  if (options.devices.size() != 2)
    throw Usage("--device needs two names: the device to compare with, and the one to judge, as --device cpu,opencl");
  const std::string &reference = options.devices[0], &judged = options.devices[1];
  // The reference runs every node, in the node's own type.
  SessionOptions alone = options;
  alone.pins.clear();
  alone.compute_types = 0;
  const Model whole = env.open(flags.session.model);
  onnx::ModelProto file = read_model(flags.session.model);
  const std::vector<Step> steps = expose_values(file, whole.graph());
  const std::string folder = std::filesystem::path(flags.session.model).parent_path().string();
  const Model model = env.parse(file.SerializeAsString(), folder.empty() ? "." : folder);
  const std::vector<Input> inputs = make_inputs(model.graph(), flags.inputs);
  const cli::Progress progress("comparing");
  const auto expected = run_on(env, model, alone, {reference}, inputs, steps);
  const auto seen = run_on(env, model, options, {judged, reference}, inputs, steps);

  Outcome outcome;
  size_t compared = 0;
  outcome.json = {{"model", flags.session.model}, {"devices", options.devices}};
  Json differences = Json::array();
  for (const Step& step : steps) {
    const auto a = expected.values.find(step.value), b = seen.values.find(step.value);
    if (a == expected.values.end() || b == seen.values.end()) continue;
    ++compared;
    const Difference difference = compare(b->second, a->second, flags.tolerance);
    if (difference.is_none()) continue;
    const onnx::NodeProto& node = file.graph().node(step.node);
    Json entry = {{"node", step.node}, {"op_type", node.op_type()}, {"name", node.name()}, {"value", step.value}};
    entry.update(to_json(difference));
    entry["text"] = text(difference);
    differences.push_back(std::move(entry));
  }
  outcome.json["values"] = compared;
  outcome.json["nodes"] = seen.nodes;
  outcome.json["nodes_judged"] = seen.nodes_on_first;
  outcome.json["faults"] = seen.faults;
  outcome.is_positive = differences.empty() && seen.faults.empty() && seen.nodes_on_first != 0 && compared != 0;
  outcome.json["differences"] = std::move(differences);
  note_random(inputs, flags.inputs.seed);
  outcome.text = render(outcome.json);
  return outcome;
}

Action declare(cli::Command command) {
  const auto flags = std::make_shared<Flags>();
  flags->session.declare(command);
  flags->inputs.declare(command);
  flags->tolerance.declare(command);
  return [flags] { return diff(*flags); };
}

}  // namespace

extern const Verb diff_verb = {"diff", "finds the first node whose results differ between two devices", declare};

}  // namespace backplane::tools
