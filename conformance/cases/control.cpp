// SPDX-License-Identifier: Apache-2.0
// Hand-written graphs of If, Loop and Scan: bodies that read outer values, loops that end early or run zero times,
// nesting.
#include "cases/graph_spec_builder.h"
#include "cases/network_case.h"

namespace backplane::conform {
namespace {

using Runs = NetworkCase::Runs;
constexpr bp_dtype_t kFloat = BP_DTYPE_FLOAT, kInt = BP_DTYPE_INT64, kBool = BP_DTYPE_BOOL;

onnx::Tensor scalar(bp_dtype_t dtype, double value) {
  return reals(dtype, {}, {value});
}
onnx::Tensor around_zero(Random& random, Extents extents) {
  return random_tensor(random, kFloat, std::move(extents), Fill::kAroundZero);
}

std::shared_ptr<const GraphSpec> branch(uint32_t opset, const GraphSpecBuilder& around, uint32_t x,
                                        const std::string& op, const Extents& extents) {
  GraphSpecBuilder body(opset);
  body.output(body.node(op, {body.outer(around, x)}, kFloat, extents));
  return std::move(body).body();
}

Runs if_plain(Random& random, uint32_t opset) {
  GraphSpecBuilder graph(opset);
  const uint32_t condition = graph.input(kBool, {}), x = graph.input(kFloat, {3, 5});
  graph.output(graph.node("If", {condition}, kFloat, {3, 5},
                          {{"then_branch", branch(opset, graph, x, "Relu", {3, 5})},
                           {"else_branch", branch(opset, graph, x, "Neg", {3, 5})}}));
  const double yes = static_cast<double>(random.integer(0, 1));
  return {std::move(graph).graph(), {{scalar(kBool, yes), around_zero(random, {3, 5})}}};
}

// A node computes the condition. Both branches have two outputs, which later nodes read.
Runs if_computed(Random& random, uint32_t opset) {
  GraphSpecBuilder graph(opset);
  const uint32_t n = graph.input(kInt, {}), x = graph.input(kFloat, {4, 6});
  const uint32_t condition = graph.node("Greater", {n, graph.weight(scalar(kInt, 0))}, kBool, {});
  const auto two = [&](const std::string& op, float alpha) {
    GraphSpecBuilder body(opset);
    const uint32_t inner = body.outer(graph, x), weight = body.weight(around_zero(random, {6}));
    const uint32_t sum = body.node(op, {inner, weight}, kFloat, {4, 6});
    body.output(sum);
    body.output(body.node("LeakyRelu", {sum}, kFloat, {4, 6}, {{"alpha", alpha}}));
    return std::move(body).body();
  };
  const uint32_t first = graph.node("If", {condition}, {{kFloat, {4, 6}}, {kFloat, {4, 6}}},
                                    {{"then_branch", two("Add", 0.25f)}, {"else_branch", two("Mul", 0.5f)}});
  graph.output(graph.node("Add", {first, first + 1}, kFloat, {4, 6}));
  graph.output(first);
  const double sign = static_cast<double>(random.integer(-2, 2));
  return {std::move(graph).graph(), {{scalar(kInt, sign), around_zero(random, {4, 6})}}};
}

// The inner branches read a value of the outermost graph.
Runs if_nested(Random& random, uint32_t opset) {
  GraphSpecBuilder graph(opset);
  const uint32_t a = graph.input(kBool, {}), b = graph.input(kBool, {}), x = graph.input(kFloat, {2, 7});
  GraphSpecBuilder outer_body(opset);
  const uint32_t inner_condition = outer_body.outer(graph, b), inner_x = outer_body.outer(graph, x);
  outer_body.output(outer_body.node("If", {inner_condition}, kFloat, {2, 7},
                                    {{"then_branch", branch(opset, outer_body, inner_x, "Sigmoid", {2, 7})},
                                     {"else_branch", branch(opset, outer_body, inner_x, "Abs", {2, 7})}}));
  graph.output(graph.node(
      "If", {a}, kFloat, {2, 7},
      {{"then_branch", std::move(outer_body).body()}, {"else_branch", branch(opset, graph, x, "Tanh", {2, 7})}}));
  const auto coin = [&] { return scalar(kBool, static_cast<double>(random.integer(0, 1))); };
  return {std::move(graph).graph(), {{coin(), coin(), around_zero(random, {2, 7})}}};
}

// Repeats x = tanh(x·W), where W belongs to the enclosing graph, and collects every product x·W.
Runs loop_recurrence(Random& random, uint32_t opset) {
  const int64_t steps = random.integer(1, 6);
  GraphSpecBuilder graph(opset);
  const uint32_t x = graph.input(kFloat, {2, 5}), w = graph.weight(around_zero(random, {5, 5}));
  GraphSpecBuilder body(opset);
  body.input(kInt, {});
  const uint32_t goes_on = body.input(kBool, {}), state = body.input(kFloat, {2, 5});
  const uint32_t product = body.node("MatMul", {state, body.outer(graph, w)}, kFloat, {2, 5});
  const uint32_t next = body.node("Tanh", {product}, kFloat, {2, 5});
  body.output(body.node("Identity", {goes_on}, kBool, {}));
  body.output(next);
  body.output(product);
  const uint32_t count = graph.weight(scalar(kInt, static_cast<double>(steps)));
  const uint32_t first = graph.node("Loop", {count, BP_NONE, x}, {{kFloat, {2, 5}}, {kFloat, {steps, 2, 5}}},
                                    {{"body", std::move(body).body()}});
  graph.output(first);
  graph.output(first + 1);
  return {std::move(graph).graph(), {{around_zero(random, {2, 5})}}};
}

// The condition may stop the loop before its limit, or the loop may run zero times. Limit and initial condition are
// run-time inputs.
Runs loop_until(Random& random, uint32_t opset) {
  GraphSpecBuilder graph(opset);
  const uint32_t limit = graph.input(kInt, {}), begins = graph.input(kBool, {}), stop = graph.input(kInt, {}),
                 x = graph.input(kFloat, {3, 4});
  GraphSpecBuilder body(opset);
  const uint32_t step = body.input(kInt, {});
  body.input(kBool, {});
  const uint32_t state = body.input(kFloat, {3, 4});
  body.output(body.node("Less", {step, body.outer(graph, stop)}, kBool, {}));
  body.output(body.node("Mul", {state, body.weight(scalar(kFloat, -0.75))}, kFloat, {3, 4}));
  graph.output(graph.node("Loop", {limit, begins, x}, kFloat, {3, 4}, {{"body", std::move(body).body()}}));
  std::vector<std::vector<onnx::Tensor>> inputs;
  for (int run = 0; run < 3; ++run) {  // all runs use one program
    inputs.push_back({scalar(kInt, static_cast<double>(random.integer(0, 9))),
                      scalar(kBool, static_cast<double>(run != 1)),
                      scalar(kInt, static_cast<double>(random.integer(0, 5))), around_zero(random, {3, 4})});
  }
  return {std::move(graph).graph(), inputs};
}

// A loop without carried state. Each step collects the result of an If, and a number derived from the step index.
Runs loop_collects(Random& random, uint32_t opset) {
  const int64_t steps = random.integer(2, 7);
  GraphSpecBuilder graph(opset);
  const uint32_t x = graph.input(kFloat, {3});
  GraphSpecBuilder body(opset);
  const uint32_t step = body.input(kInt, {}), goes_on = body.input(kBool, {}), inner_x = body.outer(graph, x);
  const uint32_t early = body.node("Less", {step, body.weight(scalar(kInt, 2))}, kBool, {});
  const uint32_t chosen = body.node("If", {early}, kFloat, {3},
                                    {{"then_branch", branch(opset, body, inner_x, "Neg", {3})},
                                     {"else_branch", branch(opset, body, inner_x, "Floor", {3})}});
  body.output(body.node("Identity", {goes_on}, kBool, {}));
  body.output(chosen);
  body.output(body.node("Add", {step, body.weight(scalar(kInt, 10))}, kInt, {}));
  const uint32_t count = graph.weight(scalar(kInt, static_cast<double>(steps)));
  const uint32_t first = graph.node("Loop", {count, graph.weight(scalar(kBool, 1))},
                                    {{kFloat, {steps, 3}}, {kInt, {steps}}}, {{"body", std::move(body).body()}});
  graph.output(first);
  graph.output(first + 1);
  return {std::move(graph).graph(), {{around_zero(random, {3})}}};
}

// A loop inside a loop: sums i·j over a triangle of indices, in integers.
Runs loop_nested(Random& random, uint32_t opset) {
  GraphSpecBuilder graph(opset);
  const uint32_t n = graph.input(kInt, {}), start = graph.input(kInt, {});
  GraphSpecBuilder outer_body(opset);
  const uint32_t i = outer_body.input(kInt, {}), outer_on = outer_body.input(kBool, {}),
                 outer_sum = outer_body.input(kInt, {});
  GraphSpecBuilder inner_body(opset);
  const uint32_t j = inner_body.input(kInt, {}), inner_on = inner_body.input(kBool, {}),
                 inner_sum = inner_body.input(kInt, {});
  const uint32_t product = inner_body.node("Mul", {j, inner_body.outer(outer_body, i)}, kInt, {});
  inner_body.output(inner_body.node("Identity", {inner_on}, kBool, {}));
  inner_body.output(inner_body.node("Add", {inner_sum, product}, kInt, {}));
  const uint32_t total =
      outer_body.node("Loop", {i, BP_NONE, outer_sum}, kInt, {}, {{"body", std::move(inner_body).body()}});
  outer_body.output(outer_body.node("Identity", {outer_on}, kBool, {}));
  outer_body.output(total);
  graph.output(graph.node("Loop", {n, BP_NONE, start}, kInt, {}, {{"body", std::move(outer_body).body()}}));
  return {std::move(graph).graph(),
          {{scalar(kInt, static_cast<double>(random.integer(0, 6))),
            scalar(kInt, static_cast<double>(random.integer(-9, 9)))}}};
}

Runs scan(Random& random, uint32_t opset, int64_t in_direction, int64_t out_direction) {
  const int64_t length = random.integer(1, 7);
  GraphSpecBuilder graph(opset);
  const uint32_t start = graph.input(kFloat, {4}), a = graph.input(kFloat, {length, 4}),
                 b = graph.input(kFloat, {length, 4}), scale = graph.weight(around_zero(random, {4}));
  GraphSpecBuilder body(opset);
  const uint32_t state = body.input(kFloat, {4}), x = body.input(kFloat, {4}), y = body.input(kFloat, {4});
  const uint32_t product = body.node("Mul", {x, body.outer(graph, scale)}, kFloat, {4});
  const uint32_t next = body.node("Add", {state, product}, kFloat, {4});
  body.output(next);
  body.output(body.node("Sub", {next, y}, kFloat, {4}));
  const uint32_t first = graph.node("Scan", {start, a, b}, {{kFloat, {4}}, {kFloat, {length, 4}}},
                                    {{"body", std::move(body).body()},
                                     {"num_scan_inputs", int64_t{2}},
                                     {"scan_input_axes", Extents{0, 0}},
                                     {"scan_input_directions", Extents{in_direction, 0}},
                                     {"scan_output_axes", Extents{0}},
                                     {"scan_output_directions", Extents{out_direction}}});
  graph.output(first);
  graph.output(first + 1);
  return {std::move(graph).graph(),
          {{around_zero(random, {4}), around_zero(random, {length, 4}), around_zero(random, {length, 4})}}};
}
Runs scan_forwards(Random& random, uint32_t opset) {
  return scan(random, opset, 0, 0);
}
Runs scan_backwards(Random& random, uint32_t opset) {
  return scan(random, opset, 1, 1);
}
Runs scan_there_and_back(Random& random, uint32_t opset) {
  return scan(random, opset, 1, 0);
}

const NetworkCase kCases[] = {
    {"If/plain", "control-flow", if_plain},
    {"If/computed", "control-flow", if_computed},
    {"If/nested", "control-flow", if_nested},
    {"Loop/recurrence", "control-flow", loop_recurrence},
    {"Loop/until", "control-flow", loop_until},
    {"Loop/collects", "control-flow", loop_collects},
    {"Loop/nested", "control-flow", loop_nested},
    {"Scan/forwards", "control-flow", scan_forwards},
    {"Scan/backwards", "control-flow", scan_backwards},
    {"Scan/there_and_back", "control-flow", scan_there_and_back},
};

}  // namespace

std::span<const NetworkCase> control_networks() {
  return kCases;
}

}  // namespace backplane::conform
