// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

namespace backplane::conform {
namespace {

struct Kind {
  const char* op;
  int64_t gates;
  uint32_t outputs;
};
const Kind kKinds[] = {{"LSTM", 4, 3}, {"GRU", 3, 2}, {"RNN", 1, 2}};

struct Row {
  const char* variant;
  int64_t steps, batch, inputs, hidden;
  const char* direction = "forward";
  bool bias = true, lengths = false, state = false, peepholes = false, batch_first = false, linear = false;
};
const Row kRows[] = {
    {"plain", 4, 2, 5, 3},
    {"no_bias", 3, 1, 4, 6, "forward", false},
    {"reverse", 5, 2, 3, 4, "reverse"},
    {"bidirectional", 4, 3, 5, 4, "bidirectional", true, false, true},
    {"lengths", 6, 3, 4, 5, "forward", true, true},
    {"lengths_bidirectional", 5, 3, 4, 3, "bidirectional", true, true, true},
    {"state", 3, 2, 4, 5, "forward", true, false, true},
    {"one_step", 1, 1, 8, 8, "forward", true, false, true},
    {"wide", 3, 2, 33, 20},
    {"peepholes", 4, 2, 5, 3, "forward", true, false, true, true},
    {"linear_before_reset", 4, 2, 5, 3, "forward", true, false, true, false, false, true},
};

Problem make(const Kind& kind, const Row& row, Random& random, bp_dtype_t dtype) {
  const int64_t directions = std::string_view(row.direction) == "bidirectional" ? 2 : 1,
                units = kind.gates * row.hidden;
  const auto tensor = [&](const Extents& extents) { return random_tensor(random, dtype, extents, Fill::kAroundZero); };
  Problem problem{
      kind.op, {{"direction", std::string(row.direction)}, {"hidden_size", row.hidden}, {"layout", int64_t{0}}}, {}};
  if (kind.gates == 4) problem.attributes.push_back({"input_forget", int64_t{0}});
  if (kind.gates == 3) problem.attributes.push_back({"linear_before_reset", int64_t{row.linear}});
  problem.arguments.emplace_back(tensor({row.steps, row.batch, row.inputs}));
  problem.arguments.push_back(constant(tensor({directions, units, row.inputs})));
  problem.arguments.push_back(constant(tensor({directions, units, row.hidden})));
  problem.arguments.push_back(row.bias ? constant(tensor({directions, 2 * units})) : Argument());
  if (row.lengths) {
    Array lengths(BP_DTYPE_INT32, {row.batch});
    for (double& x : lengths.values) x = static_cast<double>(random.integer(1, row.steps));
    problem.arguments.emplace_back(to_tensor(lengths));
  } else {
    problem.arguments.emplace_back();
  }
  for (uint32_t i = 1; i < kind.outputs; ++i)
    problem.arguments.push_back(row.state ? Argument(tensor({directions, row.batch, row.hidden})) : Argument());
  if (row.peepholes) problem.arguments.push_back(constant(tensor({directions, 3 * row.hidden})));
  while (!problem.arguments.back().tensor) problem.arguments.pop_back();
  problem.outputs = kind.outputs;
  return problem;
}

}  // namespace

void add_recurrent_cases(OpCases& cases) {
  for (const Kind& kind : kKinds) {
    for (const Row& row : kRows) {
      if ((row.peepholes && kind.gates != 4) || (row.linear && kind.gates != 3)) continue;
      for (const bp_dtype_t dtype : real_types()) {
        cases.add_to(kExtended, kind.op, dtype, row.variant,
                     [&kind, &row, dtype](Random& random) { return make(kind, row, random, dtype); });
      }
    }
  }
}

}  // namespace backplane::conform
