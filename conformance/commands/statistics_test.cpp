// SPDX-License-Identifier: Apache-2.0
#include "commands/statistics.h"

#include <gtest/gtest.h>

#include <cstring>

namespace backplane::conform {
namespace {

onnx::Value floats(const std::vector<float>& numbers) {
  onnx::Value value;
  value.tensor.dtype = BP_DTYPE_FLOAT;
  value.tensor.extents = {static_cast<int64_t>(numbers.size())};
  value.tensor.bytes.resize(numbers.size() * sizeof(float));
  std::memcpy(value.tensor.bytes.data(), numbers.data(), value.tensor.bytes.size());
  return value;
}

std::vector<float> alternating(float even, float odd) {
  std::vector<float> numbers(400);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = i % 2 == 0 ? even : odd;
  return numbers;
}

TEST(Statistics, HalfOfFairDrawsAreOnes) {
  Draws draws(Distribution::kBernoulli, {floats(std::vector<float>(400, 0.5f))});
  EXPECT_EQ(draws.add({floats(alternating(0, 1))}), "");
  EXPECT_EQ(draws.fault(), "");
}

TEST(Statistics, AConstantGeneratorIsCaught) {
  Draws draws(Distribution::kBernoulli, {floats(std::vector<float>(400, 0.5f))});
  EXPECT_EQ(draws.add({floats(std::vector<float>(400, 1.0f))}), "");
  EXPECT_NE(draws.fault(), "");
}

TEST(Statistics, EqualRunsAreACoincidenceOnlyIfLittleIsLeftToChance) {
  Draws fair(Distribution::kBernoulli, {floats({0.5f})}), certain(Distribution::kBernoulli, {floats({1.0f})});
  for (int run = 0; run < 64; ++run) {
    EXPECT_EQ(fair.must_vary(), false);
    EXPECT_EQ(fair.add({floats({1.0f})}), "");
    EXPECT_EQ(certain.add({floats({1.0f})}), "");
  }
  EXPECT_FALSE(certain.must_vary());
  Draws many(Distribution::kBernoulli, {floats(std::vector<float>(10, 0.5f))});
  for (int run = 0; run < 64; ++run) EXPECT_EQ(many.add({floats(std::vector<float>(10, 1.0f))}), "");
  EXPECT_TRUE(many.must_vary());
}

TEST(Statistics, ImpossibleValuesAreCaughtAtOnce) {
  Draws draws(Distribution::kBernoulli, {floats({0.0f, 0.5f})});
  EXPECT_NE(draws.add({floats({1.0f, 0.0f})}), "");
  EXPECT_NE(draws.add({floats({0.0f, 0.25f})}), "");
}

TEST(Statistics, DropoutScalesKeptElements) {
  const std::vector<onnx::Value> inputs = {floats(std::vector<float>(400, 3.0f)), floats({0.5f})};
  Draws draws(Distribution::kDropout, inputs);
  EXPECT_EQ(draws.add({floats(alternating(0, 6)), floats(alternating(0, 1))}), "");
  EXPECT_EQ(draws.fault(), "");
  EXPECT_NE(draws.add({floats(alternating(0, 3)), floats(alternating(0, 1))}), "");  // not scaled
  EXPECT_NE(draws.add({floats(alternating(0, 6)), floats(alternating(1, 0))}), "");  // disagrees with the mask
}

}  // namespace
}  // namespace backplane::conform
