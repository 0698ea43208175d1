// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of captures: a model with a product and kernels, bound to memory that the test allocated with
// CUDA, and counts of calls.
#pragma once

#include <array>
#include <cstring>
#include <mutex>
#include <vector>

#include "testing/products_fixture.h"

namespace backplane::cuda::testing {

// softmax(x w + b), each row multiplied by the maximum of that row of x: one product and several kernels.
inline Case product_and_kernels() {
  return {"product and kernels", {kRows, kInner}, [](Steps& add, uint32_t x) {
            const uint32_t sum =
                add("Add", {add("MatMul", {x, add.weight({kInner, kColumns}, 1)}), add.weight({kColumns}, 2)});
            return add("Mul", {add("Softmax", {sum}, {{"axis", int64_t{-1}}}),
                               add("ReduceMax", {x, add.Graph::weight("axes", Tensor::of<int64_t>({1}, {1}))})});
          }};
}

// Calls since the object was made, or since `reset`.
class Calls {
 public:
  Calls() { reset(); }
  uint64_t of(const char* function) const { return standin_calls(function) - before_.at(function); }
  uint64_t launches() const { return of("cuLaunchKernel") + of("cublasLtMatmul"); }
  uint64_t graphs() const { return of("cuGraphLaunch"); }
  uint64_t captures() const { return of("cuStreamBeginCapture_v2"); }
  // Calls that wait, on the thread that starts a run and on threads that report the end of runs.
  uint64_t waits() const {
    return of("cuStreamSynchronize") + of("cuEventSynchronize") + of("read into pageable memory");
  }
  uint64_t allocations() const { return of("cuMemAlloc_v2") + of("cuMemHostAlloc") + of("cuMemHostRegister_v2"); }
  void reset() {
    for (const char* function :
         {"cuLaunchKernel", "cublasLtMatmul", "cuGraphLaunch", "cuStreamBeginCapture_v2", "cuStreamSynchronize",
          "cuEventSynchronize", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuMemcpyDtoDAsync_v2",
          "read into pageable memory", "cuMemAlloc_v2", "cuMemHostAlloc", "cuMemHostRegister_v2"})
      before_[function] = standin_calls(function);
  }

 private:
  std::map<std::string, uint64_t> before_;
};

class CapturesTest : public Products {
 protected:
  void SetUp() override {
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context_, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxPushCurrent(context_), CUDA_SUCCESS);
  }
  void TearDown() override {
    Products::TearDown();
    imports_.clear();
    for (const CUdeviceptr each : memory_) EXPECT_EQ(cuMemFree(each), CUDA_SUCCESS);
    CUcontext popped = nullptr;
    EXPECT_EQ(cuCtxPopCurrent(&popped), CUDA_SUCCESS);
    EXPECT_EQ(cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS);
  }

  // Memory of the device, which on the stand-in the host can access.
  struct Floats {
    CUdeviceptr address = 0;
    std::vector<int64_t> extents;
    size_t count() const {
      size_t count = 1;
      for (const int64_t extent : extents) count *= static_cast<size_t>(extent);
      return count;
    }
    float* data() const { return reinterpret_cast<float*>(address); }
    void write(const Tensor& from) const { std::memcpy(data(), from.values<float>().data(), count() * sizeof(float)); }
    std::vector<float> read() const { return {data(), data() + count()}; }
  };
  Floats floats(const std::vector<int64_t>& extents) {
    Floats made{0, extents};
    EXPECT_EQ(cuMemAlloc(&made.address, made.count() * sizeof(float)), CUDA_SUCCESS);
    memory_.push_back(made.address);
    return made;
  }
  static uint64_t device_id(const Environment& env) {
    for (const Device& device : env.devices())
      if (device.name == "cuda") return device.info.id;
    throw std::logic_error("there is no device 'cuda'");
  }
  void bind(const Environment& env, Exec& exec, uint32_t slot, const Floats& floats, uint64_t offset = 0) {
    bp_external_t external{};
    external.size = sizeof external;
    external.kind = BP_EXTERNAL_CUDA_POINTER;
    external.handle = floats.address;
    external.bytes = floats.count() * sizeof(float);
    external.offset = offset;
    const Buffer imported = env.import_memory(device_id(env), external);
    exec.bind_memory(slot, imported.tensor(BP_DTYPE_FLOAT, floats.extents));
    imports_.push_back(imported);
  }
  // Compiles a case for the device, with its input and output bound.
  Exec bound_to(const Environment& env, const Case& one, const Floats& x, const Floats& y) {
    Exec exec = env.compile(model_of(one), only("cuda")).exec();
    bind(env, exec, 0, x);
    bind(env, exec, BP_SLOT_OUTPUT, y);
    return exec;
  }
  // The results of the CPU backend for an input.
  static std::vector<float> expected(const Environment& env, const Case& one, const Tensor& x) {
    Exec exec = env.compile(model_of(one), only("cpu")).exec();
    exec.bind("x", x);
    exec.run();
    return exec.output(0u).values<float>();
  }
  // Collects the warnings of an environment.
  struct Log {
    std::mutex mutex;
    std::string lines;
    size_t count(const std::string& text) {
      const std::lock_guard lock(mutex);
      size_t found = 0;
      for (size_t at = lines.find(text); at != std::string::npos; at = lines.find(text, at + 1)) ++found;
      return found;
    }
  };
  static Environment logging(Log& log) {
    EnvironmentOptions how = options();
    how.log_level = BP_LOG_WARNING;
    how.log = [&log](uint32_t, std::string_view line) {
      const std::lock_guard lock(log.mutex);
      log.lines.append(line).append("\n");
    };
    return Environment(how);
  }

  std::vector<Buffer> imports_;

 private:
  CUcontext context_ = nullptr;
  std::vector<CUdeviceptr> memory_;
};

}  // namespace backplane::cuda::testing
