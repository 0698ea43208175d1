// SPDX-License-Identifier: Apache-2.0
// Graphs with extents known only at run time: one program runs inputs of several sizes, some of them empty.
#include "cases/graph_spec_builder.h"
#include "cases/network_case.h"

namespace backplane::conform {
namespace {

using Runs = NetworkCase::Runs;
constexpr bp_dtype_t kFloat = BP_DTYPE_FLOAT, kInt = BP_DTYPE_INT64;

onnx::Tensor around_zero(Random& random, Extents extents) {
  return random_tensor(random, kFloat, std::move(extents), Fill::kAroundZero);
}
ValueSpec open(Extents extents, std::vector<std::string> symbols, bp_dtype_t dtype = kFloat) {
  return {dtype, std::move(extents), {}, BP_NONE, std::move(symbols)};
}

// A random extent, a larger one, the first again, 1, and, if `empty`, 0.
Extents sizes(Random& random, bool empty) {
  const int64_t n = random.integer(2, 12);
  Extents all = {n, n + random.integer(1, 9), n, 1};
  if (empty) all.push_back(0);
  return all;
}

// A graph whose input has the shape [n, inner…], and runs with several values of n. `build` adds nodes and outputs.
template <class F>
Runs batch(Random& random, uint32_t opset, const Extents& inner, bool empty, F build) {
  GraphSpecBuilder graph(opset);
  Extents extents = inner;
  extents.insert(extents.begin(), -1);
  const uint32_t x = graph.input(kFloat, extents);
  graph.symbols(x, {"n"});
  build(graph, x);
  Runs runs{std::move(graph).graph(), {}};
  for (const int64_t n : sizes(random, empty)) {
    extents[0] = n;
    runs.inputs.push_back({around_zero(random, extents)});
  }
  return runs;
}

Runs elementwise(Random& random, uint32_t opset) {
  return batch(random, opset, {7}, true, [&](GraphSpecBuilder& graph, uint32_t x) {
    const uint32_t sum = graph.node("Add", {x, graph.weight(around_zero(random, {7}))}, {open({-1, 7}, {"n"})});
    graph.output(graph.node("Relu", {sum}, {open({-1, 7}, {"n"})}));
    graph.output(graph.node("Mul", {sum, x}, {open({-1, 7}, {"n"})}));
  });
}

Runs matmul(Random& random, uint32_t opset) {
  return batch(random, opset, {6}, true, [&](GraphSpecBuilder& graph, uint32_t x) {
    const uint32_t y = graph.node("MatMul", {x, graph.weight(around_zero(random, {6, 9}))}, {open({-1, 9}, {"n"})});
    graph.output(graph.node("Softmax", {y}, {open({-1, 9}, {"n"})}, {{"axis", int64_t{-1}}}));
  });
}

Runs gemm(Random& random, uint32_t opset) {
  return batch(random, opset, {6}, false, [&](GraphSpecBuilder& graph, uint32_t x) {
    const uint32_t w = graph.weight(around_zero(random, {4, 6})), c = graph.weight(around_zero(random, {4}));
    graph.output(graph.node("Gemm", {x, w, c}, {open({-1, 4}, {"n"})},
                            {{"alpha", 1.0f}, {"beta", 1.0f}, {"transA", int64_t{0}}, {"transB", int64_t{1}}}));
  });
}

// Height and width vary. Height and width of the pooled value are unknown, and have no names.
Runs image(Random& random, uint32_t opset) {
  GraphSpecBuilder graph(opset);
  const uint32_t x = graph.input(kFloat, {1, 3, -1, -1});
  graph.symbols(x, {"", "", "h", "w"});
  const uint32_t w = graph.weight(around_zero(random, {5, 3, 3, 3}));
  const uint32_t y = graph.node("Conv", {x, w}, {open({1, 5, -1, -1}, {"", "", "h2", "w2"})},
                                {{"auto_pad", std::string("NOTSET")},
                                 {"dilations", Extents{1, 1}},
                                 {"group", int64_t{1}},
                                 {"kernel_shape", Extents{3, 3}},
                                 {"pads", Extents{1, 1, 1, 1}},
                                 {"strides", Extents{2, 2}}});
  const uint32_t z = graph.node("MaxPool", {y}, {open({1, 5, -1, -1}, {})},
                                {{"auto_pad", std::string("NOTSET")},
                                 {"ceil_mode", int64_t{0}},
                                 {"dilations", Extents{1, 1}},
                                 {"kernel_shape", Extents{2, 2}},
                                 {"pads", Extents{0, 0, 0, 0}},
                                 {"storage_order", int64_t{0}},
                                 {"strides", Extents{1, 1}}});
  graph.output(graph.node("GlobalAveragePool", {z}, kFloat, {1, 5, 1, 1}));
  graph.output(y);
  Runs runs{std::move(graph).graph(), {}};
  for (int run = 0; run < 4; ++run) {
    runs.inputs.push_back({around_zero(random, {1, 3, random.integer(4, 13), random.integer(4, 13)})});
  }
  return runs;
}

// The numbers of queries and keys vary, and with them the shapes of the transposed keys and of the scores.
Runs attention(Random& random, uint32_t opset) {
  GraphSpecBuilder graph(opset);
  const uint32_t q = graph.input(kFloat, {2, -1, 8}), k = graph.input(kFloat, {2, -1, 8});
  graph.symbols(q, {"", "queries"});
  graph.symbols(k, {"", "length"});
  const uint32_t t = graph.node("Transpose", {k}, {open({2, 8, -1}, {"", "", "length"})}, {{"perm", Extents{0, 2, 1}}});
  const uint32_t scores = graph.node("MatMul", {q, t}, {open({2, -1, -1}, {"", "queries", "length"})});
  const uint32_t shares =
      graph.node("Softmax", {scores}, {open({2, -1, -1}, {"", "queries", "length"})}, {{"axis", int64_t{-1}}});
  graph.output(graph.node("MatMul", {shares, k}, {open({2, -1, 8}, {"", "queries"})}));
  Runs runs{std::move(graph).graph(), {}};
  for (int run = 0; run < 4; ++run) {
    const int64_t queries = random.integer(1, 9), length = random.integer(1, 9);
    runs.inputs.push_back({around_zero(random, {2, queries, 8}), around_zero(random, {2, length, 8})});
  }
  return runs;
}

// A shape computed at run time from another shape: [n, 12] is reshaped to [n·3, 4].
Runs computed_shape(Random& random, uint32_t opset) {
  return batch(random, opset, {12}, false, [&](GraphSpecBuilder& graph, uint32_t x) {
    const uint32_t shape = graph.node("Shape", {x}, kInt, {1}, {{"start", int64_t{0}}, {"end", int64_t{1}}});
    const uint32_t three = graph.weight(integers({3})), rows = graph.node("Mul", {shape, three}, kInt, {1});
    const uint32_t wanted =
        graph.node("Concat", {rows, graph.weight(integers({4}))}, kInt, {2}, {{"axis", int64_t{0}}});
    const uint32_t y = graph.node("Reshape", {x, wanted}, {open({-1, 4}, {})}, {{"allowzero", int64_t{0}}});
    graph.output(graph.node("Abs", {y}, {open({-1, 4}, {})}));
  });
}

Runs reductions(Random& random, uint32_t opset) {
  return batch(random, opset, {5}, false, [&](GraphSpecBuilder& graph, uint32_t x) {
    const Attributes attributes = {{"keepdims", int64_t{0}}, {"noop_with_empty_axes", int64_t{0}}};
    graph.output(graph.node("ReduceMean", {x, graph.weight(integers({0}))}, kFloat, {5}, attributes));
    graph.output(graph.node("ReduceMax", {x, graph.weight(integers({1}))}, {open({-1}, {"n"})}, attributes));
  });
}

Runs joined(Random& random, uint32_t opset) {
  GraphSpecBuilder graph(opset);
  const uint32_t a = graph.input(kFloat, {-1, 3}), b = graph.input(kFloat, {-1, 3});
  graph.symbols(a, {"n"});
  graph.symbols(b, {"m"});
  const uint32_t both = graph.node("Concat", {a, b}, {open({-1, 3}, {})}, {{"axis", int64_t{0}}});
  graph.output(graph.node("Neg", {both}, {open({-1, 3}, {})}));
  Runs runs{std::move(graph).graph(), {}};
  for (int run = 0; run < 4; ++run) {
    runs.inputs.push_back(
        {around_zero(random, {random.integer(0, 6), 3}), around_zero(random, {random.integer(1, 6), 3})});
  }
  return runs;
}

const NetworkCase kCases[] = {
    {"elementwise", "dynamic", elementwise},
    {"matmul", "dynamic", matmul},
    {"gemm", "dynamic", gemm},
    {"image", "dynamic", image},
    {"attention", "dynamic", attention},
    {"computed_shape", "dynamic", computed_shape},
    {"reductions", "dynamic", reductions},
    {"joined", "dynamic", joined},
};

}  // namespace

std::span<const NetworkCase> dynamic_networks() {
  return kCases;
}

}  // namespace backplane::conform
