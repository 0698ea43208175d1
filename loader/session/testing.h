// SPDX-License-Identifier: Apache-2.0
// The backends and the model that several session tests use.
#pragma once

#include <string>

#include "testing/client_fixture.h"

namespace backplane {

inline const std::string kCpu = BACKPLANE_BUILD_DIR "/lib/backplane/libbackplane_cpu.so";
inline const std::string kFake = BACKPLANE_BUILD_DIR "/tests/plugins/fake.so";
inline const std::string kOld = BACKPLANE_BUILD_DIR "/tests/plugins/old.so";

// y = relu(x + b). The first dimension is symbolic.
inline Model relu_of_sum() {
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {-1, 2}, {"rows", ""});
  const uint32_t b = graph.weight("b", Tensor::of<float>({2}, {1, -1}));
  return graph.finish({graph.node("Relu", "y", {graph.node("Add", "s", {x, b})})});
}

}  // namespace backplane
