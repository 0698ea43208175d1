// SPDX-License-Identifier: Apache-2.0
// Runs as CUDA graphs: when an instance captures its commands, what a run then costs, and that results and failures are
// the same as without graphs.
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <future>

#include "backplane/sdk.hpp"
#include "testing/captures_fixture.h"
#include "testing/small_model.h"

namespace backplane::cuda::testing {
namespace {

using ::testing::HasSubstr;

constexpr char kFailed[] = "commands are not captured: ";

// y = softmax(w[indices]), for indices that may be out of range.
Model gather() {
  Graph graph;
  const uint32_t x = graph.weight("w", numbers({8, 4}, 3)), i = graph.input("i", BP_DTYPE_INT64, {5});
  const uint32_t rows = graph.node("Gather", "rows", {x, i}, {{"axis", 0}});
  return graph.finish({graph.node("Softmax", "y", {rows}, {{"axis", -1}})});
}
Tensor indices(int64_t last) {
  return Tensor::of<int64_t>({5}, {0, 7, 3, -8, last});
}

// ---- what a run costs -----------------------------------------------------------------------------------------------

TEST_F(CapturesTest, ABoundRunInAStreamIsOneLaunchAndNoWait) {
  const Environment env = CapturesTest::env();
  const Case one = product_and_kernels();
  const Floats x = floats(one.x), y = floats({kRows, kColumns});
  Exec exec = bound_to(env, one, x, y);
  const Stream stream = env.stream(device_id(env));
  RunOptions how;
  how.stream = &stream;
  const auto run = [&](int seed) {
    x.write(numbers(one.x, seed));
    exec.run(how);
    stream.wait();
    expect_near(y.read(), expected(env, one, numbers(one.x, seed)), one.bound);
  };
  Calls calls;
  run(0);
  const uint64_t commands = calls.launches();
  EXPECT_GT(commands, 2u);
  EXPECT_EQ(calls.of("cublasLtMatmul"), 1u);
  EXPECT_EQ(calls.captures(), 0u);
  calls.reset();
  run(1);
  EXPECT_EQ(calls.captures(), 1u);
  EXPECT_EQ(calls.launches(), commands);
  EXPECT_EQ(calls.graphs(), 1u);
  run(2);
  calls.reset();
  for (int i = 0; i < 10; ++i) exec.run(how);
  EXPECT_EQ(calls.graphs(), 10u);
  EXPECT_EQ(calls.launches(), 0u);
  EXPECT_EQ(calls.waits(), 0u);
  EXPECT_EQ(calls.allocations(), 0u);
  EXPECT_EQ(calls.captures(), 0u);
  stream.wait();
}

TEST_F(CapturesTest, ABlockingRunIsOneLaunchToo) {
  const Environment env = CapturesTest::env();
  const Case one = product_and_kernels();
  const Floats x = floats(one.x), y = floats({kRows, kColumns});
  Exec exec = bound_to(env, one, x, y);
  RunOptions limited;
  limited.timeout = std::chrono::seconds(60);
  for (const int seed : {1, 2, 3, 4}) {
    const Calls calls;
    x.write(numbers(one.x, seed));
    exec.run(seed == 4 ? limited : RunOptions());
    EXPECT_EQ(calls.graphs(), seed == 1 ? 0u : 1u);
    EXPECT_EQ(calls.of("cuStreamSynchronize"), 0u);
    if (seed > 2) {
      EXPECT_EQ(calls.launches(), 0u);
    }
    expect_near(y.read(), expected(env, one, numbers(one.x, seed)), one.bound);
  }
}

// The loader copies host memory to and from the device; the kernels between the copies are one launch of a graph.
TEST_F(CapturesTest, HostMemoryIsCopiedAroundTheGraph) {
  const Environment env = CapturesTest::env();
  const Case one = product_and_kernels();
  Exec exec = env.compile(model_of(one), only("cuda")).exec();
  const Tensor x = numbers(one.x, 1);
  exec.bind("x", x);
  exec.run();
  exec.run();
  const Calls calls;
  exec.run();
  EXPECT_EQ(calls.graphs(), 1u);
  EXPECT_EQ(calls.launches(), 0u);
  expect_near(exec.output(0u).values<float>(), expected(env, one, x), one.bound);
}

TEST_F(CapturesTest, OneCommandAloneIsNotCaptured) {
  const Environment env = CapturesTest::env();
  const Case one{"product", {kRows, kInner}, [](Steps& add, uint32_t x) {
                   return add("MatMul", {x, add.weight({kInner, kColumns}, 1)});
                 }};
  Exec exec = bound_to(env, one, floats(one.x), floats({kRows, kColumns}));
  const Calls calls;
  for (int i = 0; i < 3; ++i) exec.run();
  EXPECT_EQ(calls.captures(), 0u);
  EXPECT_EQ(calls.launches(), 3u);
}

TEST_F(CapturesTest, RunsThatAreTimedAreNotCaptured) {
  const Environment env = CapturesTest::env();
  const Case one = product_and_kernels();
  Exec exec = bound_to(env, one, floats(one.x), floats({kRows, kColumns}));
  for (int i = 0; i < 3; ++i) exec.run();
  env.start_trace();
  Calls calls;
  exec.run();
  const std::string trace = env.stop_trace();
  EXPECT_EQ(calls.graphs(), 0u);
  EXPECT_GT(calls.launches(), 2u);
  EXPECT_THAT(trace, HasSubstr("softmax"));
  calls.reset();
  exec.run();
  EXPECT_EQ(calls.graphs(), 1u);
}

TEST_F(CapturesTest, TheOptionTurnsThemOff) {
  const Case one = product_and_kernels();
  const Floats x = floats(one.x), y = floats({kRows, kColumns});
  {
    const Environment env = CapturesTest::env({{"cuda.graphs", "off"}});
    Exec exec = bound_to(env, one, x, y);
    const Calls calls;
    for (int i = 0; i < 3; ++i) exec.run();
    EXPECT_EQ(calls.captures(), 0u);
    EXPECT_EQ(calls.graphs(), 0u);
    imports_.clear();
  }
  const Environment env = CapturesTest::env({{"cuda.graphs", "yes"}});
  const Error refused = failure([&] { env.compile(model_of(one), only("cuda")); });
  EXPECT_EQ(refused.status(), BP_INVALID_ARGUMENT);
  EXPECT_THAT(refused.text(), HasSubstr("on or off"));
}

// ---- results --------------------------------------------------------------------------------------------------------

TEST_F(CapturesTest, ResultsAreBitForBitThoseWithout) {
  const Environment on = CapturesTest::env(), off = CapturesTest::env({{"cuda.graphs", "off"}});
  for (const int64_t rows : {1, 3, 70}) {
    const auto run = [&](const Environment& env) {
      std::vector<float> all;
      Exec exec = env.compile(gpu::testing::small_model(), only("cuda")).exec();
      for (int seed = 0; seed < 4; ++seed) {
        Tensor x = gpu::testing::small_input(rows, 0);
        if (seed == 0) exec.bind("x", x);
        exec.run();
        const std::vector<float> y = exec.output(0u).values<float>();
        all.insert(all.end(), y.begin(), y.end());
      }
      return all;
    };
    EXPECT_EQ(run(on), run(off)) << rows;
  }
  const Case one = product_and_kernels();
  const Floats x = floats(one.x), y = floats({kRows, kColumns}), y_off = floats({kRows, kColumns});
  Exec with = bound_to(on, one, x, y), without = bound_to(off, one, x, y_off);
  for (int seed = 0; seed < 5; ++seed) {
    x.write(numbers(one.x, seed));
    with.run();
    without.run();
    EXPECT_EQ(y.read(), y_off.read());
  }
}

// Binds the same memory with other extents. After each change, the first run enqueues its commands one by one.
TEST_F(CapturesTest, EachExtentHasItsOwnCommands) {
  const Environment env = CapturesTest::env();
  Exec exec = env.compile(gpu::testing::small_model(), only("cuda")).exec();
  Exec cpu = env.compile(gpu::testing::small_model(), only("cpu")).exec();
  const Floats x = floats({70, 8}), y = floats({70, 8});
  for (const int64_t rows : {3, 70, 3, 1, 70}) {
    SCOPED_TRACE(rows);
    const Floats x_rows{x.address, {rows, 8}}, y_rows{y.address, {rows, 8}};
    bind(env, exec, 0, x_rows);
    bind(env, exec, BP_SLOT_OUTPUT, y_rows);
    for (int seed = 0; seed < 3; ++seed) {
      const Tensor input = gpu::testing::small_input(rows, seed);
      cpu.bind("x", input);
      cpu.run();
      x_rows.write(input);
      std::memset(y.data(), 0, y.count() * sizeof(float));
      const Calls calls;
      exec.run();
      EXPECT_EQ(calls.graphs(), seed == 0 ? 0u : 1u);
      expect_near(y_rows.read(), cpu.output(0u).values<float>(), 1e-5f);
    }
  }
}

// ---- bindings -------------------------------------------------------------------------------------------------------

// Alternates between two sets of bindings, as a text decoder with two KV caches does.
TEST_F(CapturesTest, AlternatingBindingsAreCapturedOnceEach) {
  const Environment env = CapturesTest::env();
  const Case one = product_and_kernels();
  struct Pair {
    Floats x, y;
  };
  std::vector<Pair> pairs;
  for (int i = 0; i < 6; ++i) pairs.push_back({floats(one.x), floats({kRows, kColumns})});
  Exec exec = env.compile(model_of(one), only("cuda")).exec();
  // Runs with pair `i` and returns the number of graphs that were launched.
  const auto run = [&](size_t i, int seed) {
    bind(env, exec, 0, pairs[i].x);
    bind(env, exec, BP_SLOT_OUTPUT, pairs[i].y);
    pairs[i].x.write(numbers(one.x, seed));
    std::memset(pairs[i].y.data(), 0, pairs[i].y.count() * sizeof(float));
    const Calls calls;
    exec.run();
    expect_near(pairs[i].y.read(), expected(env, one, numbers(one.x, seed)), one.bound);
    return calls.graphs();
  };
  Calls calls;
  for (int seed = 0; seed < 4; ++seed) run(static_cast<size_t>(seed % 2), seed);
  EXPECT_EQ(calls.captures(), 2u);
  calls.reset();
  for (int seed = 4; seed < 8; ++seed) EXPECT_EQ(run(static_cast<size_t>(seed % 2), seed), 1u);
  EXPECT_EQ(calls.captures(), 0u);
  // Six sets of bindings are more than an instance keeps: each is forgotten before its second run, so it is not
  // captured.
  calls.reset();
  for (int seed = 0; seed < 18; ++seed) run(static_cast<size_t>(seed % 6), seed);
  EXPECT_LE(calls.captures(), 1u);
}

// Memory at an offset that kernels do not accept is copied on the device, by a command of the graph.
TEST_F(CapturesTest, CopiesOnTheDeviceArePartOfTheGraph) {
  const Environment env = CapturesTest::env();
  const Case one = product_and_kernels();
  const Floats x = floats({kRows * kInner + 1}), y = floats({kRows, kColumns});
  const Floats shifted{x.address + sizeof(float), one.x};
  Exec exec = env.compile(model_of(one), only("cuda")).exec();
  bind(env, exec, 0, {x.address, one.x}, sizeof(float));
  bind(env, exec, BP_SLOT_OUTPUT, y);
  for (int seed = 0; seed < 4; ++seed) {
    shifted.write(numbers(one.x, seed));
    const Calls calls;
    exec.run();
    EXPECT_EQ(calls.of("cuMemcpyDtoDAsync_v2"), seed < 2 ? 1u : 0u);
    expect_near(y.read(), expected(env, one, numbers(one.x, seed)), one.bound);
  }
  bind(env, exec, 0, floats(one.x));
  exec.run();
  EXPECT_EQ(standin_objects("executable graphs"), 0);  // destroyed: the graph used the copy's buffer, which is freed
}

TEST_F(CapturesTest, CapturesEndBeforeTheirMemory) {
  const Environment env = CapturesTest::env();
  const Case one = product_and_kernels();
  const Floats x = floats(one.x), y = floats({kRows, kColumns});
  {
    Exec exec = bound_to(env, one, x, y);
    for (int i = 0; i < 3; ++i) exec.run();
    EXPECT_EQ(standin_objects("executable graphs"), 1);
    EXPECT_EQ(standin_objects("graphs"), 0);
    exec.bind("x", numbers(one.x, 1));  // host memory needs other copies, so the loader makes new instances
    EXPECT_EQ(standin_objects("executable graphs"), 0);
    for (int i = 0; i < 3; ++i) exec.run();
    EXPECT_EQ(standin_objects("executable graphs"), 1);
    expect_near(y.read(), expected(env, one, numbers(one.x, 1)), one.bound);
  }
  EXPECT_EQ(standin_objects("executable graphs"), 0);
}

TEST_F(CapturesTest, ARefitIsSeenByTheNextRun) {
  const Environment env = CapturesTest::env();
  const auto compile = [&](const char* device) {
    Graph graph;
    const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {kRows, kInner});
    const uint32_t p = graph.node("MatMul", "p", {x, graph.weight("w", numbers({kInner, kColumns}, 1))});
    SessionOptions how = only(device);
    how.flags |= BP_SESSION_REFIT;
    return env.compile(graph.finish({graph.node("Softmax", "y", {p}, {{"axis", -1}})}), how);
  };
  const Session session = compile("cuda"), reference = compile("cpu");
  Exec exec = session.exec(), other = reference.exec();
  for (Exec* each : {&exec, &other}) each->bind("x", numbers({kRows, kInner}, 0));
  for (const int seed : {1, 2, 3}) {
    for (const Session* each : {&session, &reference}) each->refit("w", numbers({kInner, kColumns}, seed));
    other.run();
    for (int i = 0; i < 3; ++i) {
      exec.run();
      expect_near(exec.output(0u).values<float>(), other.output(0u).values<float>(), 1e-5f);
    }
  }
}

// ---- host memory, bound to an instance as the harness does ----------------------------------------------------------

// An instance of a session's only program, called through the plugin's functions, without the loader's copies.
class PluginInstance {
 public:
  explicit PluginInstance(const Session& session) {
    library_ = dlopen(BACKPLANE_BUILD_DIR "/lib/backplane/libbackplane_cuda.so", RTLD_NOW | RTLD_LOCAL);
    const auto query = reinterpret_cast<bp_plugin_query_t>(dlsym(library_, BP_PLUGIN_SYMBOL));
    const bp_host_offer_t offer{sizeof offer, BP_ABI_VERSION_MIN, BP_ABI_VERSION, sdk::kSanitizer, {}};
    api_ = query(&offer)->instance;
    const bp_program_t* program = nullptr;
    client::detail::call(api().session_plugin_program, session.get(), 0u, &program);
    EXPECT_EQ(api_->create(program, nullptr, &instance_, nullptr), BP_OK);
  }
  PluginInstance(const PluginInstance&) = delete;
  PluginInstance& operator=(const PluginInstance&) = delete;
  ~PluginInstance() {
    api_->destroy(instance_);
    dlclose(library_);
  }
  void bind(uint32_t slot, const std::vector<int64_t>& extents, std::vector<float>& memory) {
    bp_tensor_t tensor{sizeof tensor, BP_DTYPE_FLOAT, static_cast<uint32_t>(extents.size()), BP_LAYOUT_DENSE,
                       extents.data()};
    tensor.buffer.address = memory.data();
    tensor.buffer.bytes = memory.size() * sizeof(float);
    const bp_binding_t binding{sizeof binding, slot, &tensor, nullptr};
    EXPECT_EQ(api_->bind(instance_, &binding, nullptr), BP_OK);
  }
  void run() {
    std::promise<bp_status_t> end;
    bp_run_t run{};
    run.size = sizeof run;
    run.self = &end;
    run.done = [](void* self, bp_status_t status, const bp_error_t*) {
      static_cast<std::promise<bp_status_t>*>(self)->set_value(status);
    };
    ASSERT_EQ(api_->run(instance_, &run, nullptr), BP_OK);
    EXPECT_EQ(end.get_future().get(), BP_OK);
  }
  bp_status_t run_in(const Stream& stream) {
    bp_run_t run{};
    run.size = sizeof run;
    run.stream = stream.plugin_stream();
    return api_->run(instance_, &run, nullptr);
  }

 private:
  void* library_;
  const bp_instance_api_t* api_;
  bp_instance_t* instance_ = nullptr;
};

// Copies from and to pinned memory are part of the graph; other copies are enqueued next to it.
TEST_F(CapturesTest, PinnedMemoryIsCopiedByTheGraph) {
  const Environment env = CapturesTest::env();
  const std::vector<int64_t> large{128, 160};  // 80 KiB, enough to be pinned (Driver::pin)
  for (const bool returns_maxima : {false, true}) {
    const Case one{"maxima", large, [&](Steps& add, uint32_t x) {
                     const uint32_t axes = add.Graph::weight("axes", Tensor::of<int64_t>({1}, {1}));
                     const uint32_t softmax = add("Softmax", {x}, {{"axis", int64_t{-1}}});
                     return returns_maxima ? add("ReduceMax", {softmax, axes})
                                           : add("Mul", {softmax, add("ReduceMax", {x, axes})});
                   }};
    const std::vector<int64_t> y_extents{large[0], returns_maxima ? 1 : large[1]};
    const Session session = env.compile(model_of(one), only("cuda"));
    PluginInstance instance(session);
    std::vector<float> x(128 * 160), other(x.size()), y(returns_maxima ? 128 : 128 * 160);
    instance.bind(0, large, x);
    instance.bind(BP_SLOT_OUTPUT, y_extents, y);
    const auto run = [&](std::vector<float>& from, int seed) {
      std::ranges::copy(numbers(large, seed).values<float>(), from.begin());
      std::fill(y.begin(), y.end(), 0.0f);
      instance.run();
      expect_near(y, expected(env, one, numbers(large, seed)), one.bound);
    };
    for (int seed = 0; seed < 2; ++seed) run(x, seed);
    EXPECT_EQ(standin_objects("executable graphs"), 1);
    EXPECT_EQ(standin_objects("registered"), returns_maxima ? 1 : 2);
    const Calls calls;
    run(x, 2);
    EXPECT_EQ(calls.graphs(), 1u);
    EXPECT_EQ(calls.launches(), 0u);
    EXPECT_EQ(calls.of("cuMemcpyHtoDAsync_v2"), 0u);
    EXPECT_EQ(calls.of("cuMemcpyDtoHAsync_v2"), returns_maxima ? 1u : 0u);
    instance.bind(0, large, other);
    EXPECT_EQ(standin_objects("executable graphs"), 0);  // destroyed before the copy's buffer is freed and `x` unpinned
    for (int seed = 3; seed < 6; ++seed) run(other, seed);
    EXPECT_EQ(standin_objects("executable graphs"), 1);
  }
  EXPECT_EQ(standin_objects("executable graphs"), 0);
}

// The framework could launch its graph when the memory is no longer pinned.
TEST_F(CapturesTest, PinnedMemoryIsNotCopiedByAGraphOfTheFramework) {
  const Environment env = CapturesTest::env();
  const std::vector<int64_t> large{128, 160};
  const Case one{"softmax", large, [](Steps& add, uint32_t x) { return add("Softmax", {x}, {{"axis", int64_t{-1}}}); }};
  const Session session = env.compile(model_of(one), only("cuda"));
  const Stream stream = env.stream(device_id(env));
  std::vector<float> x(128 * 160), y(x.size());
  PluginInstance instance(session);
  instance.bind(0, large, x);
  instance.bind(BP_SLOT_OUTPUT, large, y);
  instance.run();
  EXPECT_EQ(standin_objects("registered"), 2);
  const auto queue = reinterpret_cast<CUstream>(stream.native().handle);
  ASSERT_EQ(cuStreamBeginCapture(queue, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  EXPECT_EQ(instance.run_in(stream), BP_UNSUPPORTED);
  CUgraph graph = nullptr;
  EXPECT_EQ(cuStreamEndCapture(queue, &graph), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
}

// ---- failures -------------------------------------------------------------------------------------------------------

TEST_F(CapturesTest, AnIndexOutOfRangeEndsThatRunOnly) {
  const Environment env = CapturesTest::env();
  Exec exec = env.compile(gather(), only("cuda")).exec();
  const Stream stream = env.stream(device_id(env));
  RunOptions how;
  how.stream = &stream;
  bp_external_t external{};
  external.size = sizeof external;
  external.kind = BP_EXTERNAL_CUDA_POINTER;
  const Floats memory = floats({10}), y = floats({5, 4});
  external.handle = memory.address;
  external.bytes = 5 * sizeof(int64_t);
  const Buffer imported = env.import_memory(device_id(env), external);
  exec.bind_memory(0, imported.tensor(BP_DTYPE_INT64, {5}));
  bind(env, exec, BP_SLOT_OUTPUT, y);
  const auto write = [&](int64_t last) {
    std::memcpy(memory.data(), indices(last).values<int64_t>().data(), 5 * sizeof(int64_t));
  };
  for (const bool in_stream : {false, true}) {
    std::vector<float> good;
    for (int i = 0; i < 6; ++i) {
      SCOPED_TRACE(i);
      const bool is_bad = i == 3 || i == 4;
      write(is_bad ? 8 : 1);
      const Calls calls;
      const Error error = failure([&] {
        exec.run(in_stream ? how : RunOptions());
        if (in_stream) stream.wait();
      });
      EXPECT_EQ(error.status(), is_bad ? BP_INVALID_ARGUMENT : BP_OK) << error.text();
      EXPECT_THAT(error.text(), HasSubstr(is_bad ? "Gather 'rows': an index is out of range" : ""));
      EXPECT_EQ(calls.of("read into pageable memory"), 0u);
      if (good.empty()) good = y.read();
      if (!is_bad) {
        EXPECT_EQ(y.read(), good);
      }
    }
  }
  // The failure of a run is reported even if another run has followed it in the stream.
  for (int i = 0; i < 3; ++i) exec.run(how);
  stream.wait();
  write(8);
  const Calls calls;
  exec.run(how);
  EXPECT_EQ(cuStreamSynchronize(reinterpret_cast<CUstream>(stream.native().handle)), CUDA_SUCCESS);
  write(1);
  exec.run(how);
  EXPECT_EQ(calls.graphs(), 2u);
  EXPECT_EQ(failure([&] { stream.wait(); }).status(), BP_INVALID_ARGUMENT);
}

// Makes each function fail from its first call on, then from its second, then from its third. The runs succeed anyway.
TEST_F(CapturesTest, WhenACallOfGraphsFailsRunsGoOnWithout) {
  const Case one = product_and_kernels();
  const Floats x = floats(one.x), y = floats({kRows, kColumns});
  x.write(numbers(one.x, 5));
  const std::vector<float> result = expected(env(), one, numbers(one.x, 5));
  for (const char* function : {"cuStreamBeginCapture_v2", "cuStreamEndCapture", "cuGraphInstantiateWithFlags",
                               "cuGraphLaunch", "cuStreamCreate"}) {
    SCOPED_TRACE(function);
    for (uint64_t good = 0; good < 3; ++good) {
      Log log;
      const Environment env = logging(log);
      Exec exec = bound_to(env, one, x, y);
      exec.run();
      const std::map<std::string, int64_t> before = objects();
      const uint64_t calls = standin_calls(function);
      standin_fail(function, CUDA_ERROR_OUT_OF_MEMORY, good);
      for (int i = 0; i < 5; ++i) {
        std::memset(y.data(), 0, y.count() * sizeof(float));
        exec.run();
        expect_near(y.read(), result, one.bound);
      }
      standin_fail(nullptr, CUDA_SUCCESS, 0);
      const bool is_refused = standin_calls(function) - calls > good;
      EXPECT_TRUE(is_refused || good > 0);
      EXPECT_EQ(log.count(kFailed), is_refused ? 1u : 0u) << log.lines;
      if (is_refused) {
        EXPECT_EQ(objects(), before);
      }
      imports_.clear();
    }
  }
}

// Makes commands fail only while they are captured.
TEST_F(CapturesTest, WhenACommandCannotBeCapturedRunsGoOnWithout) {
  const Case one = product_and_kernels();
  const Floats x = floats(one.x), y = floats({kRows, kColumns});
  x.write(numbers(one.x, 5));
  Log log;
  const Environment env = logging(log);
  const std::vector<float> result = expected(env, one, numbers(one.x, 5));
  Exec first = bound_to(env, one, x, y), second = bound_to(env, one, x, y);
  for (Exec* exec : {&first, &second}) {
    exec->run();
    standin_fail_in_capture(true);
    for (int i = 0; i < 3; ++i) {
      std::memset(y.data(), 0, y.count() * sizeof(float));
      const Calls calls;
      exec->run();
      EXPECT_EQ(calls.graphs(), 0u);
      expect_near(y.read(), result, one.bound);
    }
    standin_fail_in_capture(false);
    EXPECT_EQ(standin_objects("executable graphs"), 0);
  }
  EXPECT_EQ(log.count(kFailed), 1u) << log.lines;
  EXPECT_EQ(log.count("commands are not captured: product f32 24x32x40 bias: "), 1u) << log.lines;
}

TEST_F(CapturesTest, ALostDeviceIsReportedAsLost) {
  for (const char* function : {"cuGraphLaunch", "cuStreamEndCapture"}) {
    SCOPED_TRACE(function);
    const Environment env = CapturesTest::env();
    const Case one = product_and_kernels();
    Exec exec = bound_to(env, one, floats(one.x), floats({kRows, kColumns}));
    exec.run();
    standin_fail(function, CUDA_ERROR_ILLEGAL_ADDRESS, 0);
    EXPECT_EQ(failure([&] { exec.run(); }).status(), BP_DEVICE_LOST);
    standin_fail(nullptr, CUDA_SUCCESS, 0);
    imports_.clear();
  }
}

TEST_F(CapturesTest, TenThousandRunsLeakNothing) {
  const Environment env = CapturesTest::env();
  const Case small{"small", {4, 8}, [](Steps& add, uint32_t x) {
                     return add("Softmax", {add("MatMul", {x, add.weight({8, 5}, 1)})}, {{"axis", int64_t{-1}}});
                   }};
  const Floats x = floats(small.x), y = floats({4, 5});
  x.write(numbers(small.x, 1));
  Exec exec = bound_to(env, small, x, y);
  const Stream stream = env.stream(device_id(env));
  RunOptions how;
  how.stream = &stream;
  const auto run = [&](int times) {
    for (int i = 0; i < times; ++i) {
      exec.run(how);
      if (i % 100 == 99) stream.wait();
    }
    exec.run(how);
    stream.wait();
  };
  run(100);
  const std::vector<float> result = y.read();
  const std::map<std::string, int64_t> before = objects();
  const Calls calls;
  run(10'000);
  EXPECT_EQ(calls.graphs(), 10'001u);
  EXPECT_EQ(calls.launches(), 0u);
  EXPECT_EQ(y.read(), result);
  EXPECT_EQ(objects(), before);
}

}  // namespace
}  // namespace backplane::cuda::testing
