// SPDX-License-Identifier: Apache-2.0
// Tests Backplane's own ONNXIFI library in the role of a vendor's library.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "testing/library_fixture.h"

namespace onnxifi_test {
namespace {

using ::testing::ElementsAre;

// The name of the device under which Backplane's own ONNXIFI library reports the CPU, or "none".
std::string inner_cpu(const Environment& env) {
  for (const Device& device : env.devices()) {
    if (view::text(device.info.name).substr(0, 14) == "Backplane cpu:") return device.name;
  }
  return "none";
}

// Backplane's own library, used as a vendor's, finds and opens backends itself, which takes long on a busy machine.
class OnnxifiRoundTrip : public ::testing::Test {
 protected:
  void SetUp() override { setenv("BACKPLANE_SCAN_TIMEOUT_MS", "100000", 1); }
  void TearDown() override { unsetenv("BACKPLANE_SCAN_TIMEOUT_MS"); }
};

TEST_F(OnnxifiRoundTrip, FindsTheDevicesOfTheLoaderOnceAndRunsOnThem) {
  const Environment env = vendor("backplane");
  for (const Device& device : env.devices())
    EXPECT_EQ(view::text(device.info.name).find("Backplane onnxifi"), std::string_view::npos);
  Exec exec = env.compile(dense(), on(inner_cpu(env))).exec();
  exec.bind(0, Tensor::of<float>({2, 2}, {1, 0, 0, 1}));
  exec.run();
  EXPECT_THAT(values(exec.output(0)), ElementsAre(0, 12, 0, 14));
}

std::string property(const Device& device, std::string_view name) {
  for (uint32_t i = 0; i < device.info.property_count; ++i) {
    const bp_option_t& each = device.info.properties[i];
    if (view::text(each.name) == name) return std::string(view::text(each.value));
  }
  return "none";
}

TEST_F(OnnxifiRoundTrip, ReportsTheVersionsThatTheLoaderKnows) {
  const Environment env = vendor("backplane");
  const Device device = env.devices().back();
  EXPECT_EQ(property(device, "onnxifi.ir_versions"), "3 4 5 6 7 8 9 10 11 12 13 14");
  EXPECT_EQ(property(device, "onnxifi.opsets"), "ai.onnx:28 ai.onnx.ml:5 ai.onnx.preview.training:1 com.microsoft:1");
  EXPECT_EQ(property(device, "onnxifi.extensions"), "onnx_extension_function onnxSetIOAndRunGraph");
}

std::vector<float> results(const Environment& env, const Model& model, const std::string& device) {
  Exec exec = env.compile(model, on(device)).exec();
  Tensor x(BP_DTYPE_FLOAT, model.graph().input(0).extents());
  auto* const data = static_cast<float*>(x.data());
  for (uint64_t i = 0; i < x.count(); ++i) data[i] = std::sin(static_cast<float>(i % 1000));
  exec.bind(0, x);
  exec.run();
  return values(exec.output(0));
}

// Options that run the backend in a process of its own, with the strict sandbox. It forbids starting programs, so the
// loader in the library uses Backplane's plugins without a probe.
std::map<std::string, std::string> isolated() {
  return {{"loader.isolate", "onnxifi"}, {"loader.isolate_paths", BACKPLANE_BUILD_DIR}};
}

TEST_F(OnnxifiRoundTrip, RunsResnetWithTheResultsOfTheCpuBackend) {
  const char* const data = std::getenv("BACKPLANE_DATA");
  const std::string home = std::getenv("HOME") == nullptr ? "" : std::getenv("HOME");
  const std::string file = (data != nullptr ? data : home + "/.cache/backplane") + "/light/resnet50/model.onnx";
  if (!fs::exists(file)) GTEST_SKIP() << file << " is missing: run scripts/setup.sh";
  for (const auto& options : {std::map<std::string, std::string>(), isolated()}) {
    const Environment env = vendor("backplane", options);
    const Model model = env.open(file);
    EXPECT_EQ(results(env, model, inner_cpu(env)), results(env, model, "cpu"));
  }
}

TEST_F(OnnxifiRoundTrip, RunsInAProcessOfItsOwn) {
  const Environment env = vendor("backplane", isolated());
  Exec exec = env.compile(dense(), on(inner_cpu(env))).exec();
  exec.bind(0, Tensor::of<float>({2, 2}, {1, 0, 0, 1}));
  exec.run();
  EXPECT_THAT(values(exec.output(0)), ElementsAre(0, 12, 0, 14));
}

// The backend writes the model in old forms, and the loader in the library upgrades it, so results must not change.
class OldForms : public ::testing::TestWithParam<const char*> {};

TEST_P(OldForms, MeanTheSame) {
  setenv("BACKPLANE_TEST_OPSET", GetParam(), 1);
  const Environment env = vendor("old");
  Graph graph;
  const auto ints = [&](const char* name, const std::vector<int64_t>& numbers) {
    return graph.weight(name, Tensor::of<int64_t>({static_cast<int64_t>(numbers.size())}, numbers));
  };
  const auto number = [&](const char* name, float value) { return graph.weight(name, Tensor::of<float>({}, {value})); };
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {2, 6, 4, 4});
  const uint32_t clipped = graph.node("Clip", "clip", {x, number("low", -0.5f), number("high", 0.75f)});
  const uint32_t padded =
      graph.node("Pad", "pad", {clipped, ints("pads", {1, 1, 1, 1}), number("fill", 2), ints("where", {2, -1})});
  const uint32_t part = graph.node(
      "Slice", "slice", {padded, ints("from", {1, 1}), ints("to", {5, 5}), ints("along", {-2, 3}), ints("by", {1, 1})});
  const uint32_t mean = graph.node("ReduceMean", "mean", {part, ints("axes", {-1})}, {{"keepdims", 0}});
  const uint32_t soft = graph.node("Softmax", "soft", {mean}, {{"axis", -1}});
  const uint32_t wide = graph.node("Unsqueeze", "wide", {soft, ints("at", {-1})});
  const uint32_t sum = graph.node("Add", "sum", {wide, part});
  const uint32_t total = graph.node("ReduceSum", "total", {sum, ints("all", {1, 2})}, {{"keepdims", 1}});
  const Model model = graph.finish({graph.node("Squeeze", "flat", {total, ints("ones", {-2, 1})})});
  EXPECT_EQ(results(env, model, inner_cpu(env)), results(env, model, "cpu"));
}

INSTANTIATE_TEST_SUITE_P(Onnxifi, OldForms, ::testing::Values("7", "8", "9", "10", "11", "13", "17"),
                         [](const auto& info) { return "opset" + std::string(info.param); });

}  // namespace
}  // namespace onnxifi_test
