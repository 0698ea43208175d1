// SPDX-License-Identifier: Apache-2.0
// An operator call with its inputs, and the graph and reference results derived from it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cases/random.h"
#include "judge/judge.h"
#include "judge/oracle.h"

namespace backplane::conform {

// An input of the call: a constant tensor, a tensor bound at each run, or omitted.
struct Argument {
  std::optional<onnx::Tensor> tensor;
  bool constant = false;

  Argument() = default;  // omitted
  Argument(onnx::Tensor value, bool is_constant = false) : tensor(std::move(value)), constant(is_constant) {}
};
inline Argument constant(onnx::Tensor tensor) {
  return {std::move(tensor), true};
}

struct Problem {
  std::string op;  // Operator::name
  Attributes attributes;
  std::vector<Argument> arguments;
  uint32_t outputs = 1;
  bool exact_sums = false;           // the inputs are integers that make every sum exact
  bool drawn_around_zero = false;    // see JudgeOptions in judge/judge.h
  uint32_t since = 0;                // the oldest version that allows the call, if the oracle's row lists older ones
  std::vector<size_t> omitted = {};  // outputs that the node omits, in ascending order; they are not judged
};

// One operator case; `make` returns the same problem for the same random numbers.
struct OpCase {
  std::string name;  // "Conv/float/depthwise"
  std::string op;
  std::string_view profile;  // one of profiles()
  bool once = false;         // one draw is enough
  std::function<Problem(Random& random)> make;
};

std::vector<onnx::Tensor> run_inputs(const Problem& problem);
// The results of the outputs that are not omitted. With `flush`: the results of a device that treats subnormal inputs
// as zero.
References reference(const Problem& problem, bool flush = false);
// A graph of one node, in its newest form in opset `opset`; nullopt if no form in that opset allows the call.
std::optional<GraphSpec> graph_of(const Problem& problem, const References& references, uint32_t opset);
// Judges all outputs against `references`, which must be the result of `reference(problem)`. The worst output decides
// the answer, the reason and whether the results are close. With `flushes`, the device may treat subnormal numbers as
// zero.
Judgement judge_all(const Problem& problem, const References& references, const std::vector<onnx::Tensor>& seen,
                    bool flushes);

}  // namespace backplane::conform
