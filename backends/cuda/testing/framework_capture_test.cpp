// SPDX-License-Identifier: Apache-2.0
// Runs in a stream that the framework is capturing: their commands become part of the framework's graph.
#include "testing/captures_fixture.h"
#include "testing/small_model.h"

namespace backplane::cuda::testing {
namespace {

using ::testing::HasSubstr;

class FrameworkCapture : public CapturesTest {
 protected:
  void SetUp() override {
    CapturesTest::SetUp();
    ASSERT_EQ(cuStreamCreate(&queue_, CU_STREAM_DEFAULT), CUDA_SUCCESS);
  }
  void TearDown() override {
    EXPECT_EQ(cuStreamDestroy(queue_), CUDA_SUCCESS);
    CapturesTest::TearDown();
  }
  Stream stream_of(const Environment& env) const {
    const bp_native_t native{sizeof native, BP_NATIVE_CUDA_STREAM, reinterpret_cast<uint64_t>(queue_)};
    return env.stream(device_id(env), &native);
  }
  void begin(CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL) const {
    ASSERT_EQ(cuStreamBeginCapture(queue_, mode), CUDA_SUCCESS);
  }
  // Ends the capture, which must be valid, and launches the graph as often as `check` returns true. `check` is called
  // before each launch and after the last.
  template <class Check>
  void end_and_launch(const Check& check) const {
    CUgraph graph = nullptr;
    CUgraphExec executable = nullptr;
    ASSERT_EQ(cuStreamEndCapture(queue_, &graph), CUDA_SUCCESS);
    ASSERT_EQ(cuGraphInstantiate(&executable, graph, 0), CUDA_SUCCESS);
    while (check()) {
      EXPECT_EQ(cuGraphLaunch(executable, queue_), CUDA_SUCCESS);
      EXPECT_EQ(cuStreamSynchronize(queue_), CUDA_SUCCESS);
    }
    EXPECT_EQ(cuGraphExecDestroy(executable), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
  }
  void expect_valid() const {
    CUgraph graph = nullptr;
    EXPECT_EQ(cuStreamEndCapture(queue_, &graph), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
  }

  CUstream queue_ = nullptr;
};

// The runs of two sessions become one graph. The second session reads the result of the first.
TEST_F(FrameworkCapture, GetsTheCommandsOfTheRunsInIt) {
  const Environment env = FrameworkCapture::env();
  const Case one = product_and_kernels();
  const Case two{"second", {kRows, kColumns}, [](Steps& add, uint32_t x) {
                   return add("MatMul", {add("Relu", {x}), add.weight({kColumns, kColumns}, 7)});
                 }};
  const Floats x = floats(one.x), y = floats({kRows, kColumns}), z = floats({kRows, kColumns});
  for (const auto mode : {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL}) {
    for (const int warm : {1, 3}) {
      Exec first = bound_to(env, one, x, y), second = bound_to(env, two, y, z);
      const Stream stream = stream_of(env);
      RunOptions how;
      how.stream = &stream;
      for (int i = 0; i < warm; ++i)
        for (Exec* exec : {&first, &second}) exec->run(how);
      stream.wait();
      const std::map<std::string, int64_t> before = objects();
      begin(mode);
      const Calls calls;
      for (Exec* exec : {&first, &second}) exec->run(how);
      EXPECT_EQ(calls.graphs(), 0u);
      EXPECT_EQ(calls.captures(), 0u);
      EXPECT_EQ(calls.waits(), 0u);
      EXPECT_EQ(calls.allocations(), 0u);
      EXPECT_EQ(calls.of("cublasLtMatmul"), 2u);
      EXPECT_EQ(objects(), before);
      int seed = 0;
      end_and_launch([&] {
        if (seed > 0)
          expect_near(z.read(), expected(env, two, Tensor::of<float>({kRows, kColumns}, y.read())), two.bound);
        if (seed > 0) expect_near(y.read(), expected(env, one, numbers(one.x, seed)), one.bound);
        x.write(numbers(one.x, ++seed));
        std::memset(z.data(), 0, z.count() * sizeof(float));
        return seed < 4;
      });
      for (Exec* exec : {&first, &second}) exec->run(how);  // runs after the capture work as before it
      stream.wait();
      expect_near(y.read(), expected(env, one, numbers(one.x, 4)), one.bound);
    }
  }
}

// The exec's arena and its buffer for the unaligned input are replaced while the graph exists.
TEST_F(FrameworkCapture, MayBeLaunchedAfterOtherBindings) {
  const Environment env = FrameworkCapture::env();
  Exec exec = env.compile(gpu::testing::small_model(), only("cuda")).exec();
  Exec cpu = env.compile(gpu::testing::small_model(), only("cpu")).exec();
  const Stream stream = stream_of(env);
  RunOptions how;
  how.stream = &stream;
  const Floats whole = floats({3 * 8 + 1}), y = floats({3, 8}), large_x = floats({70, 8}), large_y = floats({70, 8});
  const Floats x{whole.address + sizeof(float), {3, 8}};
  bind(env, exec, 0, {whole.address, {3, 8}}, sizeof(float));
  bind(env, exec, BP_SLOT_OUTPUT, y);
  exec.run(how);
  stream.wait();
  begin();
  exec.run(how);
  int seed = 0;
  end_and_launch([&] {
    if (seed == 0) {
      bind(env, exec, 0, large_x);
      bind(env, exec, BP_SLOT_OUTPUT, large_y);
      exec.run(how);
      stream.wait();
    } else {
      cpu.bind("x", gpu::testing::small_input(3, seed));
      cpu.run();
      expect_near(y.read(), cpu.output(0u).values<float>(), 1e-5f);
    }
    x.write(gpu::testing::small_input(3, ++seed));
    std::memset(y.data(), 0, y.count() * sizeof(float));
    return seed < 4;
  });
}

TEST_F(FrameworkCapture, ARunWithDoneEndsAtOnce) {
  const Environment env = FrameworkCapture::env();
  const Case one = product_and_kernels();
  Exec exec = bound_to(env, one, floats(one.x), floats({kRows, kColumns}));
  const Stream stream = stream_of(env);
  bp_run_t run{};
  run.size = sizeof run;
  run.stream = stream.get();
  bp_status_t ended = BP_TIMED_OUT;
  run.self = &ended;
  run.done = [](void* self, bp_status_t status, const bp_error_t*) { *static_cast<bp_status_t*>(self) = status; };
  ASSERT_EQ(api().exec_run(exec.get(), &run, nullptr), BP_OK);
  stream.wait();
  EXPECT_EQ(ended, BP_OK);
  ended = BP_TIMED_OUT;
  begin();
  EXPECT_EQ(api().exec_run(exec.get(), &run, nullptr), BP_OK);
  EXPECT_EQ(ended, BP_OK);
  expect_valid();
}

// What cannot be captured is refused before the capture gets any of it, and leaves the capture valid.
TEST_F(FrameworkCapture, IsNotDisturbedByWhatIsRefused) {
  const Environment env = FrameworkCapture::env();
  const Case one = product_and_kernels();
  const Floats x = floats(one.x), y = floats({kRows, kColumns});
  Exec exec = bound_to(env, one, x, y);
  const Stream stream = stream_of(env);
  RunOptions how;
  how.stream = &stream;
  const auto expect_refused = [&](bp_status_t status, const char* text, const RunOptions& options) {
    begin();
    const Calls calls;
    const Error refused = failure([&] { exec.run(options); });
    EXPECT_EQ(refused.status(), status);
    EXPECT_THAT(refused.text(), HasSubstr(text));
    EXPECT_EQ(calls.launches() + calls.graphs() + calls.waits() + calls.allocations(), 0u);
    expect_valid();
  };
  // A run outside of the stream makes the plan and prepares the bindings, as a capture requires.
  const Semaphore host;
  const NativeSemaphore native(env.get(), device_id(env));
  exec.run();
  RunOptions waits = how, signals = how;
  waits.waits = {native.at(1)};
  signals.signals = {native.at(2)};
  expect_refused(BP_UNSUPPORTED, "cannot wait for semaphores or signal them", waits);
  expect_refused(BP_UNSUPPORTED, "cannot wait for semaphores or signal them", signals);
  begin();
  EXPECT_THAT(failure([&] { stream.wait(); }).text(), HasSubstr("end the capture"));
  expect_valid();
  // New memory needs a run before the capture.
  const Floats other = floats(one.x);
  bind(env, exec, 0, other);
  expect_refused(BP_BAD_STATE, "once before the capture", how);
  other.write(numbers(one.x, 3));
  exec.run(how);
  stream.wait();
  expect_near(y.read(), expected(env, one, numbers(one.x, 3)), one.bound);
  // The copies that host memory needs cannot be captured.
  exec.bind("x", numbers(one.x, 4));
  exec.run(how);
  stream.wait();
  expect_refused(BP_UNSUPPORTED, "bind device memory", how);
  exec.run(how);
  stream.wait();
  expect_near(y.read(), expected(env, one, numbers(one.x, 4)), one.bound);
}

// While another stream is captured, the default stream cannot be used.
TEST_F(FrameworkCapture, OfAnotherStreamBlocksTheDefaultStream) {
  const Environment env = FrameworkCapture::env();
  const Case one = product_and_kernels();
  Exec exec = bound_to(env, one, floats(one.x), floats({kRows, kColumns}));
  const bp_native_t native{sizeof native, BP_NATIVE_CUDA_STREAM, 0};
  const Stream stream = env.stream(device_id(env), &native);
  RunOptions how;
  how.stream = &stream;
  for (int i = 0; i < 3; ++i) exec.run(how);
  stream.wait();
  begin();
  EXPECT_EQ(failure([&] { exec.run(how); }).status(), BP_BAD_STATE);
  expect_valid();
  exec.run(how);
  stream.wait();
}

}  // namespace
}  // namespace backplane::cuda::testing
