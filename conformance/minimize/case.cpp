// SPDX-License-Identifier: Apache-2.0
#include "minimize/case.h"

#include <fmt/format.h>

#include <set>

#include "checks/graph.h"
#include "cli/printable.h"
#include "journal/case_name.h"
#include "journal/digest.h"
#include "minimize/sound.h"
#include "minimize/trial.h"
#include "onnx/wire.h"

namespace backplane::conform {
namespace {

bool is_failure(State state) {
  return state == State::kFail || state == State::kCrash || state == State::kTimeout || state == State::kMistrusted;
}

std::vector<Network> networks_in(const std::string& name, uint64_t seed, uint32_t opset) {
  const std::string_view group = label_of(name).group;
  if (group == "graph") return networks_of(name, seed, opset);
  if (group != "ops") return {};
  // The name "ops/Add/float/row/0" ends with the number of the draw, which is not part of the operator case's name.
  const size_t begin = name.find('/') + 1, end = name.rfind('/');
  const Problem problem = problem_of(name.substr(begin, end - begin), seed, name);
  std::optional<GraphSpec> spec = graph_of(problem, reference(problem), opset);
  if (!spec) return {};
  return {{std::move(*spec), run_inputs(problem)}};
}

std::string operators_of(const Network& network) {
  std::set<std::string> names;
  for (const NodeSpec& node : network.spec.nodes) names.insert(node.op_type);
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

MinimizedCase minimize_case(const std::string& case_name, const TrialSettings& settings, const Limits& limits) {
  const Result opened = in_fork(
      [&] {
        Bench bench(settings.plugin, settings.device, settings.seed);
        Result result = passed();
        result.opset = bench.device().newest_opset();
        return result;
      },
      settings.deadline);
  if (opened.state != State::kPass)
    throw std::runtime_error(fmt::format("the device cannot be opened: {}", opened.reason));
  const std::vector<Network> networks = networks_in(case_name, settings.seed, opened.opset);
  if (networks.empty())
    throw Usage(fmt::format(
        "'{}' runs no graph that could be reduced: --minimize works for cases of ops/, graph/5/ and graph/40/",
        case_name));

  const auto judge_alone = [&](const Network& network) {
    return in_fork(
        [&] {
          Bench bench(settings.plugin, settings.device, settings.seed);
          RemoteDevice device = local_device(bench);
          return judge_network(device, network);
        },
        settings.deadline);
  };
  bool any_known = false;
  for (Network network : networks) {
    if (!is_sound(network) || !recompute(network)) continue;
    any_known = true;
    const State state = judge_alone(network).state;
    if (!is_failure(state)) continue;
    MinimizedCase out{.start = network};
    out.minimized =
        minimize(std::move(network),
                 {is_sound, [&](const Network& smaller) { return judge_alone(smaller).state == state; }}, limits);
    out.result = judge_alone(out.minimized.network);
    return out;
  }
  throw std::runtime_error(
      any_known
          ? fmt::format("'{}' does not fail when its graph runs alone", case_name)
          : fmt::format("'{}' cannot be minimized: the oracle has no bounds for graphs of its operators", case_name));
}

void write_network(const Network& network, const std::filesystem::path& folder) {
  const std::filesystem::path data = folder / "test_data_set_0";
  std::error_code ignored;  // writing to the folder fails if it was not created
  std::filesystem::create_directories(data, ignored);
  write_file(folder / "model.onnx", serialize(network.spec));
  const auto write = [&](const char* stem, size_t i, uint32_t value, const onnx::Tensor& tensor) {
    write_file(data / fmt::format("{}_{}.pb", stem, i),
               onnx::to_message(tensor, fmt::format("v{}", value)).SerializeAsString());
  };
  for (size_t i = 0; i < network.inputs.size(); ++i) write("input", i, network.spec.inputs[i], network.inputs[i]);
  const std::vector<onnx::Tensor> values = computed_values(network);
  for (size_t i = 0; i < network.spec.outputs.size(); ++i)
    write("output", i, network.spec.outputs[i], values[network.spec.outputs[i]]);
}

int minimize_and_report(const std::string& case_name, const TrialSettings& settings,
                        const std::filesystem::path& folder) {
  const MinimizedCase found = minimize_case(case_name, settings);
  const Network& smallest = found.minimized.network;
  write_network(smallest, folder);
  const Size before = size_of(found.start), after = size_of(smallest);
  fmt::print("{} {}: {}\n", name_of(found.result.state), case_name, cli::printable(found.result.reason));
  fmt::print("{} of {} nodes left ({}), {} of {} elements, after {} attempts{}\n", after.nodes, before.nodes,
             operators_of(smallest), after.elements, before.elements, found.minimized.attempts,
             found.minimized.finished ? "" : ", stopped at a limit");
  fmt::print("{}\n", (folder / "model.onnx").string());
  return 1;
}

}  // namespace backplane::conform
