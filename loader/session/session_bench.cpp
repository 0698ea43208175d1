// SPDX-License-Identifier: Apache-2.0
// The loader's own cost in runs, sessions and discovery, through the public API and with almost nothing to compute.
// scripts/bench.py prints the results next to their goals.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <thread>

#include "backplane/client.hpp"
#include "testing/manifest_writer.h"
#include "testing/onnx_writer.h"
#include "testing/partial_backend/counters.h"

namespace backplane {
namespace {

namespace fs = std::filesystem;
using namespace testing::onnx;

const std::string kCpu = BACKPLANE_BUILD_DIR "/lib/backplane/libbackplane_cpu.so";
const std::string kNull = BACKPLANE_BUILD_DIR "/lib/backplane/libbackplane_null.so";
const std::string kOpenCl = BACKPLANE_BUILD_DIR "/lib/backplane/libbackplane_opencl.so";
const std::string kPartial = BACKPLANE_BUILD_DIR "/tests/plugins/partial.so";

Environment environment(std::vector<std::string> files, std::map<std::string, std::string> options = {}) {
  EnvironmentOptions how;
  how.backend_files = std::move(files);
  how.only_given = true;
  how.options = std::move(options);
  how.options["loader.cache"] = "";  // no cache, so that every session is compiled
  return Environment(how);
}

// A chain of Add (of a constant) and Relu nodes, in turn, on a tensor of one number.
std::string chain(int64_t length) {
  Texts nodes;
  std::string before = "x";
  for (int64_t i = 0; i < length; ++i) {
    const std::string after = i + 1 == length ? "y" : "v" + std::to_string(i);
    nodes.push_back(i % 2 == 0 ? node("Add", {before, "w"}, {after}) : node("Relu", {before}, {after}));
    before = after;
  }
  return model_bytes({{"", 17}},
                     graph(nodes, {tensor_value("x", BP_DTYPE_FLOAT, {1})}, {tensor_value("y", BP_DTYPE_FLOAT, {1})},
                           {tensor("w", BP_DTYPE_FLOAT, {1}, std::vector<float>{1})}));
}

void run_bound(benchmark::State& state, const std::string& backend, const std::string& isolated = {}) {
  const Environment env = environment({backend}, {{"loader.isolate", isolated}});
  Exec exec = env.compile(env.parse(chain(state.range(0)))).exec();
  exec.bind("x", Tensor::of<float>({1}, {1}));
  exec.bind_output("y", Tensor(BP_DTYPE_FLOAT, {1}));
  for (auto _ : state) exec.run();
}

// A run of a bound session on the CPU backend. The difference between two lengths shows the cost of each additional
// node.
void bound_run(benchmark::State& state) {
  run_bound(state, kCpu);
}
BENCHMARK(bound_run)->Arg(1)->Arg(1001);

// Like bound_run, on the null backend, whose loop is trivial: only the cost of the calls remains.
void bound_run_null(benchmark::State& state) {
  run_bound(state, kNull);
}
BENCHMARK(bound_run_null)->Arg(1);

// Like bound_run, on the null backend in a separate process.
void bound_run_isolated(benchmark::State& state) {
  run_bound(state, kNull, "null");
}
BENCHMARK(bound_run_isolated)->Arg(1)->UseRealTime();

// A round trip to another thread. This is the part of the cost of an async_chain run that is due to thread switching
// alone.
void hand_over(benchmark::State& state) {
  std::mutex mutex;
  std::condition_variable changed;
  bool turn_of_other = false, ended = false;
  std::thread other([&] {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [&] { return turn_of_other; });
      if (ended) return;
      turn_of_other = false;
      changed.notify_one();
    }
  });
  std::unique_lock lock(mutex);
  for (auto _ : state) {
    turn_of_other = true;
    changed.notify_one();
    changed.wait(lock, [&] { return !turn_of_other; });
  }
  turn_of_other = ended = true;
  changed.notify_one();
  lock.unlock();
  other.join();
}
BENCHMARK(hand_over)->UseRealTime();

// A chain of islands with one node each, on an asynchronous device. "beyond_ns" is the time of each island in addition
// to its time on the device. With a deadline, only a few islands are in the stream at a time.
void async_chain(benchmark::State& state, bool paced) {
  const Environment env = environment({kPartial}, {{"partial.async", "1"}, {"partial.max_nodes", "1"}});
  Exec exec = env.compile(env.parse(chain(state.range(0)))).exec();
  exec.bind("x", Tensor::of<float>({1}, {1}));
  exec.bind_output("y", Tensor(BP_DTYPE_FLOAT, {1}));
  RunOptions options;
  if (paced) options.timeout = std::chrono::hours(1);
  exec.run(options);
  const auto* device = static_cast<const partial::Counters*>(
      api().env_get_extension(env.get(), view::text(std::string_view("partial/counters")), 1));
  const uint64_t busy_before = device->busy_ns, runs_before = device->runs;
  const auto begin = std::chrono::steady_clock::now();
  for (auto _ : state) exec.run(options);
  const std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - begin;
  const auto busy = static_cast<double>(device->busy_ns - busy_before);
  state.counters["beyond_ns"] = (elapsed.count() - busy) / static_cast<double>(device->runs - runs_before);
}
BENCHMARK_CAPTURE(async_chain, streamed, false)->Arg(1)->Arg(20)->UseRealTime();
BENCHMARK_CAPTURE(async_chain, with_a_deadline, true)->Arg(20)->UseRealTime();

// A chain of Softmax nodes on four numbers, which no backend fuses.
std::string softmaxes(int64_t length) {
  Texts nodes;
  std::string before = "x";
  for (int64_t i = 0; i < length; ++i) {
    const std::string after = i + 1 == length ? "y" : "v" + std::to_string(i);
    nodes.push_back(node("Softmax", {before}, {after}));
    before = after;
  }
  return model_bytes({{"", 17}}, graph(nodes, {tensor_value("x", BP_DTYPE_FLOAT, {1, 4})},
                                       {tensor_value("y", BP_DTYPE_FLOAT, {1, 4})}));
}

// A chain of small OpenCL kernels, either in one island each or all in one island. The difference between the costs of
// an additional island and of an additional kernel is the host's work for an island. "best_ns" is the shortest run:
// with most CPU drivers, the driver's threads compete with this one.
void opencl_chain(benchmark::State& state, bool islands) {
  const Environment env = environment({kOpenCl});
  if (std::ranges::none_of(env.devices(), [](const Device& device) { return device.name.starts_with("opencl"); }))
    return state.SkipWithError("there is no OpenCL device");
  SessionOptions how;
  how.pins = {{"*", "opencl"}};
  how.options = {{"loader.costs", "reported"}};
  if (islands) how.options["loader.max_island_nodes"] = "1";
  Exec exec = env.compile(env.parse(softmaxes(state.range(0))), how).exec();
  exec.bind("x", Tensor::of<float>({1, 4}, {1, 2, 3, 4}));
  exec.bind_output("y", Tensor(BP_DTYPE_FLOAT, {1, 4}));
  exec.run();
  std::chrono::duration<double, std::nano> best = std::chrono::hours(1);
  for (auto _ : state) {
    const auto begin = std::chrono::steady_clock::now();
    exec.run();
    best = std::min<decltype(best)>(best, std::chrono::steady_clock::now() - begin);
  }
  state.counters["best_ns"] = best.count();
}
BENCHMARK_CAPTURE(opencl_chain, islands, true)->Arg(20)->Arg(100)->UseRealTime();
BENCHMARK_CAPTURE(opencl_chain, one_island, false)->Arg(20)->Arg(100)->UseRealTime();

void import_model(benchmark::State& state) {
  const Environment env = environment({kCpu});
  const std::string bytes = chain(state.range(0));
  for (auto _ : state) env.parse(bytes);
}
BENCHMARK(import_model)->Arg(1000)->Arg(10000)->Arg(100000)->Unit(benchmark::kMillisecond);

// From the model's bytes to a session that can run, including the destruction of both.
void session(benchmark::State& state) {
  const Environment env = environment({kCpu});
  const std::string bytes = chain(state.range(0));
  for (auto _ : state) env.compile(env.parse(bytes));
}
BENCHMARK(session)->Arg(1000)->Arg(10000)->Arg(100000)->Unit(benchmark::kMillisecond);

// Two devices, whose islands alternate along the chain.
void alternating_islands(benchmark::State& state) {
  const Environment env =
      environment({kPartial}, {{"partial.devices", "2"}, {"partial.0.ops", "Add"}, {"partial.1.ops", "Relu"}});
  const std::string bytes = chain(state.range(0));
  for (auto _ : state) env.compile(env.parse(bytes));
}
BENCHMARK(alternating_islands)->Arg(2000)->Unit(benchmark::kMillisecond);

// Manifests of backends that an earlier environment stored. No session uses them, so no library is opened.
void known_backends(benchmark::State& state) {
  testing::Sandbox sandbox;
  EnvironmentOptions how;
  how.only_given = true;
  how.log_level = BP_LOG_ERROR;
  how.options["loader.load"] = "when_used";
  for (int64_t i = 0; i < state.range(0); ++i) {
    const std::string id = "known" + std::to_string(i), library = id + ".so";
    fs::copy_file(BACKPLANE_BUILD_DIR "/tests/plugins/fake.so", sandbox.root() / library);
    how.backend_files.push_back(sandbox.write(id + ".json", testing::manifest(id, library)).string());
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(2100));  // files younger than 2 s are probed every time
  { const Environment first(how); }                              // probes each library in a separate process
  for (auto _ : state) Environment again(how);
  state.counters["devices"] = static_cast<double>(Environment(how).devices().size());
}
BENCHMARK(known_backends)->Arg(50)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace backplane

BENCHMARK_MAIN();
