// SPDX-License-Identifier: Apache-2.0
// Cases of the group graph: in random graphs of several operators, the claimed nodes are cut out, run and judged
// together.
#include "checks/graph.h"

#include <cmath>

#include "cases/network.h"
#include "judge/judge.h"

namespace backplane::conform {
namespace {

// Removes from the mask the nodes that the device does not claim. Returns false, with the reason in `out_result`, if
// coverage fails.
bool claimed(RemoteDevice& device, const Network& network, std::vector<bool>& out_mask, Result& out_result) {
  std::vector<Claim> claims;
  if (const Answer answer = device.coverage(network.spec, claims); !answer.ok()) {
    out_result = failed(answer.describe());
    return false;
  }
  for (size_t i = 0; i < claims.size(); ++i) out_mask[i] = out_mask[i] && claims[i].answer != BP_ANSWER_NO;
  return true;
}

// Runs one graph whose nodes are all claimed, and adds the outcome to `out_result`.
void run_island(RemoteDevice& device, const Network& island, Result& out_result) {
  std::vector<onnx::Tensor> outputs;
  const Answer answer = device.compute(island.spec, island.inputs, outputs);
  if (answer.status == BP_UNSUPPORTED && (answer.stage == Stage::kReview || answer.stage == Stage::kCompile)) {
    out_result = failed(fmt::format("each of {} nodes is claimed, but not all of them together: {}",
                                    island.spec.nodes.size(), answer.describe()));
    return;
  }
  if (!answer.ok()) {
    out_result = failed(answer.describe());
    return;
  }
  if (!device.misuse().empty()) {
    out_result = failed("the plugin " + device.misuse());
    return;
  }
  const std::vector<Estimate> estimates = estimate(island.spec, island.inputs, device.flushes());
  for (size_t o = 0; o < outputs.size(); ++o) {
    const Judgement judgement =
        judge(estimates[island.spec.outputs[o]].reference(), outputs[o], {.flushes = device.flushes()});
    for (size_t i = 0; i < judgement.errors.size(); ++i) out_result.errors[i] += judgement.errors[i];
    out_result.worst = std::max(out_result.worst, judgement.worst);
    if (judgement.answer == Judgement::kRight) continue;
    out_result.state = judgement.answer == Judgement::kWrong ? State::kFail : State::kMistrusted;
    out_result.reason = fmt::format("output {} of {} nodes: {}", o, island.spec.nodes.size(), judgement.reason);
    return;
  }
  out_result.nodes += static_cast<uint32_t>(island.spec.nodes.size());
}

constexpr uint32_t kOldestOpset = 13;  // random graphs leave out operators that are newer than the operator set

Result too_old(uint32_t opset) {
  return not_supported(
      fmt::format("the plugin supports at most operator set {}; random graphs need {} or newer", opset, kOldestOpset));
}

struct Masked {
  Network network;
  std::vector<bool> mask;  // for each node, whether it may run
};

Masked draw(const Recipe& recipe, const std::string& name, uint64_t seed, uint32_t opset) {
  Random random(seed, name);
  Masked masked{random_network(random, recipe, opset), {}};
  masked.mask = draw_mask(random, masked.network.spec.nodes.size());
  return masked;
}

}  // namespace

std::vector<bool> draw_mask(Random& random, size_t nodes) {
  std::vector<bool> mask(nodes);
  const double density = random.integer(0, 1) == 0 ? 1 : random.uniform(0.3, 0.95);
  for (size_t i = 0; i < nodes; ++i) mask[i] = random.uniform(0, 1) < density;
  mask[static_cast<size_t>(random.integer(0, static_cast<int64_t>(nodes) - 1))] = true;
  return mask;
}

Result run_claimed(RemoteDevice& device, const Network& network, std::vector<bool> mask) {
  Result result = passed();
  if (!claimed(device, network, mask, result)) return result;
  for (const Network& island : islands(network, mask)) {
    run_island(device, island, result);
    if (result.state != State::kPass) return result;
  }
  return result.nodes != 0 ? result : not_supported("no node of the graph is claimed");
}

namespace {

Result run_network(RemoteDevice& device, const Recipe& recipe, const std::string& name) {
  const uint32_t opset = device.newest_opset();
  if (opset < kOldestOpset) return too_old(opset);
  const Masked masked = draw(recipe, name, device.seed(), opset);
  return run_claimed(device, masked.network, masked.mask);
}

// Checks that the errors of a graph are symmetric around zero. The graph is linear in its inputs, so a device that
// rounds to nearest turns negated inputs into negated results with negated errors. For inputs drawn around zero, the
// mean error m of a run is therefore symmetrically distributed. Then P(|Σ m| > t·√(Σ m²)) <= 2·exp(-t²/2) over
// independent runs (Efron 1969), which is 1e-7 for t = 5.8. A constant bias reaches t = √runs = 8.
Result run_biased(RemoteDevice& device, const Recipe& recipe, const std::string& name) {
  constexpr int kRuns = 64;
  constexpr double kSurprise = 5.8;
  if (device.newest_opset() < kOldestOpset) return too_old(device.newest_opset());
  Random random(device.seed(), name);
  Network network = random_network(random, recipe, device.newest_opset());
  std::vector<bool> mask(network.spec.nodes.size(), true);
  Result result = passed();
  if (!claimed(device, network, mask, result)) return result;
  if (std::find(mask.begin(), mask.end(), false) != mask.end())
    return not_supported("a node of the graph is not claimed");
  std::vector<double> sums(network.spec.outputs.size()), squares(sums.size());
  for (int run = 0; run < kRuns; ++run) {
    for (onnx::Tensor& input : network.inputs) {
      input = random_tensor(random, input.dtype, input.extents, Fill::kAroundZero);
    }
    std::vector<onnx::Tensor> outputs;
    if (const Answer answer = device.compute(network.spec, network.inputs, outputs); !answer.ok())
      return failed(answer.describe());
    const std::vector<Estimate> estimates = estimate(network.spec, network.inputs, device.flushes());
    for (size_t o = 0; o < outputs.size(); ++o) {
      const Estimate& expected = estimates[network.spec.outputs[o]];
      const Judgement judgement = judge(expected.reference(), outputs[o], {.flushes = device.flushes()});
      if (judgement.answer != Judgement::kRight) return failed(fmt::format("run {}: {}", run, judgement.reason));
      const Array seen = to_array(outputs[o]);
      double mean = 0;
      for (size_t i = 0; i < seen.values.size(); ++i) {
        if (expected.typical[i] != 0) mean += (seen.values[i] - expected.value.values[i]) / expected.typical[i];
      }
      sums[o] += mean;
      squares[o] += mean * mean;
    }
  }
  for (size_t o = 0; o < sums.size(); ++o) {
    const double surprise = squares[o] == 0 ? 0 : std::fabs(sums[o]) / std::sqrt(squares[o]);
    result.worst = std::max(result.worst, surprise / kSurprise);
    if (!(surprise <= kSurprise)) {
      return failed(fmt::format(
          "the mean errors of output {} over {} runs are biased: the sum is {:.1f} times its standard deviation", o,
          kRuns, surprise));
    }
  }
  result.nodes = static_cast<uint32_t>(network.spec.nodes.size());
  return result;
}

struct Row {
  const char* name;
  std::string_view profile;
  Recipe recipe;
  uint32_t quick, full;  // number of cases with --quick and --full
  Result (*run)(RemoteDevice& device, const Recipe& recipe, const std::string& name);
};
constexpr Row kRows[] = {
    {"5/float", "core", {5, BP_DTYPE_FLOAT}, 120, 6000, run_network},
    {"40/float", "core", {40, BP_DTYPE_FLOAT}, 40, 2400, run_network},
    {"5/float16", "fp16", {5, BP_DTYPE_FLOAT16}, 30, 1500, run_network},
    {"40/float16", "fp16", {40, BP_DTYPE_FLOAT16}, 10, 400, run_network},
    {"5/bfloat16", "fp16", {5, BP_DTYPE_BFLOAT16}, 30, 1500, run_network},
    {"40/bfloat16", "fp16", {40, BP_DTYPE_BFLOAT16}, 10, 400, run_network},
    {"bias/float", "core", {5, BP_DTYPE_FLOAT, true}, 10, 200, run_biased},
};

}  // namespace

std::vector<Network> networks_of(std::string_view name, uint64_t seed, uint32_t opset) {
  for (const Row& row : kRows) {
    if (row.run != run_network || !name.starts_with(fmt::format("graph/{}/", row.name))) continue;
    const Masked masked = draw(row.recipe, std::string(name), seed, opset);
    return islands(masked.network, masked.mask);
  }
  return {};
}

Result judge_network(RemoteDevice& device, const Network& network) {
  return run_claimed(device, network, std::vector<bool>(network.spec.nodes.size(), true));
}

void add_graph(const Selection& selection, std::vector<Case>& out_cases) {
  for (const Row& row : kRows) {
    for (uint32_t i = 0; i < (selection.full ? row.full : row.quick); ++i) {
      const std::string name = fmt::format("graph/{}/{}", row.name, i);
      out_cases.push_back({.name = name,
                           .judge = [&row, name](RemoteDevice& device) { return row.run(device, row.recipe, name); },
                           .profile = std::string(row.profile)});
    }
  }
}

}  // namespace backplane::conform
