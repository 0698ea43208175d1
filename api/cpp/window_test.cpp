// SPDX-License-Identifier: Apache-2.0
// Windows, node costs, extents and constants. The expected numbers were computed by hand from ONNX's specification.
#include "backplane/sdk/window.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "abi/testing/plugin_under_test.h"
#include "backplane/sdk/cost.hpp"
#include "backplane/sdk/weights.hpp"

namespace {

using namespace backplane::sdk;
using backplane::testing::TinyGraph;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Windows : public ::testing::Test {
 protected:
  Windows() { graph.node("MaxPool", 22, {graph.input("x", {1, 1, 7, 10})}, {1, 1, -1, -1}); }
  Node node() { return {graph.get(), 0}; }
  void ints(const char* name, const std::vector<int64_t>& values) { graph.attribute(name, values); }
  Window window(const std::vector<int64_t>& kernel) { return window_of(node(), {1, 1, 7, 10}, kernel); }

  TinyGraph graph;
};

TEST_F(Windows, MissingDimensionsComeFirstWithExtentOne) {
  const Window w = window({3, 2});
  EXPECT_EQ(w.dims, 2u);
  EXPECT_THAT(w.in, ElementsAre(1, 7, 10));
  EXPECT_THAT(w.kernel, ElementsAre(1, 3, 2));
  EXPECT_THAT(w.out, ElementsAre(1, 5, 9));
  EXPECT_THAT(w.output_shape(4, 8), ElementsAre(4, 8, 5, 9));
  EXPECT_EQ(w.kernel_size(), 6);
}

TEST_F(Windows, StridesDilationsAndPads) {
  ints("strides", {2, 3});
  ints("dilations", {3, 1});
  ints("pads", {1, 0, 2, 1});
  const Window w = window({3, 2});
  EXPECT_EQ(w.reach(1), 7);
  EXPECT_THAT(w.begin, ElementsAre(0, 1, 0));
  EXPECT_THAT(w.end, ElementsAre(0, 2, 1));
  EXPECT_THAT(w.out, ElementsAre(1, (7 + 3 - 7) / 2 + 1, (10 + 1 - 2) / 3 + 1));
}

TEST_F(Windows, CeilModeKeepsAWindowThatBeginsInTheInput) {
  ints("strides", {2, 4});
  graph.attribute("ceil_mode", int64_t{1});
  EXPECT_THAT(window({2, 2}).out,
              ElementsAre(1, 4, 3));  // the last window along extent 7 ends one element beyond the input
}

TEST_F(Windows, CeilModeKeepsTheOnlyWindowUnlessItIsTooLargeByAStride) {
  ints("strides", {3, 3});
  EXPECT_THROW(window({9, 2}), Error);
  graph.attribute("ceil_mode", int64_t{1});
  EXPECT_THAT(window({9, 12}).out, ElementsAre(1, 1, 1));
  EXPECT_THROW(window({10, 12}), Error);
}

TEST_F(Windows, CeilModeDropsAWindowThatBeginsInThePaddingAtTheEnd) {
  ints("strides", {3, 3});
  ints("pads", {0, 0, 2, 2});
  graph.attribute("ceil_mode", int64_t{1});
  EXPECT_THAT(window({1, 1}).out, ElementsAre(1, 3, 4));
}

TEST_F(Windows, AutoPadSplitsAnOddElement) {
  ints("strides", {2, 2});
  graph.attribute("auto_pad", "SAME_UPPER");
  const Window upper = window({2, 3});
  EXPECT_THAT(upper.out, ElementsAre(1, 4, 5));
  EXPECT_THAT(upper.begin, ElementsAre(0, 0, 0));
  EXPECT_THAT(upper.end, ElementsAre(0, 1, 1));
}

TEST_F(Windows, AutoPadLowerPutsTheOddElementFirst) {
  ints("strides", {2, 2});
  graph.attribute("auto_pad", "SAME_LOWER");
  EXPECT_THAT(window({2, 3}).begin, ElementsAre(0, 1, 1));
}

TEST_F(Windows, ThatDoNotFitAreRefused) {
  EXPECT_THROW(window({8, 1}), Error);
  EXPECT_TRUE(accepted(supports_window(node())));
  ints("strides", {1});
  EXPECT_THAT(supports_window(node()).detail, HasSubstr("strides is [1]"));
}

TEST_F(Windows, OfTransposedConvolutions) {
  ints("strides", {2, 3});
  ints("pads", {1, 0, 0, 1});
  ints("output_padding", {1, 0});
  const Window w = transposed_window(node(), {1, 1, 7, 10}, {3, 3});
  EXPECT_THAT(w.out, ElementsAre(1, 2 * 6 + 1 + 3 - 1, 3 * 9 + 3 - 1));
}

TEST_F(Windows, OfTransposedConvolutionsOfAWantedShape) {
  ints("strides", {2, 2});
  ints("output_shape", {14, 21});
  const Window w = transposed_window(node(), {1, 1, 7, 10}, {3, 4});
  EXPECT_THAT(w.out, ElementsAre(1, 14, 21));
  EXPECT_THAT(w.begin, ElementsAre(0, 1, 1));  // one element too many in each dimension, cut off at its beginning
  EXPECT_THAT(w.end, ElementsAre(0, 0, 0));
}

TEST_F(Windows, OfTransposedConvolutionsNeedPaddingForEachDimension) {
  ints("output_padding", {1});
  EXPECT_THROW(transposed_window(node(), {1, 1, 7, 10}, {3, 3}), Error);
}

TEST_F(Windows, OfTransposedConvolutionsNeedAWantedExtentForEachDimension) {
  ints("output_shape", {1, 14, 21});
  EXPECT_THROW(transposed_window(node(), {1, 1, 7, 10}, {3, 3}), Error);
}

TEST(Cost, CountsMultiplyAddsAsTwo) {
  TinyGraph graph;
  const uint32_t x = graph.input("x", {1, 4, 8, 8}), w = graph.input("w", {6, 2, 3, 3}), a = graph.input("a", {5, 7}),
                 t = graph.input("t", {7, 5}), b = graph.input("b", {7, 3}), open = graph.input("open", {-1, 3});
  graph.node("Conv", 22, {x, w}, {1, 6, 6, 6});
  graph.node("MatMul", 13, {a, b}, {5, 3});
  graph.node("Gemm", 13, {t, b}, {5, 3});
  graph.attribute("transA", int64_t{1});
  graph.node("ConvTranspose", 22, {x, w}, {1, 4, 10, 10});
  graph.node("Relu", 14, {a}, {5, 7});
  graph.node("Relu", 14, {open}, {-1, 3});
  graph.node("Conv", 22, {x, graph.input("some", {6, -1, 3, 3})}, {1, 6, 6, 6});
  graph.node("Conv", 22, {x, graph.input("huge", {1, int64_t{1} << 40, int64_t{1} << 40, 1})}, {1, 1, 8, 8});
  const uint32_t filter = graph.input("filter", {6, 2, -1, -1}), image = graph.input("image", {1, 4, -1, -1});
  graph.node("Conv", 22, {x, filter}, {1, 6, 6, 6});
  graph.node("ConvTranspose", 22, {image, w}, {1, 4, 10, 10});
  const auto of = [&](uint32_t node) { return operations({graph.get(), node}); };
  EXPECT_EQ(of(0), 2.0 * 6 * 6 * 6 * 2 * 3 * 3);
  EXPECT_EQ(of(1), 2.0 * 5 * 3 * 7);
  EXPECT_EQ(of(2), 2.0 * 5 * 3 * 7);
  EXPECT_EQ(of(3), 2.0 * 4 * 8 * 8 * 2 * 3 * 3);
  EXPECT_EQ(of(4), 35);
  for (const uint32_t unknown : {5, 6, 8, 9}) EXPECT_EQ(of(unknown), 0) << unknown;
  EXPECT_EQ(of(7), 2.0 * 64 * 0x1p80);
  EXPECT_EQ(bytes_moved({graph.get(), 1}), 4.0 * (5 * 7 + 7 * 3 + 5 * 3));
  EXPECT_EQ(bytes_moved({graph.get(), 5}), std::nullopt);
}

TEST(Cost, CountsPackedElements) {
  TinyGraph graph;
  graph.node("Identity", 25, {graph.input("x", {6}, BP_DTYPE_INT4)}, {6}, BP_DTYPE_INT4);
  EXPECT_EQ(bytes_moved({graph.get(), 0}), 6.0);
}

TEST(Shapes, BroadcastAndAxes) {
  EXPECT_THAT(broadcast({2, 1, 4}, {3, 1}), ElementsAre(2, 3, 4));
  EXPECT_THAT(broadcast({}, {2}), ElementsAre(2));
  EXPECT_THROW(broadcast({2}, {3}), Error);
  EXPECT_EQ(axis_of(-1, 3), 2u);
  EXPECT_THROW(axis_of(3, 3), Error);
  EXPECT_THROW(axis_of(-4, 3), Error);
  EXPECT_EQ(elements({2, 3, 4}, 1, 3), 12);
}

TEST(Weights, AreReadAtAnyAlignment) {
  TinyGraph graph;
  const uint32_t w = graph.weight("w", {3}, {1.5f, -2, 3}), x = graph.input("x", {3});
  graph.output(w);
  EXPECT_THAT(*weight_elements<float>({graph.get(), w}, BP_DTYPE_FLOAT), ElementsAre(1.5f, -2, 3));
  EXPECT_EQ(weight_elements<double>({graph.get(), w}, BP_DTYPE_DOUBLE), std::nullopt);
  EXPECT_EQ(weight_elements<float>({graph.get(), x}, BP_DTYPE_FLOAT), std::nullopt);
  EXPECT_EQ(weight_ints({graph.get(), w}), std::nullopt);
}

TEST(Weights, NumbersOfEveryTypeThatTheHostHas) {
  const int16_t shorts[] = {-1, 300};
  EXPECT_THAT(host_numbers(BP_DTYPE_INT16, shorts, sizeof shorts), ElementsAre(-1, 300));
  const int32_t ints[] = {-1, 70000};
  EXPECT_THAT(host_ints(BP_DTYPE_INT32, ints, sizeof ints), ElementsAre(-1, 70000));
  EXPECT_THROW(host_ints(BP_DTYPE_INT16, shorts, sizeof shorts), Error);
  EXPECT_THROW(host_numbers(BP_DTYPE_FLOAT16, shorts, sizeof shorts), Error);
  EXPECT_THAT(host_numbers(BP_DTYPE_FLOAT, nullptr, 0), ElementsAre());
}

}  // namespace
