// SPDX-License-Identifier: Apache-2.0
// Calls the OpenCL plugin through its tables instead of a session: two instances that compute y = x + 1, and the
// streams, semaphores and buffers that a test creates. The loader only supplies the model and the host's semaphores.
#pragma once

#include <dlfcn.h>
#include <gmock/gmock.h>

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backplane/sdk.hpp"
#include "testing/session.h"

namespace backplane::opencl::testing {

inline constexpr int64_t kElements = 1000;
inline constexpr auto kAWhile = std::chrono::milliseconds(20);

inline uint64_t in(std::chrono::nanoseconds time) {
  return static_cast<uint64_t>((std::chrono::steady_clock::now().time_since_epoch() + time).count());
}

// A host that provides semaphores and cancels nothing.
inline bp_host_t test_host() {
  bp_host_t host{};
  host.size = sizeof host;
  host.version = BP_ABI_VERSION;
  host.cancelled = [](const bp_host_t*, const bp_cancel_t*) { return 0u; };
  host.semaphore_wait = [](const bp_host_t*, bp_semaphore_t* semaphore, uint64_t value, uint64_t deadline,
                           const bp_cancel_t* cancel, bp_error_t* error) {
    return api().semaphore_wait(semaphore, value, deadline, cancel, error);
  };
  host.semaphore_signal = [](const bp_host_t*, bp_semaphore_t* semaphore, uint64_t value, const bp_error_t* failure) {
    api().semaphore_signal(semaphore, value, failure, nullptr);
  };
  host.semaphore_query = [](const bp_host_t*, bp_semaphore_t* semaphore, uint64_t* out_value, bp_error_t* error) {
    return api().semaphore_query(semaphore, out_value, error);
  };
  return host;
}

// Lives until the process exits, as the objects and threads of an abandoned device still use it.
inline const bp_host_t& shared_host() {
  static const bp_host_t kHost = test_host();
  return kHost;
}

// Receives a run's end from `done`.
struct Ended {
  std::promise<bp_status_t> promise;
  std::future<bp_status_t> future = promise.get_future();
  uint64_t run = 0;  // bp_error_t.run: the id of the run that failed
  static void ended(void* self, bp_status_t status, const bp_error_t* error) {
    if (error != nullptr) static_cast<Ended*>(self)->run = error->run;
    static_cast<Ended*>(self)->promise.set_value(status);
  }
  bool yet(std::chrono::nanoseconds time) const { return future.wait_for(time) == std::future_status::ready; }
  bp_status_t status() { return yet(std::chrono::seconds(30)) ? future.get() : BP_TIMED_OUT; }
};

class SyncTest : public OpenCl {
 protected:
  void SetUp() override {
    OpenCl::SetUp();
    if (IsSkipped()) return;
    library_ = dlopen(kPlugin.c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << dlerror();
    const auto query = reinterpret_cast<bp_plugin_query_t>(dlsym(library_, BP_PLUGIN_SYMBOL));
    const bp_host_offer_t offer{sizeof offer, BP_ABI_VERSION_MIN, BP_ABI_VERSION, sdk::kSanitizer, {}};
    slots = query(&offer);
    ASSERT_NE(slots->version, 0u);
    const bp_backend_create_t how{sizeof how, 0, &host_, {}, nullptr};
    ok(slots->create(&how, &backend_, error()));
    uint32_t count = 0;
    ok(slots->device->count(backend_, &count, error()));
    ok(slots->device->open(backend_, 0, nullptr, &device, error()));
    Graph graph;
    const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {kElements});
    const uint32_t one = graph.weight("one", Tensor::of<float>({1}, {1}));
    model_.emplace(graph.finish({graph.node("Add", "y", {x, one})}));
    bp_compile_t what{};
    what.size = sizeof what;
    what.graph = api().model_graph(model_->get());
    ok(slots->program->compile(device, &what, &program_, error()));
    for (auto& instance : instances) ok(slots->instance->create(program_, nullptr, &instance, error()));
  }
  void TearDown() override {
    for (auto* stream : streams_) slots->sync->stream_destroy(stream);  // before the semaphores that its work signals
    for (auto* semaphore : semaphores_) slots->sync->semaphore_destroy(semaphore);
    for (auto*& instance : instances) {
      if (instance != nullptr) slots->instance->destroy(instance);
    }
    for (auto& buffer : buffers_) {
      const bp_release_t what{sizeof what, 0, &buffer, nullptr};
      slots->memory->release(device, &what);
    }
    if (program_ != nullptr) slots->program->destroy(program_);
    if (device != nullptr) slots->device->close(device);
    if (backend_ != nullptr) slots->destroy(backend_);
    if (library_ != nullptr) dlclose(library_);
    OpenCl::TearDown();
  }

  bp_error_t* error() {
    error_ = {sizeof error_, BP_OK, BP_NO_NODE, 0, 0, 0, words_, sizeof words_, 0};
    return &error_;
  }
  std::string detail() const { return {words_, error_.text_size}; }
  void ok(bp_status_t status) { ASSERT_EQ(status, BP_OK) << detail(); }

  bp_native_semaphore_t* semaphore(const bp_native_t* native = nullptr) {
    const bp_semaphore_create_t how{sizeof how, 0, 0, native, nullptr};
    ok(slots->sync->semaphore_create(device, &how, &semaphores_.emplace_back(), error()));
    return semaphores_.back();
  }
  bp_stream_t* stream(const bp_native_t* native = nullptr) {
    const bp_stream_create_t how{sizeof how, 0, native, nullptr};
    ok(slots->sync->stream_create(device, &how, &streams_.emplace_back(), error()));
    return streams_.back();
  }
  cl_command_queue queue_of(bp_stream_t* stream) {
    bp_native_t native{sizeof native, 0, 0};
    ok(slots->sync->stream_export(stream, &native, error()));
    EXPECT_EQ(native.kind, BP_NATIVE_CL_QUEUE);
    return reinterpret_cast<cl_command_queue>(native.handle);
  }
  cl_context context() {
    cl_context context = nullptr;
    clGetCommandQueueInfo(queue_of(stream()), CL_QUEUE_CONTEXT, sizeof context, &context, nullptr);
    return context;
  }
  bp_buffer_t buffer() {
    bp_device_info_t info{};
    info.size = sizeof info;
    ok(slots->device->info(backend_, 0, &info, error()));
    const bp_allocate_t what{sizeof what, info.space_count - 1, kElements * sizeof(float), nullptr, nullptr};
    ok(slots->memory->allocate(device, &what, &buffers_.emplace_back(), error()));
    buffers_.back().bytes = what.bytes;
    return buffers_.back();
  }
  static bp_buffer_t of(std::vector<float>& memory) {
    return {0, 0, 0, nullptr, memory.data(), 0, memory.size() * sizeof(float)};
  }
  void bind(int instance, const bp_buffer_t& x, const bp_buffer_t& y) {
    for (const uint32_t slot : {0u, BP_SLOT_OUTPUT}) {
      bp_tensor_t tensor{sizeof tensor, BP_DTYPE_FLOAT, 1, BP_LAYOUT_DENSE, &kExtent, nullptr, slot == 0 ? x : y};
      const bp_binding_t binding{sizeof binding, slot, &tensor, nullptr};
      ok(slots->instance->bind(instances[instance], &binding, error()));
    }
  }
  // Starts a run of y = x + 1.
  bp_status_t start(int instance, Ended* end, std::vector<bp_point_t> waits, std::vector<bp_point_t> signals,
                    uint64_t deadline = 0, bp_stream_t* stream = nullptr, uint64_t id = 0) {
    bp_run_t run{};
    run.size = sizeof run;
    run.id = id;
    run.stream = stream;
    run.waits = waits.data();
    run.wait_count = static_cast<uint32_t>(waits.size());
    run.signals = signals.data();
    run.signal_count = static_cast<uint32_t>(signals.size());
    run.deadline = deadline;
    run.self = end;
    run.done = end != nullptr ? Ended::ended : nullptr;
    return slots->instance->run(instances[instance], &run, error());
  }
  bp_status_t wait(bp_native_semaphore_t* semaphore, uint64_t value) {
    return slots->sync->semaphore_wait(semaphore, value, in(std::chrono::seconds(30)), error());
  }
  // Abandons the device. Its objects and x, y and z are kept alive until the process exits.
  void abandon() {
    slots->device->abandon(device);
    struct Kept {
      void* objects[6];
      std::vector<bp_native_semaphore_t*> semaphores;
      std::vector<bp_stream_t*> streams;
      std::optional<Model> model;
      std::vector<float> x, y, z;
    };
    static auto& all = *new std::vector<std::unique_ptr<Kept>>;
    all.push_back(std::make_unique<Kept>(
        Kept{{library_, backend_, std::exchange(device, nullptr), std::exchange(program_, nullptr),
              std::exchange(instances[0], nullptr), std::exchange(instances[1], nullptr)},
             std::exchange(semaphores_, {}),
             std::exchange(streams_, {}),
             std::exchange(model_, std::nullopt),
             std::move(x),
             std::move(y),
             std::move(z)}));
    library_ = nullptr;
    backend_ = nullptr;
  }

  const bp_plugin_t* slots = nullptr;
  bp_device_t* device = nullptr;
  bp_instance_t* instances[2] = {};
  std::vector<float> x = std::vector<float>(kElements, 1), y = std::vector<float>(kElements),
                     z = std::vector<float>(kElements);

 private:
  static constexpr int64_t kExtent = kElements;
  void* library_ = nullptr;
  const bp_host_t& host_ = shared_host();
  bp_backend_t* backend_ = nullptr;
  std::optional<Model> model_;
  bp_program_t* program_ = nullptr;
  std::vector<bp_native_semaphore_t*> semaphores_;
  std::vector<bp_stream_t*> streams_;
  std::vector<bp_buffer_t> buffers_;

 protected:
  char words_[500];
  bp_error_t error_{};
};

}  // namespace backplane::opencl::testing
