// SPDX-License-Identifier: Apache-2.0
// A small model for the tests of all GPU backends.
#pragma once

#include <cstdint>
#include <vector>

#include "testing/client_fixture.h"

namespace backplane::gpu::testing {

// y = softmax(relu(x w) + b) for x [rows, 8], rows symbolic: a product, formulas and a reduction.
inline Model small_model() {
  Graph graph;
  std::vector<float> w(64), b(8);
  for (size_t i = 0; i < w.size(); ++i) w[i] = static_cast<float>(i * 7 % 11) - 5;
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i);
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {-1, 8}, {"rows", ""});
  const uint32_t p = graph.node("MatMul", "p", {x, graph.weight("w", Tensor::of<float>({8, 8}, w))});
  const uint32_t s =
      graph.node("Add", "s", {graph.node("Relu", "r", {p}), graph.weight("b", Tensor::of<float>({8}, b))});
  return graph.finish({graph.node("Softmax", "y", {s}, {{"axis", -1}})});
}

// Inputs for the model; seeds 0 to 6 produce different inputs.
inline Tensor small_input(int64_t rows, int seed) {
  std::vector<float> x(static_cast<size_t>(rows) * 8);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>((i * 5 + static_cast<size_t>(seed) * 3) % 7) / 8;
  return Tensor::of<float>({rows, 8}, x);
}

}  // namespace backplane::gpu::testing
