// SPDX-License-Identifier: Apache-2.0
// Compares a run through libonnxifi.so with a run through loader.h that does the same work and is waited for in the
// same way.
#include <benchmark/benchmark.h>

#include <cstdlib>

#include "backplane/client.hpp"
#include "onnxifi/onnxifi.h"
#include "onnxifi/testing/structs.h"
#include "testing/onnx_writer.h"

namespace {

using namespace backplane::testing::onnx;  // NOLINT(google-build-using-namespace)
using backplane::onnxifi::descriptor;
using backplane::onnxifi::fence;

const int kOnlyThis = setenv("BACKPLANE_SELECT", "org.backplane.null,null", 1);

std::string neg_model() {
  return model_bytes({{"", 13}}, graph({node("Neg", {"a"}, {"c"})}, {tensor_value("a", BP_DTYPE_FLOAT, {Dim(3)})},
                                       {tensor_value("c", BP_DTYPE_FLOAT, {Dim(3)})}));
}

// Submits each run with a wait for a point that has already been reached, then waits for the run to end.
void loader(benchmark::State& state) {
  const backplane::Environment env;
  const backplane::Session session = env.compile(env.parse(neg_model()));
  backplane::Exec exec = session.exec();
  exec.bind(0, backplane::Tensor::of<float>({3}, {1, 2, 3}));
  exec.bind_output(0, backplane::Tensor::of<float>({3}, {0, 0, 0}));
  const backplane::Semaphore ready, ended;
  ready.signal(1);
  uint64_t runs = 0;
  for (auto _ : state) {
    const bp_point_t wait = ready.at(1), signal = ended.at(++runs);
    bp_run_t run{};
    run.size = sizeof run;
    run.waits = &wait;
    run.wait_count = 1;
    run.signals = &signal;
    run.signal_count = 1;
    exec.submit(run);
    ended.wait(runs);
  }
}

void onnxifi(benchmark::State& state) {
  size_t count = 1;
  onnxBackendID id = nullptr;
  if (onnxGetBackendIDs(&id, &count) != ONNXIFI_STATUS_SUCCESS) return state.SkipWithError("expected a single device");
  onnxBackend backend = nullptr;
  onnxGraph graph = nullptr;
  onnxEvent ready = nullptr;
  const std::string model = neg_model();
  float a[3] = {1, 2, 3}, c[3] = {};
  const onnxTensorDescriptorV1 in[] = {descriptor("a", a)}, out[] = {descriptor("c", c)};
  if (onnxInitBackend(id, nullptr, &backend) != ONNXIFI_STATUS_SUCCESS ||
      onnxInitGraph(backend, nullptr, model.size(), model.data(), 0, nullptr, &graph) != ONNXIFI_STATUS_SUCCESS ||
      onnxInitEvent(backend, &ready) != ONNXIFI_STATUS_SUCCESS || onnxSignalEvent(ready) != ONNXIFI_STATUS_SUCCESS ||
      onnxSetGraphIO(graph, 1, in, 1, out) != ONNXIFI_STATUS_SUCCESS)
    return state.SkipWithError("the graph cannot be set up");
  const onnxMemoryFenceV1 before = fence(ready);
  for (auto _ : state) {
    onnxMemoryFenceV1 after = fence();
    benchmark::DoNotOptimize(onnxRunGraph(graph, &before, &after));
    benchmark::DoNotOptimize(onnxWaitEvent(after.event));
    benchmark::DoNotOptimize(onnxReleaseEvent(after.event));
  }
  onnxReleaseEvent(ready);
  onnxReleaseGraph(graph);
  onnxReleaseBackend(backend);
  onnxReleaseBackendID(id);
}

BENCHMARK(loader)->UseRealTime();
BENCHMARK(onnxifi)->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
