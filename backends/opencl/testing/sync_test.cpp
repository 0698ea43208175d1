// SPDX-License-Identifier: Apache-2.0
// Runs that continue after the call has returned: the points that they wait for and signal, and streams. The plugin is
// called through its tables, without the loader.
#include <dlfcn.h>
#include <gmock/gmock.h>

#include <chrono>
#include <future>
#include <thread>

#include "backplane/sdk.hpp"
#include "testing/session.h"

namespace backplane::opencl::testing {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kElements = 1000;
constexpr auto kAWhile = std::chrono::milliseconds(20);

uint64_t in(std::chrono::nanoseconds time) {
  return static_cast<uint64_t>((std::chrono::steady_clock::now().time_since_epoch() + time).count());
}

// A host that provides semaphores and cancels nothing.
bp_host_t test_host() {
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
const bp_host_t& shared_host() {
  static const bp_host_t kHost = test_host();
  return kHost;
}

// Receives a run's end from `done`.
struct Ended {
  std::promise<bp_status_t> promise;
  std::future<bp_status_t> future = promise.get_future();
  uint64_t run = 0;  // the run that failed: bp_error_t.run
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
  // Abandons the device. Its objects, and the memory that is bound, stay until the process ends.
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

TEST_F(SyncTest, TheDeviceReportsThatItIsAsynchronous) {
  bp_device_info_t info{};
  for (const Device& each : opencl().devices()) {
    if (each.name.starts_with("opencl")) info = each.info;
  }
  EXPECT_EQ(info.flags & BP_DEVICE_SYNCHRONOUS, 0u);
  ASSERT_NE(slots->sync, nullptr);
}

// The second run is started first; neither call blocks.
TEST_F(SyncTest, RunsWaitForEachOtherInAnyOrderOfStarts) {
  const Semaphore of_host;
  bp_native_semaphore_t* const native = semaphore();
  for (const bool on_host : {true, false}) {
    const auto at = [&](uint64_t value) { return on_host ? of_host.at(value) : bp_native_point(native, 0, value); };
    y.assign(kElements, 0);
    z.assign(kElements, 0);
    bind(0, of(x), of(y));
    bind(1, of(y), of(z));
    Ended first, second;
    ok(start(1, &second, {at(2)}, {at(3)}));
    EXPECT_FALSE(second.yet(kAWhile));
    ok(start(0, &first, {at(1)}, {at(2)}));
    EXPECT_FALSE(first.yet(kAWhile));
    EXPECT_EQ(y, std::vector<float>(kElements));
    if (on_host)
      of_host.signal(1);
    else
      ok(slots->sync->semaphore_signal(native, 1, error()));
    EXPECT_EQ(first.status(), BP_OK);
    EXPECT_EQ(second.status(), BP_OK);
    EXPECT_EQ(z, std::vector<float>(kElements, 3));
    if (on_host)
      of_host.wait(3);
    else
      ok(wait(native, 3));
  }
}

TEST_F(SyncTest, AFailureReachesAllThatWaitForIt) {
  bp_native_semaphore_t *const semaphore = this->semaphore(), *const last = this->semaphore();
  bind(0, of(x), of(y));
  bind(1, of(y), of(z));
  Ended first, second;
  const Semaphore mended;  // delays the second run, so that the injected failure does not affect its end too
  ok(start(1, &second, {bp_native_point(semaphore, 0, 1), mended.at(1)}, {bp_native_point(last, 0, 1)}));
  cl_layer().fail("the end", CL_OUT_OF_RESOURCES);
  ok(start(0, &first, {}, {bp_native_point(semaphore, 0, 1)}));
  EXPECT_EQ(first.status(), BP_RESOURCE_EXHAUSTED);
  cl_layer().clear_failures();
  mended.signal(1);
  EXPECT_EQ(second.status(), BP_DEPENDENCY_FAILED);
  ok(wait(last, 1));  // a host's wait for a native point reports no failure
  Ended third, of_host;
  ok(start(0, &third, {bp_native_point(last, 0, 1)}, {}));
  EXPECT_EQ(third.status(), BP_DEPENDENCY_FAILED);
  // Host points carry failures; if one is known before the run is started, the call returns it and `done` is not
  // called.
  const Semaphore failed;
  failed.fail(1, BP_INTERNAL, "the step before");
  EXPECT_EQ(start(0, &of_host, {failed.at(1)}, {}), BP_DEPENDENCY_FAILED);
  EXPECT_THAT(detail(), HasSubstr("the step before"));
  EXPECT_FALSE(of_host.yet(kAWhile));
}

TEST_F(SyncTest, ADeadlineEndsAWait) {
  bp_native_semaphore_t* const semaphore = this->semaphore();
  const Semaphore of_host;
  bind(0, of(x), of(y));
  for (const bp_point_t& never : {bp_native_point(semaphore, 0, 1), of_host.at(1)}) {
    Ended end;
    ok(start(0, &end, {never}, {}, in(kAWhile)));
    EXPECT_EQ(end.status(), BP_TIMED_OUT);
  }
  EXPECT_EQ(slots->sync->semaphore_wait(semaphore, 1, in(kAWhile), error()), BP_TIMED_OUT);
  Ended end;
  ok(start(0, &end, {}, {}));
  EXPECT_EQ(end.status(), BP_OK);
}

TEST_F(SyncTest, AnInstanceHasOneRunAndOutlivesIt) {
  bp_native_semaphore_t* const semaphore = this->semaphore();
  bind(0, of(x), of(y));
  Ended end, other;
  ok(start(0, &end, {bp_native_point(semaphore, 0, 1)}, {}));
  EXPECT_EQ(start(0, &other, {}, {}), BP_BUSY);
  std::thread signaller([&] {
    std::this_thread::sleep_for(kAWhile);
    slots->sync->semaphore_signal(semaphore, 1, nullptr);
  });
  slots->instance->destroy(std::exchange(instances[0], nullptr));
  EXPECT_TRUE(end.yet(std::chrono::nanoseconds(0)));
  EXPECT_EQ(end.status(), BP_OK);
  EXPECT_EQ(y, std::vector<float>(kElements, 2));
  signaller.join();
}

// Copies, a fill and runs, in memory of the device and of the host; only stream_wait blocks.
TEST_F(SyncTest, AStreamKeepsItsOrder) {
  bp_stream_t* const stream = this->stream();
  const bp_buffer_t a = buffer(), b = buffer();
  bind(0, a, b);
  bind(1, b, of(z));
  bp_run_t run{};
  run.size = sizeof run;
  run.stream = stream;
  Ended copied, ended;
  run.self = &copied;
  run.done = Ended::ended;
  const bp_buffer_t from = of(x), to = of(y);
  const bp_copy_t first{sizeof first, 0, &from, &a, kElements * sizeof(float), &run};
  ok(slots->memory->copy(device, &first, error()));
  ok(start(0, nullptr, {}, {}, 0, stream));
  ok(start(1, &ended, {}, {}, 0, stream));
  ok(slots->sync->stream_wait(stream, in(std::chrono::seconds(30)), error()));
  EXPECT_EQ(z, std::vector<float>(kElements, 3));
  EXPECT_EQ(copied.status(), BP_OK);
  EXPECT_EQ(ended.status(), BP_OK);
  run.done = nullptr;
  const bp_fill_t fives{sizeof fives, 4, std::bit_cast<uint32_t>(5.0f), &b, &run};
  ok(slots->memory->fill(device, &fives, error()));
  const bp_copy_t last{sizeof last, 0, &b, &to, kElements * sizeof(float), &run};
  ok(slots->memory->copy(device, &last, error()));
  ok(slots->sync->stream_wait(stream, BP_FOREVER, error()));
  EXPECT_EQ(y, std::vector<float>(kElements, 5));
}

// Runs without `done` need no callback; a later `done` or a stream wait reports their failure.
TEST_F(SyncTest, AStreamReportsEarlierFailures) {
  bp_stream_t* const stream = this->stream();
  bind(0, of(x), of(y));
  bind(1, of(y), of(z));
  for (const int instance : {0, 1}) {  // makes the plans; in a stream, this would wait for the stream
    Ended warm;
    ok(start(instance, &warm, {}, {}));
    ASSERT_EQ(warm.status(), BP_OK);
  }
  for (const bool by_done : {true, false}) {
    const uint64_t callbacks = cl_layer().callbacks;
    ok(start(0, nullptr, {}, {}, 0, stream, 77));
    EXPECT_EQ(cl_layer().callbacks, callbacks);  // no `done`, no callback
    cl_layer().fail("clGetEventInfo", CL_OUT_OF_RESOURCES);
    if (by_done) {
      Ended last;
      ok(start(1, &last, {}, {}, 0, stream, 78));
      EXPECT_EQ(last.status(), BP_RESOURCE_EXHAUSTED);
      EXPECT_EQ(last.run, 77u);
    } else {
      EXPECT_EQ(slots->sync->stream_wait(stream, BP_FOREVER, error()), BP_RESOURCE_EXHAUSTED);
      EXPECT_EQ(error_.run, 77u);
    }
    cl_layer().clear_failures();
    ok(slots->sync->stream_wait(stream, BP_FOREVER, error()));  // a failure is reported once
  }
}

// The fixture destroys the stream, then the semaphores, then the instances.
TEST_F(SyncTest, AStreamEndsBeforeThePointsOfItsRuns) {
  bp_stream_t *const one = this->stream(), *const two = this->stream();
  bp_native_semaphore_t *const first = semaphore(), *const second = semaphore();
  bind(0, of(x), of(y));
  bind(1, of(y), of(z));
  ok(start(0, nullptr, {bp_native_point(first, 0, 1)}, {bp_native_point(second, 0, 1)}, 0, one));
  ok(start(1, nullptr, {bp_native_point(second, 0, 1)}, {}, 0, two));
  ok(slots->sync->semaphore_signal(first, 1, error()));
}

// Without a flush, a driver may never start the work in its queue, and a wait for the signal would never end.
TEST_F(SyncTest, WhatARunSignalsIsFlushed) {
  bp_stream_t* const stream = this->stream();
  bp_native_semaphore_t* const native = semaphore();
  bind(0, of(x), of(y));
  Ended warm;
  ok(start(0, &warm, {}, {}));
  ASSERT_EQ(warm.status(), BP_OK);
  ok(start(0, nullptr, {}, {bp_native_point(native, 0, 1)}, 0, stream));
  EXPECT_EQ(cl_layer().unflushed, 0u);
  const bp_buffer_t from = of(x), to = buffer();
  const bp_point_t copied = bp_native_point(native, 0, 2);
  bp_run_t run{};
  run.size = sizeof run;
  run.stream = stream;
  run.signals = &copied;
  run.signal_count = 1;
  const bp_copy_t what{sizeof what, 0, &from, &to, kElements * sizeof(float), &run};
  ok(slots->memory->copy(device, &what, error()));
  EXPECT_EQ(cl_layer().unflushed, 0u);
  ok(wait(native, 2));
  ok(slots->sync->stream_wait(stream, BP_FOREVER, error()));
}

// However many runs are in flight, adding one queries the driver about only a few of the others.
TEST_F(SyncTest, ALongQueueCostsEachRunNoMore) {
  constexpr uint64_t kRuns = 1000;
  bp_stream_t* const stream = this->stream();
  const Semaphore go;
  const bp_buffer_t a = buffer(), b = buffer();
  bind(0, a, b);
  bind(1, b, of(z));
  for (const int instance : {0, 1}) {
    Ended warm;
    ok(start(instance, &warm, {}, {}));
    ASSERT_EQ(warm.status(), BP_OK);
  }
  const bp_buffer_t from = of(x);
  const bp_copy_t what{sizeof what, 0, &from, &a, kElements * sizeof(float), nullptr};
  ok(slots->memory->copy(device, &what, error()));
  const uint64_t queries = cl_layer().queries;
  ok(start(0, nullptr, {go.at(1)}, {}, 0, stream));
  for (uint64_t run = 1; run < kRuns; ++run) ok(start(0, nullptr, {}, {}, 0, stream));
  EXPECT_LT(cl_layer().queries - queries, 2 * kRuns);
  Ended last;
  ok(start(1, &last, {}, {}, 0, stream));
  go.signal(1);
  EXPECT_EQ(last.status(), BP_OK);
  EXPECT_EQ(z, std::vector<float>(kElements, 3));
}

// A stream waits on the device for another stream's unfinished run, which itself waits for a host point.
TEST_F(SyncTest, StreamsWaitForEachOtherAndForTheHost) {
  bp_stream_t *const one = this->stream(), *const two = this->stream();
  bp_native_semaphore_t* const native = semaphore();
  const Semaphore go;
  bind(0, of(x), of(y));
  bind(1, of(y), of(z));
  for (const int instance : {0, 1}) {
    Ended warm;
    ok(start(instance, &warm, {}, {}));
    ASSERT_EQ(warm.status(), BP_OK);
  }
  y.assign(kElements, 0);
  z.assign(kElements, 0);
  Ended last;
  ok(start(0, nullptr, {go.at(1)}, {bp_native_point(native, 0, 1)}, 0, one));
  ok(start(1, &last, {bp_native_point(native, 0, 1)}, {}, 0, two));
  EXPECT_FALSE(last.yet(kAWhile));
  EXPECT_EQ(z, std::vector<float>(kElements));
  go.signal(1);
  EXPECT_EQ(last.status(), BP_OK);
  EXPECT_EQ(z, std::vector<float>(kElements, 3));
  ok(slots->sync->stream_wait(one, BP_FOREVER, error()));
  // If a point fails, the run that waits for it reports the failure, and both streams continue.
  Ended first, second;
  ok(start(0, &first, {go.at(2)}, {bp_native_point(native, 0, 2)}, 0, one));
  ok(start(1, &second, {bp_native_point(native, 0, 2)}, {}, 0, two));
  go.fail(2, BP_INTERNAL, "the host's part");
  EXPECT_EQ(first.status(), BP_DEPENDENCY_FAILED);
  EXPECT_EQ(second.status(), BP_DEPENDENCY_FAILED);
}

// A host point carries the first failure among its run and earlier runs of the stream. The stream still reports the
// failure afterwards.
TEST_F(SyncTest, AHostPointCarriesAFailureAndDoesNotReportIt) {
  bp_stream_t* const stream = this->stream();
  bp_native_semaphore_t* const native = semaphore();
  bind(0, of(x), of(y));
  bind(1, of(y), of(z));
  for (const int instance : {0, 1}) {
    Ended warm;
    ok(start(instance, &warm, {}, {}));
    ASSERT_EQ(warm.status(), BP_OK);
  }
  const Semaphore points;
  const auto reached = [&](uint64_t value) {
    return api().semaphore_wait(points.get(), value, in(std::chrono::seconds(30)), nullptr, nullptr);
  };
  uint64_t value = 0;
  for (const bool by_done : {true, false}) {
    cl_layer().fail("clGetEventInfo", CL_OUT_OF_RESOURCES);
    ok(start(0, nullptr, {}, {points.at(value + 1)}, 0, stream, 77));
    EXPECT_EQ(reached(value + 1), BP_DEPENDENCY_FAILED);
    cl_layer().clear_failures();
    ok(start(1, nullptr, {}, {points.at(value + 2), bp_native_point(native, 0, value + 2)}, 0, stream, 78));
    EXPECT_EQ(reached(value + 2), BP_DEPENDENCY_FAILED);
    Ended elsewhere;
    ok(start(1, &elsewhere, {bp_native_point(native, 0, value + 2)}, {}, 0, this->stream()));
    EXPECT_EQ(elsewhere.status(), BP_DEPENDENCY_FAILED);
    if (by_done) {
      Ended last;
      ok(start(1, &last, {}, {points.at(value + 3)}, 0, stream, 79));
      EXPECT_EQ(last.status(), BP_RESOURCE_EXHAUSTED);
      EXPECT_EQ(last.run, 77u);
      EXPECT_EQ(reached(value + 3), BP_DEPENDENCY_FAILED);
    } else {
      EXPECT_EQ(slots->sync->stream_wait(stream, BP_FOREVER, error()), BP_RESOURCE_EXHAUSTED);
      EXPECT_EQ(error_.run, 77u);
    }
    ok(start(1, nullptr, {}, {points.at(value + 4)}, 0, stream));  // a failure is reported once
    EXPECT_EQ(reached(value + 4), BP_OK);
    ok(slots->sync->stream_wait(stream, BP_FOREVER, error()));
    value += 4;
  }
}

// Abandoning a device ends the waits for it, and work that has not been started is never started.
TEST_F(SyncTest, AnAbandonedDeviceEndsWaits) {
  ASSERT_NE(slots->device->abandon, nullptr);
  bp_stream_t* const stream = this->stream();
  bp_native_semaphore_t* const never = semaphore();
  static const Semaphore& of_host = *new Semaphore;  // static: the plugin's thread may still be returning from a wait
  of_host.reset(0);
  bind(0, of(x), of(y));
  bind(1, of(y), of(z));
  for (const int instance : {0, 1}) {
    Ended warm;
    ok(start(instance, &warm, {}, {}));
    ASSERT_EQ(warm.status(), BP_OK);
  }
  Ended alone, in_stream;
  ok(start(0, &alone, {bp_native_point(never, 0, 1)}, {}));
  ok(start(1, &in_stream, {of_host.at(1)}, {}, 0, stream));
  const auto code_of = [&](auto call) {
    return std::async(std::launch::async, [call] {
      bp_error_t none{};
      none.size = sizeof none;
      return call(&none);
    });
  };
  auto stream_wait =
      code_of([&](bp_error_t* error) { return slots->sync->stream_wait(stream, in(std::chrono::seconds(30)), error); });
  auto semaphore_wait = code_of(
      [&](bp_error_t* error) { return slots->sync->semaphore_wait(never, 1, in(std::chrono::seconds(30)), error); });
  EXPECT_EQ(stream_wait.wait_for(kAWhile), std::future_status::timeout);
  EXPECT_EQ(semaphore_wait.wait_for(kAWhile), std::future_status::timeout);
  const uint64_t launches = cl_layer().launches;
  abandon();
  EXPECT_EQ(stream_wait.get(), BP_DEVICE_LOST);
  EXPECT_EQ(semaphore_wait.get(), BP_DEVICE_LOST);
  EXPECT_EQ(alone.status(), BP_DEVICE_LOST);
  of_host.signal(1);  // ends the thread that waits for it, but the queue stays blocked
  EXPECT_FALSE(in_stream.yet(kAWhile));
  EXPECT_EQ(cl_layer().launches, launches);
}

TEST_F(SyncTest, HealthIsTheDriversWord) {
  ASSERT_NE(slots->device->health, nullptr);
  const auto health = [&] { return slots->device->health(device, error()); };
  ok(health());
  cl_layer().fail("clGetDeviceInfo", CL_INVALID_DEVICE);
  EXPECT_EQ(health(), BP_DEVICE_LOST);
  EXPECT_EQ(error_.flags, BP_ERROR_DEVICE_LOST);
  for (const cl_int status : {CL_DEVICE_NOT_AVAILABLE, CL_INVALID_COMMAND_QUEUE}) {
    cl_layer().fail("clEnqueueMarkerWithWaitList", status);
    EXPECT_EQ(health(), BP_DEVICE_LOST);
    EXPECT_EQ(error_.vendor_code, status);
  }
  cl_layer().fail("clEnqueueMarkerWithWaitList", CL_OUT_OF_RESOURCES);
  ok(health());
  cl_layer().clear_failures();
  ok(health());
}

TEST_F(SyncTest, StreamsAreCommandQueues) {
  const cl_command_queue own = queue_of(stream());
  const bp_native_t native{sizeof native, BP_NATIVE_CL_QUEUE, reinterpret_cast<uint64_t>(own)};
  EXPECT_EQ(queue_of(stream(&native)), own);
  // A run waits for work that the framework has enqueued before it.
  cl_device_id id = nullptr;
  clGetCommandQueueInfo(own, CL_QUEUE_DEVICE, sizeof id, &id, nullptr);
  cl_int status = CL_SUCCESS;
  const cl_event gate = clCreateUserEvent(context(), &status);
  ASSERT_EQ(clEnqueueMarkerWithWaitList(own, 1, &gate, nullptr), CL_SUCCESS);
  bind(0, of(x), of(y));
  Ended warm;
  ok(start(0, &warm, {}, {}));  // makes the plan; in the stream, this would wait for the stream
  EXPECT_EQ(warm.status(), BP_OK);
  Ended end;
  ok(start(0, &end, {}, {}, 0, stream(&native)));
  EXPECT_FALSE(end.yet(kAWhile));
  EXPECT_EQ(slots->sync->stream_wait(stream(&native), in(kAWhile), error()), BP_TIMED_OUT);
  clSetUserEventStatus(gate, CL_COMPLETE);
  EXPECT_EQ(end.status(), BP_OK);
  clReleaseEvent(gate);
  // Queues that cannot be streams are refused.
  const cl_command_queue out_of_order =
      clCreateCommandQueue(context(), id, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &status);
  ASSERT_EQ(status, CL_SUCCESS);
  const cl_context elsewhere = clCreateContext(nullptr, 1, &id, nullptr, nullptr, &status);
  const cl_command_queue foreign = clCreateCommandQueue(elsewhere, id, 0, &status);
  ASSERT_EQ(status, CL_SUCCESS);
  for (const auto& [queue, why] : {std::pair{out_of_order, "is out of order"}, {foreign, "is of another context"}}) {
    const bp_native_t bad{sizeof bad, BP_NATIVE_CL_QUEUE, reinterpret_cast<uint64_t>(queue)};
    bp_stream_t* none = nullptr;
    const bp_stream_create_t how{sizeof how, 0, &bad, nullptr};
    EXPECT_EQ(slots->sync->stream_create(device, &how, &none, error()), BP_UNSUPPORTED);
    EXPECT_THAT(detail(), HasSubstr(why));
    clReleaseCommandQueue(queue);
  }
  clReleaseContext(elsewhere);
}

TEST_F(SyncTest, AnEventOfTheFrameworkIsWaitedFor) {
  cl_int status = CL_SUCCESS;
  const cl_event event = clCreateUserEvent(context(), &status);
  ASSERT_EQ(status, CL_SUCCESS);
  const bp_native_t native{sizeof native, BP_NATIVE_CL_EVENT, reinterpret_cast<uint64_t>(event)};
  bp_native_semaphore_t* const semaphore = this->semaphore(&native);
  bind(0, of(x), of(y));
  Ended end;
  ok(start(0, &end, {bp_native_point(semaphore, 0, 1)}, {}));
  EXPECT_FALSE(end.yet(kAWhile));
  clSetUserEventStatus(event, CL_COMPLETE);
  EXPECT_EQ(end.status(), BP_OK);
  EXPECT_EQ(y, std::vector<float>(kElements, 2));
  clReleaseEvent(event);
}

}  // namespace
}  // namespace backplane::opencl::testing
