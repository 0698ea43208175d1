// SPDX-License-Identifier: Apache-2.0
// Winograd convolutions have the same results as direct ones, whether or not they are faster on the device.
#include "testing/session.h"

namespace backplane::opencl::testing {
namespace {

using WinogradTest = OpenCl;

struct Sizes {
  int64_t batch, channels, maps, height, width;
};

// relu(conv(x, w) + b) with windows of 3 × 3.
Model convolution(const Sizes& s) {
  Graph graph;
  std::vector<float> w(static_cast<size_t>(s.maps * s.channels * 9)), b(static_cast<size_t>(s.maps));
  for (size_t i = 0; i < w.size(); ++i) w[i] = static_cast<float>(i * 7 % 11) - 5;
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i % 5);
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {s.batch, s.channels, s.height, s.width});
  const uint32_t weights = graph.weight("w", Tensor::of<float>({s.maps, s.channels, 3, 3}, w));
  const uint32_t bias = graph.weight("b", Tensor::of<float>({s.maps}, b));
  return graph.finish({graph.node("Relu", "y", {graph.node("Conv", "c", {x, weights, bias})})});
}

std::vector<float> result_of(const Sizes& s, const Environment& env, const SessionOptions& how) {
  std::vector<float> x(static_cast<size_t>(s.batch * s.channels * s.height * s.width));
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 5 % 13) - 6;
  Exec exec = env.compile(convolution(s), how).exec();
  exec.bind("x", Tensor::of<float>({s.batch, s.channels, s.height, s.width}, x));
  exec.run();
  return exec.output(0u).values<float>();
}

// Sums of small integers are exact, so all methods have bitwise equal results. The sizes cover tiles that end with an
// image row or beyond it, fewer tiles than a vector has lanes, more tiles than a panel holds, and one to three images.
TEST_F(WinogradTest, WholeNumbersAreExact) {
  const Sizes sizes[] = {
      {1, 3, 5, 3, 3}, {1, 16, 32, 16, 16}, {3, 5, 7, 9, 12}, {2, 8, 33, 4, 37}, {1, 20, 12, 31, 30}};
  const CacheFolder folder;  // the device is measured once, and kernels are compiled once
  const auto results = [&](const Environment& env, const SessionOptions& how) {
    std::vector<std::vector<float>> all;
    for (const Sizes& s : sizes) all.push_back(result_of(s, env, how));
    return all;
  };
  const auto way = [](const char* word) { return opencl({{"opencl.winograd", word}, {"opencl.binaries", "driver"}}); };
  const uint64_t before = cl_layer().created("winograd_output");
  const auto plain = results(way("never"), only_opencl());
  EXPECT_EQ(cl_layer().created("winograd_output"), before);
  const auto transformed = results(way("always"), only_opencl());
  EXPECT_GT(cl_layer().created("winograd_output"), before);
  SessionOptions cpu;
  cpu.devices = {"cpu"};
  const auto right = results(opencl(), cpu);
  for (size_t i = 0; i < std::size(sizes); ++i) {
    SCOPED_TRACE(::testing::Message() << sizes[i].channels << " -> " << sizes[i].maps << " over " << sizes[i].height
                                      << " x " << sizes[i].width);
    EXPECT_EQ(transformed[i], plain[i]);
    EXPECT_EQ(transformed[i], right[i]);
  }
}

TEST_F(WinogradTest, RefusesOtherValues) {
  const Environment env = opencl({{"opencl.winograd", "sometimes"}});
  try {
    env.compile(small_model(), only_opencl());
    FAIL() << "the option was taken";
  } catch (const std::exception& e) {
    EXPECT_NE(std::string(e.what()).find("measured, never or always"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace backplane::opencl::testing
