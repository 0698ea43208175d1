// SPDX-License-Identifier: Apache-2.0
// Tests what the SDK does itself for runs and bindings: their order, and the refusal of those that cannot work.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/sdk_fixture.h"

namespace backplane::sdk::testing {
namespace {

using ::testing::HasSubstr;

// If a run is refused or fails, the host advances the signals and calls `done`. If it succeeds, the instance does.
TEST_F(Sdk, OrdersARun) {
  TinyGraph graph;
  bp_program_t* program = compile(graph);
  bp_instance_t* instance = nullptr;
  ASSERT_EQ(plugin->instance->create(program, nullptr, &instance, &detail.error), BP_OK);
  std::vector<float> data(6);
  const int64_t extents[] = {2, 3};
  bp_tensor_t tensor{sizeof tensor, BP_DTYPE_FLOAT, 2, 0, extents, nullptr, {0, 0, 0, nullptr, data.data(), 0, 24}};
  bp_binding_t in{sizeof in, 0, &tensor, nullptr}, out{sizeof out, BP_SLOT_OUTPUT, &tensor, nullptr};
  EXPECT_EQ(plugin->instance->bind(instance, &in, &detail.error), BP_OK);

  int done = 0;
  bp_run_t run{};
  run.size = sizeof run;
  run.self = &done;
  run.done = [](void* self, bp_status_t status, const bp_error_t*) {
    *static_cast<int*>(self) += status == BP_OK ? 1 : 100;
  };
  EXPECT_EQ(plugin->instance->run(instance, &run, &detail.error), BP_BAD_STATE);
  EXPECT_THAT(detail.text(), HasSubstr("output 'Relu0' is not bound"));
  EXPECT_EQ(plugin->instance->bind(instance, &out, &detail.error), BP_OK);
  EXPECT_EQ(plugin->instance->run(instance, &run, &detail.error), BP_OK);
  EXPECT_EQ(done, 1);
  on_health = [] { throw Error(BP_DEVICE_LOST, "gone"); };
  EXPECT_EQ(plugin->instance->run(instance, &run, &detail.error), BP_DEVICE_LOST);
  run.deadline = 1;  // ns after the clock's start: long past
  EXPECT_EQ(plugin->instance->run(instance, &run, &detail.error), BP_TIMED_OUT);
  EXPECT_EQ(done, 1);
  plugin->instance->destroy(instance);
  plugin->program->destroy(program);
}

// An instance that does not override `submit` refuses concurrent runs, native points and streams.
TEST_F(Sdk, RefusesRunsThatItCannotOrder) {
  TinyGraph graph;
  bp_program_t* program = compile(graph);
  bp_instance_t* instance = nullptr;
  ASSERT_EQ(plugin->instance->create(program, nullptr, &instance, &detail.error), BP_OK);
  std::vector<float> data(6);
  const int64_t extents[] = {2, 3};
  bp_tensor_t tensor{sizeof tensor, BP_DTYPE_FLOAT, 2, 0, extents, nullptr, {0, 0, 0, nullptr, data.data(), 0, 24}};
  for (const uint32_t slot : {0u, BP_SLOT_OUTPUT}) {
    const bp_binding_t binding{sizeof binding, slot, &tensor, nullptr};
    ASSERT_EQ(plugin->instance->bind(instance, &binding, &detail.error), BP_OK);
  }
  bp_run_t run{};
  run.size = sizeof run;
  bp_status_t second = BP_OK;
  on_health = [&] { second = plugin->instance->run(instance, &run, &detail.error); };
  EXPECT_EQ(plugin->instance->run(instance, &run, &detail.error), BP_OK);
  EXPECT_EQ(second, BP_BUSY);
  int runs = 0;
  on_health = [&] { ++runs; };
  const bp_point_t native{1, BP_POINT_NATIVE, 0, 1, 0};
  run.signals = &native;
  run.signal_count = 1;
  EXPECT_EQ(plugin->instance->run(instance, &run, &detail.error), BP_UNSUPPORTED);
  run.signals = nullptr;
  EXPECT_EQ(plugin->instance->run(instance, &run, &detail.error), BP_INVALID_ARGUMENT);
  for (const bp_point_t& none : {bp_point_t{0, BP_POINT_HOST, 0, 0, 1}, bp_point_t{1, 0, 0, 0, 1}}) {
    run.signals = &none;
    EXPECT_EQ(plugin->instance->run(instance, &run, &detail.error), BP_INVALID_ARGUMENT);
  }
  const bp_point_t flagged{1, BP_POINT_HOST, 0x80000000u, 0, 1};
  run.signals = &flagged;
  EXPECT_EQ(plugin->instance->run(instance, &run, &detail.error), BP_UNSUPPORTED);
  EXPECT_THAT(detail.text(), HasSubstr("run.signals"));
  run.signal_count = 0;
  run.stream = reinterpret_cast<bp_stream_t*>(&run);
  EXPECT_EQ(plugin->instance->run(instance, &run, &detail.error), BP_UNSUPPORTED);
  EXPECT_EQ(runs, 0);
  tensor.buffer.reserved = 1;
  const bp_binding_t binding{sizeof binding, 0, &tensor, nullptr};
  EXPECT_EQ(plugin->instance->bind(instance, &binding, &detail.error), BP_UNSUPPORTED);
  run.stream = nullptr;
  EXPECT_EQ(plugin->instance->run(instance, &run, &detail.error), BP_OK);
  EXPECT_EQ(runs, 1);
  plugin->instance->destroy(instance);
  plugin->program->destroy(program);
}

TEST_F(Sdk, RefusesBindingsThatNoRunCouldUse) {
  TinyGraph graph;
  graph.output(graph.node("Relu", 14, {graph.input("open", {-1, 3})}, {-1, 3}));
  bp_program_t* program = nullptr;
  bp_compile_t what{};
  what.size = sizeof what;
  what.graph = graph.get();
  ASSERT_EQ(plugin->program->compile(device, &what, &program, &detail.error), BP_OK);
  bp_instance_t* instance = nullptr;
  ASSERT_EQ(plugin->instance->create(program, nullptr, &instance, &detail.error), BP_OK);
  std::vector<float> data(6);
  int64_t extents[] = {2, 3};
  bp_tensor_t tensor{sizeof tensor, BP_DTYPE_FLOAT, 2, 0, extents, nullptr, {0, 0, 0, nullptr, data.data(), 0, 24}};
  bp_binding_t binding{sizeof binding, 0, &tensor, nullptr};
  const auto bind = [&] { return plugin->instance->bind(instance, &binding, &detail.error); };
  EXPECT_EQ(bind(), BP_OK);
  binding.container = reinterpret_cast<bp_container_t*>(&data);
  EXPECT_EQ(bind(), BP_TYPE_MISMATCH);
  binding.container = nullptr;
  binding.slot = BP_SLOT_SCRATCH;  // the program needs no scratch memory
  EXPECT_EQ(bind(), BP_INVALID_ARGUMENT);
  binding.slot = 0;
  tensor.buffer.address = nullptr;
  EXPECT_EQ(bind(), BP_BUFFER_TOO_SMALL);
  extents[0] = 0;
  EXPECT_EQ(bind(), BP_OK);
  tensor.buffer.address = data.data();
  for (const int64_t impossible : {int64_t{-1}, INT64_MAX / 8}) {
    extents[0] = impossible;
    EXPECT_EQ(bind(), BP_TYPE_MISMATCH);
  }
  extents[0] = 2;
  tensor.layout = BP_LAYOUT_STRIDED;  // without strides
  EXPECT_EQ(bind(), BP_INVALID_ARGUMENT);
  const int64_t strides[] = {3, 1};
  tensor.strides = strides;
  EXPECT_EQ(bind(), BP_OK);
  plugin->instance->destroy(instance);
  plugin->program->destroy(program);
}

TEST_F(Sdk, NewExtentsMustFitTheStrides) {
  TinyGraph graph;
  graph.output(graph.node("Relu", 14, {graph.input("open", {-1, -1})}, {-1, -1}));
  bp_program_t* program = nullptr;
  bp_compile_t what{};
  what.size = sizeof what;
  what.graph = graph.get();
  ASSERT_EQ(plugin->program->compile(device, &what, &program, &detail.error), BP_OK);
  bp_instance_t* instance = nullptr;
  ASSERT_EQ(plugin->instance->create(program, nullptr, &instance, &detail.error), BP_OK);
  std::vector<float> data(6);
  const int64_t extents[] = {2, 3}, strides[] = {3, 1};
  bp_tensor_t tensor{
      sizeof tensor, BP_DTYPE_FLOAT, 2, BP_LAYOUT_STRIDED, extents, strides, {0, 0, 0, nullptr, data.data(), 0, 24}};
  const bp_binding_t binding{sizeof binding, 0, &tensor, nullptr};
  ASSERT_EQ(plugin->instance->bind(instance, &binding, &detail.error), BP_OK);
  const auto change = [&](int64_t rows, int64_t columns) {
    const int64_t changed[] = {rows, columns};
    const bp_slot_extents_t slot{0, 2, changed};
    return plugin->instance->extents(instance, &slot, 1, sizeof slot, &detail.error);
  };
  EXPECT_EQ(change(1, 3), BP_OK);
  EXPECT_EQ(change(2, 2), BP_TYPE_MISMATCH);
  EXPECT_THAT(detail.text(), HasSubstr("bind it again"));
  plugin->instance->destroy(instance);
  plugin->program->destroy(program);
}

TEST(HostTimeline, FailuresThatFollowEachOtherAreMergedFirst) {
  HostTimeline timeline;
  const Error failure(BP_INTERNAL, "it failed");
  timeline.signal(1, &failure);
  timeline.signal(100, nullptr);
  for (uint64_t value = 101; value <= 140; ++value) timeline.signal(value, &failure);
  for (uint64_t value : {2u, 50u, 100u, 141u}) EXPECT_FALSE(timeline.failure(value)) << value;
  for (uint64_t value : {1u, 101u, 120u, 140u}) EXPECT_TRUE(timeline.failure(value)) << value;
}

}  // namespace
}  // namespace backplane::sdk::testing
