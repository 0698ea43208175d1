// SPDX-License-Identifier: Apache-2.0
// Runs through ONNXIFI: locations, fences, events and many runs at once.
#include <algorithm>
#include <filesystem>
#include <thread>

#include "onnxifi/testing/adder.h"

namespace backplane::onnxifi {
namespace {

using namespace backplane::testing::onnx;  // NOLINT(google-build-using-namespace)

TEST_F(Onnxifi, RunsWhenTheInputEventIsSignalled) {
  ASSERT_EQ(set_io(), ONNXIFI_STATUS_SUCCESS);
  for (bool first : {true, false}) {
    c_[0] = 0;
    const onnxEvent ready = event(first);
    const onnxMemoryFenceV1 before = fence(ready);
    onnxMemoryFenceV1 after = fence();
    ASSERT_EQ(onnxRunGraph(graph_, &before, &after), ONNXIFI_STATUS_SUCCESS);
    if (!first) {
      onnxEventState state = 0;
      EXPECT_EQ(onnxGetEventState(after.event, &state), ONNXIFI_STATUS_SUCCESS);
      EXPECT_EQ(state, ONNXIFI_EVENT_STATE_NONSIGNALLED);
      EXPECT_EQ(c_[0], 0);
      EXPECT_EQ(onnxSignalEvent(ready), ONNXIFI_STATUS_SUCCESS);
    }
    EXPECT_EQ(onnxReleaseEvent(ready), ONNXIFI_STATUS_SUCCESS);  // the run keeps alive the objects that it needs
    EXPECT_EQ(onnxWaitEvent(after.event), ONNXIFI_STATUS_SUCCESS);
    onnxEventState state = 0;
    EXPECT_EQ(onnxGetEventState(after.event, &state), ONNXIFI_STATUS_SUCCESS);
    EXPECT_EQ(state, ONNXIFI_EVENT_STATE_SIGNALLED);
    EXPECT_THAT(c_, ::testing::ElementsAre(11, 22, 33));
    EXPECT_EQ(onnxReleaseEvent(after.event), ONNXIFI_STATUS_SUCCESS);
  }
}

TEST_F(Onnxifi, BindsByPositionWhereNamesAreLeftOut) {
  in_[0].name = nullptr;
  in_[1].name = out_[0].name = "";
  ASSERT_EQ(set_io(), ONNXIFI_STATUS_SUCCESS);
  onnxMemoryFenceV1 after = fence();
  ASSERT_EQ(onnxSetIOAndRunGraph(graph_, 2, in_.data(), 1, out_.data(), &after), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(onnxWaitEvent(after.event), ONNXIFI_STATUS_SUCCESS);
  EXPECT_THAT(c_, ::testing::ElementsAre(11, 22, 33));
  EXPECT_EQ(onnxReleaseEvent(after.event), ONNXIFI_STATUS_SUCCESS);
}

TEST_F(Onnxifi, RefusesWrongLocations) {
  struct Case {
    const char* what;
    onnxStatus status;
    std::function<void(std::vector<onnxTensorDescriptorV1>& in, std::vector<onnxTensorDescriptorV1>& out)> spoil;
  };
  static const uint64_t kZero[] = {0}, kFour[] = {4};
  const Case cases[] = {
      {"tag", ONNXIFI_STATUS_UNSUPPORTED_TAG, [](auto& in, auto&) { in[0].tag = 7; }},
      {"name", ONNXIFI_STATUS_INVALID_NAME, [](auto& in, auto&) { in[0].name = "z"; }},
      {"name twice", ONNXIFI_STATUS_INVALID_NAME, [](auto& in, auto&) { in[0].name = "b"; }},
      {"too many", ONNXIFI_STATUS_INVALID_NAME, [](auto& in, auto& out) { in.push_back(out[0]); }},
      {"missing input", ONNXIFI_STATUS_UNIDENTIFIED_NAME, [](auto& in, auto&) { in.pop_back(); }},
      {"data type", ONNXIFI_STATUS_INVALID_DATATYPE, [](auto& in, auto&) { in[0].dataType = 9; }},
      {"no data type", ONNXIFI_STATUS_INVALID_DATATYPE, [](auto& in, auto&) { in[0].dataType = 0; }},
      {"other data type", ONNXIFI_STATUS_MISMATCHING_DATATYPE,
       [](auto& in, auto&) { in[0].dataType = ONNXIFI_DATATYPE_INT32; }},
      {"memory type", ONNXIFI_STATUS_INVALID_MEMORY_TYPE, [](auto& in, auto&) { in[0].memoryType = 3; }},
      {"other memory type", ONNXIFI_STATUS_UNSUPPORTED_MEMORY_TYPE,
       [](auto& in, auto&) { in[0].memoryType = ONNXIFI_MEMORY_TYPE_CUDA_BUFFER; }},
      {"texture", ONNXIFI_STATUS_UNSUPPORTED_MEMORY_TYPE,
       [](auto&, auto& out) { out[0].memoryType = ONNXIFI_MEMORY_TYPE_OPENGLES_TEXTURE_2D; }},
      {"extent 0", ONNXIFI_STATUS_INVALID_SHAPE, [](auto& in, auto&) { in[0].shape = kZero; }},
      {"no extents", ONNXIFI_STATUS_INVALID_SHAPE, [](auto& in, auto&) { in[0].shape = nullptr; }},
      {"rank beyond all", ONNXIFI_STATUS_INVALID_SHAPE, [](auto& in, auto&) { in[0].dimensions = 1000000; }},
      {"other extents", ONNXIFI_STATUS_MISMATCHING_SHAPE, [](auto& in, auto&) { in[0].shape = kFour; }},
      {"other rank", ONNXIFI_STATUS_MISMATCHING_SHAPE, [](auto&, auto& out) { out[0].dimensions = 0; }},
      {"NULL memory", ONNXIFI_STATUS_INVALID_MEMORY_LOCATION, [](auto& in, auto&) { in[0].buffer = 0; }},
  };
  const auto in = in_, out = out_;
  for (const Case& one : cases) {
    in_ = in, out_ = out;
    ASSERT_EQ(set_io(), ONNXIFI_STATUS_SUCCESS);
    one.spoil(in_, out_);
    EXPECT_EQ(set_io(), one.status) << one.what;
    // After an error, the memory set earlier is not used either.
    const onnxEvent ready = event(true);
    const onnxMemoryFenceV1 before = fence(ready);
    onnxMemoryFenceV1 after = fence();
    EXPECT_EQ(onnxRunGraph(graph_, &before, &after), ONNXIFI_STATUS_UNIDENTIFIED_NAME) << one.what;
    EXPECT_EQ(onnxReleaseEvent(ready), ONNXIFI_STATUS_SUCCESS);
  }
  in_ = in, out_ = out;
  EXPECT_EQ(onnxSetGraphIO(graph_, 2, nullptr, 1, out_.data()), ONNXIFI_STATUS_INVALID_POINTER);
  EXPECT_EQ(onnxSetGraphIO(graph_, 2, in_.data(), 1, nullptr), ONNXIFI_STATUS_INVALID_POINTER);
  EXPECT_EQ(onnxSetGraphIO(graph_, 2, in_.data(), 0, out_.data()), ONNXIFI_STATUS_UNIDENTIFIED_NAME);
  EXPECT_EQ(onnxSetGraphIO(backend_, 2, in_.data(), 1, out_.data()), ONNXIFI_STATUS_INVALID_GRAPH);
}

TEST_F(Onnxifi, RefusesWrongFences) {
  ASSERT_EQ(set_io(), ONNXIFI_STATUS_SUCCESS);
  const onnxEvent ready = event(true);
  const onnxMemoryFenceV1 good = fence(ready);
  onnxMemoryFenceV1 after = fence();
  EXPECT_EQ(onnxRunGraph(graph_, nullptr, &after), ONNXIFI_STATUS_INVALID_POINTER);
  EXPECT_EQ(onnxRunGraph(graph_, &good, nullptr), ONNXIFI_STATUS_INVALID_POINTER);
  EXPECT_EQ(onnxRunGraph(nullptr, &good, &after), ONNXIFI_STATUS_INVALID_GRAPH);
  onnxMemoryFenceV1 bad = good;
  bad.tag = 0;
  EXPECT_EQ(onnxRunGraph(graph_, &bad, &after), ONNXIFI_STATUS_UNSUPPORTED_TAG);
  bad = good, bad.type = ONNXIFI_SYNCHRONIZATION_IMPLICIT;
  EXPECT_EQ(onnxRunGraph(graph_, &bad, &after), ONNXIFI_STATUS_UNSUPPORTED_FENCE_TYPE);
  bad = good, bad.type = 77;
  EXPECT_EQ(onnxRunGraph(graph_, &bad, &after), ONNXIFI_STATUS_INVALID_FENCE_TYPE);
  bad = fence();
  EXPECT_EQ(onnxRunGraph(graph_, &bad, &after), ONNXIFI_STATUS_INVALID_EVENT);
  bad = fence(graph_);
  EXPECT_EQ(onnxRunGraph(graph_, &bad, &after), ONNXIFI_STATUS_INVALID_EVENT);
  EXPECT_EQ(after.event, nullptr);
  EXPECT_EQ(onnxSignalEvent(ready), ONNXIFI_STATUS_INVALID_STATE);
  EXPECT_EQ(onnxReleaseEvent(ready), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(onnxReleaseEvent(ready), ONNXIFI_STATUS_INVALID_EVENT);
  EXPECT_EQ(onnxSignalEvent(ready), ONNXIFI_STATUS_INVALID_EVENT);
  EXPECT_EQ(onnxWaitEvent(ready), ONNXIFI_STATUS_INVALID_EVENT);
  onnxEventState state = ONNXIFI_EVENT_STATE_SIGNALLED;
  EXPECT_EQ(onnxGetEventState(ready, &state), ONNXIFI_STATUS_INVALID_EVENT);
  EXPECT_EQ(state, ONNXIFI_EVENT_STATE_INVALID);
  const onnxEvent other = event();
  EXPECT_EQ(onnxGetEventState(other, nullptr), ONNXIFI_STATUS_INVALID_POINTER);
  EXPECT_EQ(onnxReleaseEvent(other), ONNXIFI_STATUS_SUCCESS);
  onnxEvent none = this;
  EXPECT_EQ(onnxInitEvent(nullptr, &none), ONNXIFI_STATUS_INVALID_BACKEND);
  EXPECT_EQ(none, nullptr);
  EXPECT_EQ(onnxInitEvent(backend_, nullptr), ONNXIFI_STATUS_INVALID_POINTER);
}

// ONNXIFI has no descriptors of bool tensors, so a graph cannot have them as inputs or outputs. Between nodes, bool
// tensors are accepted.
TEST_F(Onnxifi, RefusesInputsAndOutputsWithoutADescriptor) {
  const auto dims = {Dim(3)};
  const auto compared = [&](bool is_output) {
    const std::string greater = node("Greater", {"a", "b"}, {"is"}),
                      cast = node("Cast", {"is"}, {"c"}, {int_attribute("to", 1)});
    return model_bytes(
        {{"", 13}},
        graph({greater, cast}, {tensor_value("a", BP_DTYPE_FLOAT, dims), tensor_value("b", BP_DTYPE_FLOAT, dims)},
              {is_output ? tensor_value("is", BP_DTYPE_BOOL, dims) : tensor_value("c", BP_DTYPE_FLOAT, dims)}));
  };
  EXPECT_EQ(init_graph(compared(false)), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(init_graph(compared(true)), ONNXIFI_STATUS_UNSUPPORTED_DATATYPE);
}

TEST_F(Onnxifi, ADimensionOfTheBatchIsGivenWithTheLocations) {
  const std::string model = sum_model("Add", 13, Dim("N"));
  onnxGraph graph = nullptr;
  ASSERT_EQ(onnxInitGraph(backend_, nullptr, model.size(), model.data(), 0, nullptr, &graph), ONNXIFI_STATUS_SUCCESS);
  for (uint64_t n : {uint64_t{1}, uint64_t{2}, uint64_t{3}}) {
    const uint64_t shape[] = {n};
    const onnxTensorDescriptorV1 in[] = {descriptor("a", a_, shape), descriptor("b", b_, shape)};
    const onnxTensorDescriptorV1 out = descriptor("c", c_, shape);
    c_[n - 1] = 0;
    onnxMemoryFenceV1 after = fence();
    ASSERT_EQ(onnxSetIOAndRunGraph(graph, 2, in, 1, &out, &after), ONNXIFI_STATUS_SUCCESS);
    EXPECT_EQ(onnxWaitEvent(after.event), ONNXIFI_STATUS_SUCCESS);
    EXPECT_EQ(c_[n - 1], a_[n - 1] + b_[n - 1]);
    EXPECT_EQ(onnxReleaseEvent(after.event), ONNXIFI_STATUS_SUCCESS);
  }
  const uint64_t two[] = {2};
  const onnxTensorDescriptorV1 in[] = {descriptor("a", a_), descriptor("b", b_, two)};
  EXPECT_EQ(onnxSetGraphIO(graph, 2, in, 1, out_.data()), ONNXIFI_STATUS_MISMATCHING_SHAPE);
  const onnxTensorDescriptorV1 out = descriptor("c", c_, two);  // the inputs have 3
  EXPECT_EQ(onnxSetGraphIO(graph, 2, in_.data(), 1, &out), ONNXIFI_STATUS_MISMATCHING_SHAPE);
  EXPECT_EQ(onnxReleaseGraph(graph), ONNXIFI_STATUS_SUCCESS);
}

// Several runs with different memory are in flight, and several threads wait for them in reverse order.
TEST_F(Onnxifi, ManyRunsAreInFlight) {
  constexpr int kRuns = 8;
  float results[kRuns][kN] = {};
  const onnxEvent ready = event();
  const onnxMemoryFenceV1 before = fence(ready);
  std::vector<onnxMemoryFenceV1> after(kRuns, fence());
  for (int i = 0; i < kRuns; ++i) {
    out_[0] = descriptor("c", results[i - i % 2]);  // runs 0 and 1 write to the same memory, as do 2 and 3, and so on
    ASSERT_EQ(set_io(), ONNXIFI_STATUS_SUCCESS);
    ASSERT_EQ(onnxRunGraph(graph_, &before, &after[i]), ONNXIFI_STATUS_SUCCESS);
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = kRuns - 1; i >= 0; --i) EXPECT_EQ(onnxWaitEvent(after[i].event), ONNXIFI_STATUS_SUCCESS);
    });
  }
  EXPECT_EQ(onnxSignalEvent(ready), ONNXIFI_STATUS_SUCCESS);
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < kRuns; i += 2) EXPECT_THAT(results[i], ::testing::ElementsAre(11, 22, 33));
  EXPECT_EQ(onnxReleaseEvent(ready), ONNXIFI_STATUS_SUCCESS);
  for (const onnxMemoryFenceV1& each : after) EXPECT_EQ(onnxReleaseEvent(each.event), ONNXIFI_STATUS_SUCCESS);
}

// Runs that are not waited for, whose events the program has released, use a bounded number of threads and run in
// order.
TEST_F(Onnxifi, RunsBeyondALimitWaitForOthers) {
  const auto threads = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator());
  };
  constexpr int kRuns = 500;
  const auto before_all = threads();
  std::vector<float> sums(kN * kRuns);
  const onnxEvent ready = event();
  const onnxMemoryFenceV1 before = fence(ready);
  for (int i = 0; i < kRuns; ++i) {  // each run but the first adds b to the result of the one before it
    in_[0] = descriptor("a", i == 0 ? a_ : sums.data() + kN * (i - 1));
    out_[0] = descriptor("c", sums.data() + kN * i);
    ASSERT_EQ(set_io(), ONNXIFI_STATUS_SUCCESS);
    onnxMemoryFenceV1 after = fence();
    ASSERT_EQ(onnxRunGraph(graph_, &before, &after), ONNXIFI_STATUS_SUCCESS);
    EXPECT_EQ(onnxReleaseEvent(after.event), ONNXIFI_STATUS_SUCCESS);
  }
  EXPECT_LT(threads() - before_all, 100);
  EXPECT_EQ(onnxSignalEvent(ready), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(onnxReleaseEvent(ready), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(onnxReleaseGraph(graph_), ONNXIFI_STATUS_SUCCESS);  // waits for all of them
  const std::string model = sum_model();
  ASSERT_EQ(onnxInitGraph(backend_, nullptr, model.size(), model.data(), 0, nullptr, &graph_), ONNXIFI_STATUS_SUCCESS);
  EXPECT_THAT(std::vector(sums.end() - kN, sums.end()), ::testing::ElementsAre(5001, 10002, 15003));
}

// The same struct is the fence before the run and after it.
TEST_F(Onnxifi, AFenceMayBeUsedTwice) {
  ASSERT_EQ(set_io(), ONNXIFI_STATUS_SUCCESS);
  const onnxEvent ready = event(true);
  onnxMemoryFenceV1 both = fence(ready);
  ASSERT_EQ(onnxRunGraph(graph_, &both, &both), ONNXIFI_STATUS_SUCCESS);
  EXPECT_NE(both.event, ready);
  EXPECT_EQ(onnxWaitEvent(both.event), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(c_[2], 33);
  for (const onnxEvent each : {both.event, ready}) EXPECT_EQ(onnxReleaseEvent(each), ONNXIFI_STATUS_SUCCESS);
}

TEST_F(Onnxifi, RefusesMemoryThatIsNotAligned) {
  alignas(float) char bytes[sizeof(float) * (kN + 1)] = {};
  const auto* const odd = reinterpret_cast<const float*>(reinterpret_cast<uintptr_t>(bytes) + 1);
  in_[0] = descriptor("a", odd);
  EXPECT_EQ(set_io(), ONNXIFI_STATUS_INVALID_MEMORY_LOCATION);
  in_[0] = descriptor("a", a_);
  out_[0] = descriptor("c", odd);
  EXPECT_EQ(set_io(), ONNXIFI_STATUS_INVALID_MEMORY_LOCATION);
}

// An output takes the place of an input, or of a part of one, in each of two runs.
TEST_F(Onnxifi, AnOutputMayOverwriteAnInput) {
  struct Case {
    const char* what;
    ptrdiff_t output;                // the index of the first element of c; that of a is 2
    std::vector<float> once, twice;  // all memory after one run, and after two
  };
  const Case cases[] = {
      {"the input itself", 2, {0, 0, 11, 22, 33, 0, 0}, {0, 0, 21, 42, 63, 0, 0}},
      {"its first elements", 1, {0, 11, 22, 33, 3, 0, 0}, {0, 32, 53, 33, 3, 0, 0}},
      {"its last element", 4, {0, 0, 1, 2, 11, 22, 33}, {0, 0, 1, 2, 11, 22, 41}},
      {"all but its first", 3, {0, 0, 1, 11, 22, 33, 0}, {0, 0, 1, 11, 31, 52, 0}},
  };
  for (const char* const device : {"cpu", "null"}) {
    onnxBackend backend = nullptr;
    onnxGraph graph = nullptr;
    const std::string model = sum_model();
    ASSERT_EQ(onnxInitBackend(named(device), nullptr, &backend), ONNXIFI_STATUS_SUCCESS);
    ASSERT_EQ(onnxInitGraph(backend, nullptr, model.size(), model.data(), 0, nullptr, &graph), ONNXIFI_STATUS_SUCCESS);
    for (const Case& one : cases) {
      std::vector<float> memory = {0, 0, 1, 2, 3, 0, 0};
      in_[0] = descriptor("a", memory.data() + 2);
      out_[0] = descriptor("c", memory.data() + one.output);
      ASSERT_EQ(onnxSetGraphIO(graph, 2, in_.data(), 1, out_.data()), ONNXIFI_STATUS_SUCCESS);
      for (const std::vector<float>* expected : {&one.once, &one.twice}) {
        const onnxEvent ready = event(true);
        const onnxMemoryFenceV1 before = fence(ready);
        onnxMemoryFenceV1 after = fence();
        ASSERT_EQ(onnxRunGraph(graph, &before, &after), ONNXIFI_STATUS_SUCCESS);
        EXPECT_EQ(onnxWaitEvent(after.event), ONNXIFI_STATUS_SUCCESS) << device << ", " << one.what;
        EXPECT_EQ(memory, *expected) << device << ", " << one.what;
        EXPECT_EQ(onnxReleaseEvent(after.event), ONNXIFI_STATUS_SUCCESS);
        EXPECT_EQ(onnxReleaseEvent(ready), ONNXIFI_STATUS_SUCCESS);
      }
    }
    EXPECT_EQ(onnxReleaseGraph(graph), ONNXIFI_STATUS_SUCCESS);
    EXPECT_EQ(onnxReleaseBackend(backend), ONNXIFI_STATUS_SUCCESS);
  }
}

// Threads set locations and run in one call, each with its own output. No run may use the locations of another thread.
TEST_F(Onnxifi, SettingLocationsAndRunningIsOneStep) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const float a[kN] = {static_cast<float>(t), 1, 2};
      float c[kN] = {};
      const onnxTensorDescriptorV1 in[] = {descriptor("a", a), descriptor("b", b_)}, out = descriptor("c", c);
      for (int i = 0; i < 1000 && !HasFailure(); ++i) {
        c[0] = -1;
        onnxMemoryFenceV1 after = fence();
        ASSERT_EQ(onnxSetIOAndRunGraph(graph_, 2, in, 1, &out, &after), ONNXIFI_STATUS_SUCCESS);
        EXPECT_EQ(onnxWaitEvent(after.event), ONNXIFI_STATUS_SUCCESS);
        EXPECT_EQ(c[0], static_cast<float>(t) + 10) << "run " << i << " of thread " << t;
        EXPECT_EQ(onnxReleaseEvent(after.event), ONNXIFI_STATUS_SUCCESS);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(Onnxifi, ReleasingAGraphWaitsForItsRuns) {
  const std::string model = sum_model();
  for (int i = 0; i < 50; ++i) {
    onnxGraph graph = nullptr;
    ASSERT_EQ(onnxInitGraph(backend_, nullptr, model.size(), model.data(), 0, nullptr, &graph), ONNXIFI_STATUS_SUCCESS);
    c_[2] = 0;
    onnxMemoryFenceV1 after = fence();
    ASSERT_EQ(onnxSetIOAndRunGraph(graph, 2, in_.data(), 1, out_.data(), &after), ONNXIFI_STATUS_SUCCESS);
    ASSERT_EQ(onnxReleaseGraph(graph), ONNXIFI_STATUS_SUCCESS);
    EXPECT_EQ(c_[2], 33);
    EXPECT_EQ(onnxReleaseGraph(graph), ONNXIFI_STATUS_INVALID_GRAPH);
    EXPECT_EQ(onnxWaitEvent(after.event), ONNXIFI_STATUS_SUCCESS);
    EXPECT_EQ(onnxReleaseEvent(after.event), ONNXIFI_STATUS_SUCCESS);
  }
}

}  // namespace
}  // namespace backplane::onnxifi
