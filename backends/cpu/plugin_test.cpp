// SPDX-License-Identifier: Apache-2.0
// Tests the backend through the plugin's C ABI.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <thread>

#include "testing/graph_builder.h"
#include "testing/plugin_runner.h"

namespace backplane::cpu::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Floats = std::vector<float>;
using Longs = std::vector<int64_t>;

HostTensor floats(std::vector<int64_t> extents, const Floats& data) {
  return HostTensor::of(BP_DTYPE_FLOAT, std::move(extents), data);
}

Floats counting(int64_t n) {
  Floats data(static_cast<size_t>(n));
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i) - 3;
  return data;
}

class Engine : public ::testing::Test {
 protected:
  Plugin plugin;
};

// Relu may overwrite its input, Reshape shares the memory of its input, and a value in the middle is also an output.
// Memory must not be overwritten while it is still needed.
TEST_F(Engine, SharesMemoryInAChainWithoutLosingValues) {
  GraphBuilder b;
  b.input("x", BP_DTYPE_FLOAT, {2, 3}).weight<int64_t>("shape", BP_DTYPE_INT64, {2}, {3, 2});
  b.node("Neg", 13, {"x"}, {"a"}).node("Relu", 14, {"a"}, {"b"}).node("Reshape", 25, {"b", "shape"}, {"c"});
  b.node("Neg", 13, {"c"}, {"d"}).node("Add", 14, {"d", "c"}, {"e"}).node("Neg", 13, {"e"}, {"f"});
  b.output("c").output("f").output("b");
  Compiled program(plugin, b.graph());
  Outcome run = program.run({floats({2, 3}, {-1, 2, -3, 4, -5, 6})});
  ASSERT_EQ(run.status, BP_OK) << run.text;
  EXPECT_EQ(run.outputs[0].extents, (Longs{3, 2}));
  EXPECT_THAT(run.outputs[0].as<float>(), ElementsAre(1, 0, 3, 0, 5, 0));
  EXPECT_THAT(run.outputs[1].as<float>(), ElementsAre(0, 0, 0, 0, 0, 0));
  EXPECT_THAT(run.outputs[2].as<float>(), ElementsAre(1, 0, 3, 0, 5, 0));
}

TEST_F(Engine, CopiesOutputsThatAreInputsOrConstants) {
  GraphBuilder b;
  b.input("x", BP_DTYPE_FLOAT, {2}).weight<float>("w", BP_DTYPE_FLOAT, {1}, {7});
  b.node("Identity", 25, {"x"}, {"same"}).node("Neg", 13, {"w"}, {"folded"});
  b.output("x").output("w").output("same").output("folded").output("x");
  Compiled program(plugin, b.graph());
  Outcome run = program.run({floats({2}, {1, 2})});
  ASSERT_EQ(run.status, BP_OK) << run.text;
  EXPECT_THAT(run.outputs[0].as<float>(), ElementsAre(1, 2));
  EXPECT_THAT(run.outputs[1].as<float>(), ElementsAre(7));
  EXPECT_THAT(run.outputs[2].as<float>(), ElementsAre(1, 2));
  EXPECT_THAT(run.outputs[3].as<float>(), ElementsAre(-7));
  EXPECT_THAT(run.outputs[4].as<float>(), ElementsAre(1, 2));
}

TEST_F(Engine, PlansAnewForOtherExtents) {
  GraphBuilder b;
  b.input("x", BP_DTYPE_FLOAT, {-2, 2}).weight<float>("w", BP_DTYPE_FLOAT, {2, 1}, {1, 10});
  b.node("MatMul", 13, {"x", "w"}, {"y"}).output("y");
  Compiled program(plugin, b.graph());
  EXPECT_EQ(program.shapes(), BP_SHAPES_COMPUTED);
  for (int64_t rows : {1, 3, 1}) {
    Outcome run = program.run({floats({rows, 2}, counting(rows * 2))});
    ASSERT_EQ(run.status, BP_OK) << run.text;
    EXPECT_EQ(run.outputs[0].extents, (Longs{rows, 1}));
    EXPECT_EQ(run.outputs[0].as<float>().back(),
              static_cast<float>(2 * rows - 2 - 3) + 10 * static_cast<float>(2 * rows - 1 - 3));
  }
}

TEST_F(Engine, FoldsWhatFollowsFromExtents) {
  GraphBuilder b;
  b.input("x", BP_DTYPE_FLOAT, {-2, -3}).weight<int64_t>("flat", BP_DTYPE_INT64, {1}, {-1});
  b.weight<int64_t>("zero", BP_DTYPE_INT64, {1}, {0});
  b.node("Shape", 25, {"x"}, {"s"}, BP_DTYPE_INT64).node("Gather", 13, {"s", "zero"}, {"rows"}, BP_DTYPE_INT64);
  b.node("Concat", 13, {"rows", "flat"}, {"target"}, BP_DTYPE_INT64, {{"axis", int64_t{0}}});
  b.node("Neg", 13, {"x"}, {"n"}).node("Reshape", 25, {"n", "target"}, {"y"}).output("y");
  Compiled program(plugin, b.graph());
  EXPECT_EQ(program.shapes(), BP_SHAPES_COMPUTED);
  Outcome run = program.run({floats({2, 2}, {1, 2, 3, 4})});
  ASSERT_EQ(run.status, BP_OK) << run.text;
  EXPECT_THAT(run.outputs[0].as<float>(), ElementsAre(-1, -2, -3, -4));
}

// The extents of NonZero's result depend on values, so it and the nodes after it are planned during the run.
TEST_F(Engine, PlansDataDependentNodesDuringTheRun) {
  GraphBuilder b;
  b.input("x", BP_DTYPE_FLOAT, {4}).weight<int64_t>("first", BP_DTYPE_INT64, {1}, {0});
  b.node("Relu", 14, {"x"}, {"r"}).node("NonZero", 13, {"r"}, {"where"}, BP_DTYPE_INT64);
  b.node("Squeeze", 25, {"where", "first"}, {"flat"}, BP_DTYPE_INT64)
      .node("Gather", 13, {"r", "flat"}, {"picked"})
      .node("Neg", 13, {"picked"}, {"y"});
  b.output("y").output("r").output("flat");
  Compiled program(plugin, b.graph());
  EXPECT_EQ(program.shapes(), BP_SHAPES_DATA_DEPENDENT);
  for (const Floats& x : {Floats{5, -1, 6, 7}, Floats{-1, -1, -1, 2}}) {
    Outcome run = program.run({floats({4}, x)});
    ASSERT_EQ(run.status, BP_OK) << run.text;
    Floats expected;
    for (float v : x) {
      if (v > 0) expected.push_back(-v);
    }
    EXPECT_EQ(run.outputs[0].as<float>(), expected);
    EXPECT_EQ(run.outputs[0].extents, Longs{static_cast<int64_t>(expected.size())});
  }
}

TEST_F(Engine, RunsInstancesSideBySide) {
  constexpr int64_t kSide = 96;
  GraphBuilder b;
  Floats weights(kSide * kSide);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i % 7) - 3;
  b.input("x", BP_DTYPE_FLOAT, {-2, kSide}).weight<float>("w", BP_DTYPE_FLOAT, {kSide, kSide}, weights);
  b.node("MatMul", 13, {"x", "w"}, {"a"}).node("Relu", 14, {"a"}, {"y"}).output("y");
  Compiled program(plugin, b.graph());
  auto work = [&](int64_t rows) {
    HostTensor x = floats({rows, kSide}, counting(rows * kSide));
    Floats expected = program.run({x}).outputs[0].as<float>();
    for (int i = 0; i < 30; ++i) {
      if (program.run({x}).outputs[0].as<float>() != expected) return false;
    }
    return true;
  };
  std::vector<int> good(4);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < good.size(); ++t)
    threads.emplace_back([&, t] { good[t] = work(static_cast<int64_t>(40 + 10 * (t / 2))); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(good, ::testing::Each(1));
}

TEST_F(Engine, ConvolutionEqualsItsDefinition) {
  // Groups, strides, dilation, uneven padding and a bias, with enough channels for several threads.
  constexpr int64_t kIn = 32, kOut = 64, kSide = 9, kGroups = 2;
  GraphBuilder b;
  Floats w(kOut * kIn / kGroups * 9), bias(kOut), x(2 * kIn * kSide * kSide);
  for (size_t i = 0; i < w.size(); ++i) w[i] = static_cast<float>(static_cast<int>(i * 7 % 11) - 5) / 8;
  for (size_t i = 0; i < bias.size(); ++i) bias[i] = static_cast<float>(i);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(static_cast<int>(i * 5 % 13) - 6) / 4;
  b.input("x", BP_DTYPE_FLOAT, {2, kIn, kSide, kSide})
      .weight<float>("w", BP_DTYPE_FLOAT, {kOut, kIn / kGroups, 3, 3}, w)
      .weight<float>("b", BP_DTYPE_FLOAT, {kOut}, bias);
  b.node("Conv", 22, {"x", "w", "b"}, {"y"}, BP_DTYPE_FLOAT,
         {{"group", kGroups}, {"strides", Longs{2, 1}}, {"dilations", Longs{1, 2}}, {"pads", Longs{1, 2, 0, 1}}})
      .output("y");
  Compiled program(plugin, b.graph());
  Outcome run = program.run({floats({2, kIn, kSide, kSide}, x)});
  ASSERT_EQ(run.status, BP_OK) << run.text;
  ASSERT_EQ(run.outputs[0].extents, (Longs{2, kOut, 4, 8}));
  Floats y = run.outputs[0].as<float>();
  size_t at = 0;
  for (int64_t n = 0; n < 2; ++n)
    for (int64_t oc = 0; oc < kOut; ++oc)
      for (int64_t oy = 0; oy < 4; ++oy)
        for (int64_t ox = 0; ox < 8; ++ox, ++at) {
          double sum = bias[static_cast<size_t>(oc)];
          for (int64_t c = 0; c < kIn / kGroups; ++c)
            for (int64_t k = 0; k < 9; ++k) {
              int64_t iy = oy * 2 - 1 + k / 3, ix = ox - 2 + k % 3 * 2;
              if (iy < 0 || iy >= kSide || ix < 0 || ix >= kSide) continue;
              int64_t ic = oc / (kOut / kGroups) * (kIn / kGroups) + c;
              sum += static_cast<double>(x[static_cast<size_t>(((n * kIn + ic) * kSide + iy) * kSide + ix)] *
                                         w[static_cast<size_t>((oc * kIn / kGroups + c) * 9 + k)]);
            }
          ASSERT_NEAR(y[at], sum, 1e-3) << n << "," << oc << "," << oy << "," << ox;
        }
}

TEST_F(Engine, RefusesBadBindings) {
  GraphBuilder b;
  b.input("x", BP_DTYPE_FLOAT, {2, -1}).node("Neg", 13, {"x"}, {"y"}).output("y");
  Compiled program(plugin, b.graph());
  const bp_instance_api_t& api = *plugin.api->instance;
  bp_instance_t* instance = nullptr;
  ASSERT_EQ(api.create(program.program, nullptr, &instance, nullptr), BP_OK);
  auto bind = [&](uint32_t slot, bp_tensor_t tensor, ErrorText* error) {
    bp_binding_t binding{sizeof(binding), slot, &tensor, nullptr};
    return api.bind(instance, &binding, &error->error);
  };
  ErrorText error;
  bp_run_t run{};
  run.size = sizeof(run);
  EXPECT_EQ(api.run(instance, &run, &error.error), BP_BAD_STATE);
  EXPECT_THAT(error.str(), HasSubstr("input 'x' is not bound"));

  HostTensor wrong_type = HostTensor::of<int32_t>(BP_DTYPE_INT32, {2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(bind(0, wrong_type.view(), &error), BP_TYPE_MISMATCH);
  HostTensor wrong_extent = floats({3, 1}, {1, 2, 3});
  EXPECT_EQ(bind(0, wrong_extent.view(), &error), BP_TYPE_MISMATCH);
  HostTensor good = floats({2, 2}, {1, 2, 3, 4});
  bp_tensor_t view = good.view();
  view.buffer.bytes = 15;
  EXPECT_EQ(bind(0, view, &error), BP_BUFFER_TOO_SMALL);
  EXPECT_THAT(error.str(), HasSubstr("needs 16 bytes"));
  view = good.view();
  view.buffer.offset += 1;
  EXPECT_EQ(bind(0, view, &error), BP_UNSUPPORTED);
  EXPECT_THAT(error.str(), HasSubstr("is not a multiple of 4"));
  EXPECT_EQ(bind(1, good.view(), &error), BP_INVALID_ARGUMENT);
  EXPECT_EQ(bind(BP_SLOT_SCRATCH, good.view(), &error), BP_INVALID_ARGUMENT);
  int64_t strides[] = {1, 2};
  view = good.view();
  view.layout = BP_LAYOUT_STRIDED;
  view.strides = strides;
  EXPECT_EQ(bind(0, view, &error), BP_UNSUPPORTED);

  // The bound buffer is too small for the result, which only the run detects. With smaller extents, the same binding
  // works.
  HostTensor small = floats({2, 1}, {0, 0});
  ASSERT_EQ(bind(0, good.view(), &error), BP_OK);
  ASSERT_EQ(bind(BP_SLOT_OUTPUT, small.view(), &error), BP_OK);
  EXPECT_EQ(api.run(instance, &run, &error.error), BP_BUFFER_TOO_SMALL);
  const int64_t extents[] = {2, 1};
  const bp_slot_extents_t slot{0, 2, extents};
  ASSERT_EQ(api.extents(instance, &slot, 1, sizeof slot, &error.error), BP_OK);
  ASSERT_EQ(api.run(instance, &run, &error.error), BP_OK) << error.str();
  EXPECT_THAT(small.as<float>(), ElementsAre(-1, -2));
  api.destroy(instance);
}

TEST_F(Engine, LeavesDoneAndSignalsToTheCallerWhenARunFails) {
  GraphBuilder b;
  b.input("x", BP_DTYPE_FLOAT, {1}).node("Neg", 13, {"x"}, {"y"}).output("y");
  Compiled program(plugin, b.graph());
  const bp_instance_api_t& api = *plugin.api->instance;
  bp_instance_t* instance = nullptr;
  ASSERT_EQ(api.create(program.program, nullptr, &instance, nullptr), BP_OK);
  HostTensor x = floats({1}, {1}), y = floats({1}, {0});
  bp_tensor_t x_view = x.view(), y_view = y.view();
  bp_binding_t in{sizeof(in), 0, &x_view, nullptr}, out{sizeof(out), BP_SLOT_OUTPUT, &y_view, nullptr};
  ASSERT_EQ(api.bind(instance, &in, nullptr), BP_OK);
  ASSERT_EQ(api.bind(instance, &out, nullptr), BP_OK);

  uint64_t semaphore[2] = {0, 99};
  bp_point_t signal = bp_host_point(reinterpret_cast<bp_semaphore_t*>(semaphore), 5);
  struct Done {
    int calls = 0;
    bp_status_t status = BP_OK;
  } done;
  bp_run_t run{};
  run.size = sizeof(run);
  run.signals = &signal;
  run.signal_count = 1;
  run.self = &done;
  run.done = [](void* self, bp_status_t status, const bp_error_t*) {
    auto& done = *static_cast<Done*>(self);
    ++done.calls;
    done.status = status;
  };
  ASSERT_EQ(api.run(instance, &run, nullptr), BP_OK);
  EXPECT_THAT(semaphore, ElementsAre(5, BP_OK));
  EXPECT_EQ(done.calls, 1);
  EXPECT_EQ(done.status, BP_OK);
  run.deadline = 1;  // in the past
  signal.value = 6;
  EXPECT_EQ(api.run(instance, &run, nullptr), BP_TIMED_OUT);
  EXPECT_THAT(semaphore, ElementsAre(5, BP_OK));
  run.deadline = 0;
  int token = 0;
  run.cancel = reinterpret_cast<const bp_cancel_t*>(&token);
  EXPECT_EQ(api.run(instance, &run, nullptr), BP_CANCELLED);
  EXPECT_EQ(done.calls, 1);
  api.destroy(instance);
}

TEST_F(Engine, SaysWhyANodeIsRefused) {
  GraphBuilder b;
  b.input("x", BP_DTYPE_FLOAT, {1}).input("s", BP_DTYPE_STRING, {1});
  b.node("NoSuchThing", 1, {"x"}, {"a"})
      .node("Softmax", 1, {"x"}, {"b"})
      .node("Neg", 13, {"s"}, {"c"}, BP_DTYPE_STRING);
  b.node("Neg", 13, {"x"}, {"d"}).node("LRN", 13, {"x"}, {"e"}, BP_DTYPE_FLOAT, {{"size", int64_t{0}}}).output("d");
  b.type("d", BP_DTYPE_FLOAT, {1});
  struct Verdicts {
    std::map<uint32_t, uint32_t> reasons;
    double seconds = 0;
  } received;
  bp_coverage_sink_t sink{
      sizeof(sink), 0, &received,
      [](void* self, const bp_verdict_t* verdicts, uint32_t count, uint32_t stride) {
        auto& received = *static_cast<Verdicts*>(self);
        for (uint32_t i = 0; i < count; ++i) {
          const auto& verdict =
              *reinterpret_cast<const bp_verdict_t*>(reinterpret_cast<const char*>(verdicts) + size_t{i} * stride);
          received.reasons[verdict.node] = verdict.answer == BP_ANSWER_YES ? BP_REASON_NONE : verdict.reason;
          EXPECT_EQ(verdict.answer == BP_ANSWER_YES, verdict.detail.size == 0);
          received.seconds += verdict.seconds;
        }
      },
      nullptr};
  bp_coverage_query_t query{};
  query.size = sizeof(query);
  query.graph = b.graph();
  ASSERT_EQ(plugin.api->coverage->query(plugin.device, &query, &sink, nullptr), BP_OK);
  EXPECT_EQ(received.reasons[0], BP_REASON_OPERATOR);
  EXPECT_EQ(received.reasons[1], BP_REASON_OPSET);
  EXPECT_EQ(received.reasons[2], BP_REASON_DTYPE);
  EXPECT_EQ(received.reasons[3], BP_REASON_NONE);
  EXPECT_EQ(received.reasons[4], BP_REASON_ATTRIBUTE);
  EXPECT_GT(received.seconds, 0);

  Compiled program(plugin, b.graph());
  EXPECT_EQ(program.status, BP_UNSUPPORTED);
  EXPECT_THAT(program.text, HasSubstr("NoSuchThing"));
}

// The trees' numbers may be in tensors, which a model can give any data type.
TEST_F(Engine, RefusesTreesWhoseNumbersAreNot) {
  for (const bp_dtype_t dtype : {BP_DTYPE_BOOL, BP_DTYPE_INT4, BP_DTYPE_FLOAT8E5M2, BP_DTYPE_FLOAT}) {
    GraphBuilder b;
    b.input("x", BP_DTYPE_FLOAT, {1, 1}).weight_bytes("modes", BP_DTYPE_UINT8, {1}, std::string(1, '\0'));
    b.weight_bytes("splits", dtype, {1}, std::string(dtype == BP_DTYPE_FLOAT ? 4 : 1, '\0'));
    b.weight<float>("leaves", BP_DTYPE_FLOAT, {2}, {1, 2});
    const std::vector<int64_t> zero{0}, one{1};
    b.node("ai.onnx.ml::TreeEnsemble", 5, {"x"}, {"y"}, BP_DTYPE_FLOAT,
           {{"n_targets", int64_t{1}},
            {"tree_roots", zero},
            {"nodes_featureids", zero},
            {"nodes_modes", TensorOf{"modes"}},
            {"nodes_splits", TensorOf{"splits"}},
            {"nodes_truenodeids", zero},
            {"nodes_trueleafs", one},
            {"nodes_falsenodeids", one},
            {"nodes_falseleafs", one},
            {"leaf_targetids", std::vector<int64_t>{0, 0}},
            {"leaf_weights", TensorOf{"leaves"}}});
    b.output("y");
    Compiled program(plugin, b.graph());
    if (dtype == BP_DTYPE_FLOAT) {
      EXPECT_EQ(program.status, BP_OK) << program.text;
      const Outcome run = program.run({HostTensor::of<float>(BP_DTYPE_FLOAT, {1, 1}, {1})});
      ASSERT_EQ(run.status, BP_OK) << run.text;
      EXPECT_EQ(run.outputs[0].as<float>(), (std::vector<float>{2}));
    } else {
      EXPECT_EQ(program.status, BP_UNSUPPORTED) << dtype;
      EXPECT_THAT(program.text, HasSubstr("nodes_splits"));
    }
  }
}

// A sample of N dimensions has up to 4^N taps.
TEST_F(Engine, RefusesSamplesOfTooManyTaps) {
  for (const auto& [mode, dimensions, runs] :
       {std::tuple{"linear", 30, false}, {"cubic", 30, false}, {"nearest", 30, true}, {"cubic", 3, true}}) {
    std::vector<int64_t> image(static_cast<size_t>(dimensions) + 2, 1), grid = image;
    grid.back() = dimensions;
    GraphBuilder b;
    b.input("x", BP_DTYPE_FLOAT, image).input("grid", BP_DTYPE_FLOAT, grid);
    b.node("GridSample", 20, {"x", "grid"}, {"y"}, BP_DTYPE_FLOAT,
           {{"mode", mode}, {"padding_mode", "border"}, {"align_corners", int64_t{1}}});
    b.output("y");
    const Outcome run =
        Compiled(plugin, b.graph())
            .run({HostTensor::of<float>(BP_DTYPE_FLOAT, image, {7}),
                  HostTensor::of(BP_DTYPE_FLOAT, grid, std::vector<float>(static_cast<size_t>(dimensions)))});
    ASSERT_EQ(run.status == BP_OK, runs) << mode << ": " << run.text;
    if (runs) {
      EXPECT_FLOAT_EQ(run.outputs[0].as<float>()[0], 7);
    } else {
      EXPECT_THAT(run.text, HasSubstr("taps"));
    }
  }
}

TEST_F(Engine, QuantizesInOneBlockLargerThanAnyExtent) {
  GraphBuilder b;
  b.input("x", BP_DTYPE_INT8, {3}).input("scale", BP_DTYPE_FLOAT, {1});
  b.node("DequantizeLinear", 21, {"x", "scale"}, {"y"}, BP_DTYPE_FLOAT,
         {{"axis", int64_t{0}}, {"block_size", INT64_MAX}});
  b.output("y");
  const Outcome run =
      Compiled(plugin, b.graph()).run({HostTensor::of<int8_t>(BP_DTYPE_INT8, {3}, {1, -2, 3}), floats({1}, {0.5f})});
  ASSERT_EQ(run.status, BP_OK) << run.text;
  EXPECT_EQ(run.outputs[0].as<float>(), (Floats{0.5f, -1, 1.5f}));
}

TEST_F(Engine, NamesTheNodeThatFailsDuringARun) {
  GraphBuilder b;
  b.input("x", BP_DTYPE_FLOAT, {-2})
      .input("y", BP_DTYPE_FLOAT, {-3})
      .node("Neg", 13, {"x"}, {"n"})
      .node("Add", 14, {"n", "y"}, {"z"})
      .output("z");
  Compiled program(plugin, b.graph());
  Outcome run = program.run({floats({2}, {1, 2}), floats({3}, {1, 2, 3})});
  EXPECT_EQ(run.status, BP_TYPE_MISMATCH);
  EXPECT_EQ(run.node, 1u);
  EXPECT_THAT(run.text, HasSubstr("Add"));
}

TEST_F(Engine, RefusesNodesWithoutOutputs) {
  for (const std::vector<std::string>& outputs : {std::vector<std::string>{}, std::vector<std::string>{""}}) {
    GraphBuilder b;
    b.input("x", BP_DTYPE_FLOAT, {4}).node("Split", 13, {"x"}, outputs).node("Neg", 13, {"x"}, {"y"}).output("y");
    const Compiled program(plugin, b.graph());
    EXPECT_EQ(program.status, BP_UNSUPPORTED);
    EXPECT_THAT(program.text, HasSubstr("it has no output"));
  }
}

TEST(Negotiation, RefusesWithAReason) {
  Plugin plugin;
  EXPECT_EQ(plugin.api->version, BP_ABI_VERSION);
  EXPECT_EQ(plugin.api->refusal, BP_OK);
  bp_device_info_t info{};
  info.size = sizeof(info);
  ASSERT_EQ(plugin.api->device->info(plugin.backend, 0, &info, nullptr), BP_OK);
  EXPECT_EQ(info.size, sizeof(info));
  EXPECT_GT(info.memory_bytes, 0u);
  EXPECT_GT(info.name.size, 0u);
  EXPECT_EQ(plugin.api->device->info(plugin.backend, 1, &info, nullptr), BP_NOT_FOUND);

  auto refusal = [&](bp_host_offer_t offer) {
    const bp_plugin_t* answer = plugin.query(&offer);
    EXPECT_EQ(answer->version, 0u);
    EXPECT_NE(answer->refusal_text.size, 0u);
    return answer->refusal;
  };
  EXPECT_EQ(refusal({sizeof(bp_host_offer_t), BP_MAKE_VERSION(2, 0), BP_MAKE_VERSION(2, 4), plugin.api->sanitizer, {}}),
            BP_INCOMPATIBLE);
  EXPECT_EQ(refusal({sizeof(bp_host_offer_t), BP_ABI_VERSION, BP_ABI_VERSION, BP_SANITIZER_MEMORY, {}}),
            BP_INCOMPATIBLE);
  EXPECT_EQ(refusal({4, BP_ABI_VERSION, BP_ABI_VERSION, plugin.api->sanitizer, {}}), BP_INVALID_ARGUMENT);
}

// A product in fp32 may be computed in bf16 where the session allows it and the processor has AMX; the verdict says so.
TEST(Coverage, NamesBf16OnlyWhereItIsAllowed) {
  Plugin plugin;
  GraphBuilder g;
  g.input("x", BP_DTYPE_FLOAT, {20, 24}).weight<float>("b", BP_DTYPE_FLOAT, {24, 32}, std::vector<float>(24 * 32, 1));
  g.node("MatMul", 13, {"x", "b"}, {"p"}).node("Relu", 14, {"p"}, {"y"}).output("y");
  for (const uint32_t allowed : {0u, BP_COMPUTE_TF32, BP_COMPUTE_TF32 | BP_COMPUTE_BF16}) {
    std::vector<uint32_t> types(2, BP_COMPUTE_FP8);
    bp_coverage_sink_t sink{sizeof(sink), 0, &types,
                            [](void* self, const bp_verdict_t* verdicts, uint32_t count, uint32_t stride) {
                              for (uint32_t i = 0; i < count; ++i) {
                                const auto* bytes = reinterpret_cast<const std::byte*>(verdicts) + size_t{i} * stride;
                                const auto& verdict = *reinterpret_cast<const bp_verdict_t*>(bytes);
                                (*static_cast<std::vector<uint32_t>*>(self))[verdict.node] = verdict.compute_types;
                              }
                            },
                            nullptr};
    bp_coverage_query_t query{};
    query.size = sizeof(query);
    query.graph = g.graph();
    query.compute_types = allowed;
    ASSERT_EQ(plugin.api->coverage->query(plugin.device, &query, &sink, nullptr), BP_OK);
    EXPECT_TRUE(types[0] == 0 || types[0] == (allowed & BP_COMPUTE_BF16)) << types[0];
    EXPECT_EQ(types[1], 0u);
  }
}

// A process uses a single instruction set. Its first backend determines it, by the option `instructions` or else by the
// environment variable BACKPLANE_CPU_INSTRUCTIONS.
TEST(Instructions, AreThoseOfTheFirstBackend) {
  const Plugin first("1");
  const char* stated = std::getenv("BACKPLANE_CPU_INSTRUCTIONS");
  const Plugin same("1", {{"instructions", stated != nullptr ? stated : "AVX512_AMX"}});
  EXPECT_EQ(same.status, BP_OK) << same.error;
  const Plugin unknown("1", {{"instructions", "MMX"}});
  EXPECT_EQ(unknown.status, BP_INVALID_ARGUMENT);
  EXPECT_THAT(unknown.error, ::testing::HasSubstr("BASELINE, SSE41, AVX2, AVX2_VNNI, AVX512 or AVX512_AMX"));
#if defined(__x86_64__)
  if (stated != nullptr && std::string_view(stated) == "BASELINE") return;  // there is no lower level
  const Plugin less("1", {{"instructions", "BASELINE"}});
  EXPECT_EQ(less.status, BP_INVALID_ARGUMENT);
  EXPECT_THAT(less.error, ::testing::HasSubstr("already"));
#endif
}

TEST(Instructions, AnEmptyVariableIsNoLimit) {
  const Plugin first("1");  // with the limit of the environment, if it has one
  const char* stated = std::getenv("BACKPLANE_CPU_INSTRUCTIONS");
  const std::string kept = stated != nullptr ? stated : "";
  setenv("BACKPLANE_CPU_INSTRUCTIONS", "", 1);
  const Plugin plugin("1");
  EXPECT_EQ(plugin.status, BP_OK) << plugin.error;
  if (stated != nullptr)
    setenv("BACKPLANE_CPU_INSTRUCTIONS", kept.c_str(), 1);
  else
    unsetenv("BACKPLANE_CPU_INSTRUCTIONS");
}

}  // namespace
}  // namespace backplane::cpu::testing
