// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of matrix products and convolutions: small models with a product or convolution and the operators
// around it, run on the stand-ins.
#pragma once

#include <cmath>
#include <functional>

#include "testing/standin_fixture.h"

namespace backplane::cuda::testing {

inline constexpr int64_t kRows = 24, kInner = 40, kColumns = 32;

// Numbers from -0.5 to 0.5.
inline Tensor numbers(const std::vector<int64_t>& extents, int seed) {
  int64_t count = 1;
  for (const int64_t extent : extents) count *= extent;
  std::vector<float> all(static_cast<size_t>(count));
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = static_cast<float>((i * 37 + static_cast<size_t>(seed) * 11) % 101) / 101 - 0.5f;
  return Tensor::of<float>(extents, all);
}

// Builds a graph step by step, with weights that `numbers` fills.
struct Steps : Graph {
  uint32_t weight(const std::vector<int64_t>& extents, int seed) {
    const std::string name = "w" + std::to_string(++count);
    return Graph::weight(name, numbers(extents, seed));
  }
  uint32_t operator()(const std::string& op, const std::vector<uint32_t>& inputs,
                      const std::map<std::string, AttributeValue>& attributes = {}) {
    NodeOptions how;
    how.attributes = attributes;
    how.name = "n" + std::to_string(++count);
    return Builder::node(op, inputs, how);
  }
  int count = 0;
};

struct Case {
  const char* name;
  std::vector<int64_t> x;  // the extents of the input
  std::function<uint32_t(Steps& add, uint32_t x)> build;
  uint64_t products = 1, kernels = 0;  // in a run: calls of the library, and launches of the engine's kernels
  float bound = 1e-5f;
};

inline Model model_of(const Case& one) {
  Steps steps;
  const uint32_t x = steps.input("x", BP_DTYPE_FLOAT, one.x);
  return steps.finish({one.build(steps, x)});
}

class Products : public StandinTest {
 protected:
  static Exec bound(const Environment& env, const char* device, const Case& one, uint32_t compute_types = 0) {
    SessionOptions how = only(device);
    how.compute_types = compute_types;
    Exec exec = env.compile(model_of(one), how).exec();
    exec.bind("x", numbers(one.x, 0));
    return exec;
  }
  static std::vector<float> results(const Environment& env, const char* device, const Case& one) {
    Exec exec = bound(env, device, one);
    exec.run();
    return exec.output(0u).values<float>();
  }
  static void expect_near(const std::vector<float>& found, const std::vector<float>& expected, float bound) {
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(found[i], expected[i], bound * std::max(1.0f, std::abs(expected[i]))) << i;
  }
};

// The tests of convolutions use the same fixture.
class Convolutions : public Products {};

}  // namespace backplane::cuda::testing
