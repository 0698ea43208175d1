// SPDX-License-Identifier: Apache-2.0
// StreamedProgram: `run` returns before the work is done. The stream keeps the order of runs and reports failures.
#include "backplane/sdk/streamed_program.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <future>

#include "abi/testing/plugin_under_test.h"

namespace streamed_program {
namespace {

using namespace backplane::sdk;
using backplane::testing::TinyGraph;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::function<void()> on_launch;  // called by `launch`

class AddOne : public StreamedProgram {
 public:
  using StreamedProgram::StreamedProgram;
  void launch(const std::vector<const void*>& inputs, const std::vector<void*>& outputs,
              const RunSync&) const override {
    if (on_launch) on_launch();
    for (int i = 0; i < 3; ++i) static_cast<float*>(outputs[0])[i] = static_cast<const float*>(inputs[0])[i] + 1;
  }
};
class TestDevice : public Device, public HostStreams {
 public:
  using Device::Device;
  void cover(Coverage&) override {}
  std::unique_ptr<Program> compile(const Compile& what) override { return std::make_unique<AddOne>(*this, what); }
};
class TestBackend : public Backend {
 public:
  using Backend::Backend;
  uint32_t device_count(std::string&) override { return 1; }
  bp_device_info_t device_info(uint32_t) override { return {}; }
  std::unique_ptr<Device> open(uint32_t, const Options&, const bp_device_open_t&) override {
    return std::make_unique<TestDevice>(*this);
  }
};

struct Ended {
  std::promise<bp_status_t> promise;
  uint64_t run = 0;    // bp_error_t.run
  uint32_t flags = 0;  // bp_error_t.flags
  static void done(void* self, bp_status_t status, const bp_error_t* error) {
    if (error != nullptr) static_cast<Ended*>(self)->run = error->run;
    if (error != nullptr) static_cast<Ended*>(self)->flags = error->flags;
    static_cast<Ended*>(self)->promise.set_value(status);
  }
  bp_status_t status() { return promise.get_future().get(); }
};

// A host semaphore that is signaled once, and keeps the failure's status, run and flags.
struct Signalled {
  struct What {
    bp_status_t status;
    uint64_t run;
    uint32_t flags;
  };
  std::promise<What> promise;
  bp_point_t point() { return bp_host_point(reinterpret_cast<bp_semaphore_t*>(this), 1); }
  What get() { return promise.get_future().get(); }
  static void BP_CALL signal(const bp_host_t*, bp_semaphore_t* semaphore, uint64_t, const bp_error_t* failure) {
    auto& promise = reinterpret_cast<Signalled*>(semaphore)->promise;
    promise.set_value(failure == nullptr ? What{} : What{failure->status, failure->run, failure->flags});
  }
};

// The host's wait for a semaphore whose work, run 41, failed with its device.
bp_status_t BP_CALL fail_wait(const bp_host_t*, bp_semaphore_t*, uint64_t, uint64_t, const bp_cancel_t*,
                              bp_error_t* error) {
  Error failure = Error::device_lost("the device is gone");
  failure.status = BP_DEPENDENCY_FAILED;
  failure.flags |= BP_ERROR_ABANDONED;
  failure.run = 41;
  return report(error, failure);
}

bp_status_t status_of_wait(Stream& stream, uint64_t* out_run = nullptr) {
  const auto failure = caught([&] { stream.wait(BP_FOREVER); });
  if (failure && out_run != nullptr) *out_run = failure->run;
  return failure ? failure->status : BP_OK;
}

class Streamed : public ::testing::Test {
 protected:
  Streamed() {
    on_launch = nullptr;
    host_.size = sizeof host_;
    host_.semaphore_signal = Signalled::signal;
    host_.semaphore_wait = fail_wait;
    how_.size = sizeof how_;
    how_.host = &host_;
    backend_ = std::make_unique<TestBackend>(how_);
    device = std::make_unique<TestDevice>(*backend_);
    graph_.output(graph_.node("AddOne", 1, {graph_.input("x", {3})}, {3}));
    bp_compile_t what{};
    what.size = sizeof what;
    what.graph = graph_.get();
    program_ = device->compile(Compile(backend_->host(), what));
    instance = program_->instance();
  }
  void bind(Instance& to, uint32_t slot, std::vector<float>& data) {
    const int64_t extent = 3;
    bp_tensor_t tensor{};
    tensor.size = sizeof tensor;
    tensor.dtype = BP_DTYPE_FLOAT;
    tensor.rank = 1;
    tensor.extents = &extent;
    tensor.buffer.address = data.data();
    tensor.buffer.bytes = data.size() * sizeof(float);
    bp_binding_t binding{};
    binding.size = sizeof binding;
    binding.slot = slot;
    binding.tensor = &tensor;
    to.bind(binding);
  }
  static bp_run_t run(Ended* ended, Stream* stream = nullptr) {
    bp_run_t run{};
    run.size = sizeof run;
    run.stream = reinterpret_cast<bp_stream_t*>(stream);
    run.self = ended;
    if (ended != nullptr) run.done = Ended::done;
    return run;
  }

  std::vector<float> x{1, 2, 3}, y = std::vector<float>(3), z = std::vector<float>(3);
  std::unique_ptr<TestDevice> device;

 private:
  bp_host_t host_{};
  bp_backend_create_t how_{};
  std::unique_ptr<Backend> backend_;
  TinyGraph graph_;

 protected:
  std::unique_ptr<Program> program_;
  std::unique_ptr<Instance> instance;
};

TEST_F(Streamed, TheCallReturnsBeforeTheWorkAndOneRunsAtATime) {
  std::promise<void> gate;
  on_launch = [opened = gate.get_future().share()] { opened.wait(); };
  bind(*instance, 0, x);
  bind(*instance, BP_SLOT_OUTPUT, y);
  Ended ended;
  instance->submit(run(&ended));
  try {
    instance->submit(run(nullptr));
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.status, BP_BUSY);
  }
  gate.set_value();
  EXPECT_EQ(ended.status(), BP_OK);
  EXPECT_THAT(y, ElementsAre(2, 3, 4));
  on_launch = nullptr;
  Ended again;
  instance->submit(run(&again));
  EXPECT_EQ(again.status(), BP_OK);
}

TEST_F(Streamed, RunsOfAStreamFollowEachOther) {
  const auto second = program_->instance();
  const auto stream = device->stream(bp_stream_create_t{sizeof(bp_stream_create_t), 0, nullptr, nullptr});
  bind(*instance, 0, x);
  bind(*instance, BP_SLOT_OUTPUT, y);
  bind(*second, 0, y);
  bind(*second, BP_SLOT_OUTPUT, z);
  instance->submit(run(nullptr, stream.get()));
  Ended ended;
  second->submit(run(&ended, stream.get()));
  EXPECT_EQ(ended.status(), BP_OK);
  EXPECT_THAT(z, ElementsAre(3, 4, 5));
}

TEST_F(Streamed, RunsOfAnInstanceFollowEachOtherInAStream) {
  std::promise<void> gate;
  on_launch = [opened = gate.get_future().share()] { opened.wait(); };
  const auto stream = device->stream(bp_stream_create_t{sizeof(bp_stream_create_t), 0, nullptr, nullptr});
  const auto other = device->stream(bp_stream_create_t{sizeof(bp_stream_create_t), 0, nullptr, nullptr});
  bind(*instance, 0, y);  // in place: each run adds one
  bind(*instance, BP_SLOT_OUTPUT, y);
  for (int i = 0; i < 3; ++i) instance->submit(run(nullptr, stream.get()));
  for (Stream* const elsewhere : {other.get(), static_cast<Stream*>(nullptr)}) {
    const auto failure = caught([&] { instance->submit(run(nullptr, elsewhere)); });
    EXPECT_EQ(failure ? failure->status : BP_OK, BP_BUSY);
  }
  Ended ended;
  instance->submit(run(&ended, stream.get()));
  gate.set_value();
  EXPECT_EQ(ended.status(), BP_OK);
  EXPECT_THAT(y, ElementsAre(4, 4, 4));
  instance->submit(run(nullptr, other.get()));  // the runs in the first stream have ended
  EXPECT_EQ(status_of_wait(*other), BP_OK);
  EXPECT_THAT(y, ElementsAre(5, 5, 5));
}

// A host point carries the failure of its run, or of an earlier run in the stream. That failure is still reported
// afterwards.
TEST_F(Streamed, AHostPointCarriesAFailureAndDoesNotReportIt) {
  int launches = 0;
  on_launch = [&] {
    if (++launches == 1) throw Error(BP_TIMED_OUT, "late");
  };
  const auto stream = device->stream(bp_stream_create_t{sizeof(bp_stream_create_t), 0, nullptr, nullptr});
  bind(*instance, 0, x);
  bind(*instance, BP_SLOT_OUTPUT, y);
  const auto start = [&](uint64_t id, Signalled* signalled, Ended* ended = nullptr, Stream* in = nullptr) {
    bp_run_t run = Streamed::run(ended, in);
    run.id = id;
    const bp_point_t point = signalled != nullptr ? signalled->point() : bp_point_t{};
    run.signals = &point;
    run.signal_count = signalled != nullptr ? 1 : 0;
    instance->submit(run);
  };
  for (const bool by_done : {false, true}) {
    launches = 0;
    Signalled first, second;
    start(77, &first, nullptr, stream.get());
    start(78, &second, nullptr, stream.get());
    const auto of_first = first.get(), of_second = second.get();
    EXPECT_EQ(of_first.status, BP_TIMED_OUT);
    EXPECT_EQ(of_first.run, 0u);  // 0: the run that signals the point
    EXPECT_EQ(of_first.flags, 0u);
    EXPECT_EQ(of_second.status, BP_TIMED_OUT);
    EXPECT_EQ(of_second.run, 77u);
    EXPECT_EQ(of_second.flags, BP_ERROR_OF_RUN);
    if (by_done) {
      Ended ended;
      Signalled third;
      start(79, &third, &ended, stream.get());
      EXPECT_EQ(ended.status(), BP_TIMED_OUT);
      EXPECT_EQ(ended.run, 77u);
      EXPECT_EQ(third.get().status, BP_TIMED_OUT);
    } else {
      uint64_t failed = 0;
      EXPECT_EQ(status_of_wait(*stream, &failed), BP_TIMED_OUT);
      EXPECT_EQ(failed, 77u);
    }
    Signalled last;
    start(80, &last, nullptr, stream.get());  // a failure is reported once
    EXPECT_EQ(last.get().status, BP_OK);
    EXPECT_EQ(status_of_wait(*stream), BP_OK);
  }
  // Two submissions with the same id are parts of one run.
  launches = 0;
  Ended whole;
  start(77, nullptr, nullptr, stream.get());
  start(77, nullptr, &whole, stream.get());
  EXPECT_EQ(whole.status(), BP_TIMED_OUT);
  EXPECT_EQ(whole.run, 0u);
  // Runs without an id are different runs.
  launches = 0;
  Signalled unnamed, later;
  start(0, &unnamed, nullptr, stream.get());
  EXPECT_EQ(unnamed.get().flags, 0u);
  start(0, &later, nullptr, stream.get());
  EXPECT_EQ(later.get().flags, BP_ERROR_OF_RUN);
  EXPECT_EQ(status_of_wait(*stream), BP_TIMED_OUT);
  // Without a stream, no later run reports the failure that a point of this run carries.
  launches = 0;
  Signalled alone;
  start(81, &alone);
  EXPECT_EQ(alone.get().status, BP_TIMED_OUT);
  Ended next;
  start(82, nullptr, &next);
  EXPECT_EQ(next.status(), BP_OK);
}

TEST_F(Streamed, AFailureIsReportedByDoneOrByTheStream) {
  on_launch = [] { throw Error(BP_TIMED_OUT, "late"); };
  const auto stream = device->stream(bp_stream_create_t{sizeof(bp_stream_create_t), 0, nullptr, nullptr});
  bind(*instance, 0, x);
  bind(*instance, BP_SLOT_OUTPUT, y);
  Ended ended;
  instance->submit(run(&ended, stream.get()));
  EXPECT_EQ(ended.status(), BP_TIMED_OUT);
  instance->submit(run(nullptr, stream.get()));
  try {
    stream->wait(BP_FOREVER);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.text, HasSubstr("late"));
  }
}

// The framework must learn that a device was abandoned, whichever run reports it: memory must stay allocated.
TEST_F(Streamed, TheFailureOfAHostPointKeepsItsFlagsAndItsRun) {
  bind(*instance, 0, x);
  bind(*instance, BP_SLOT_OUTPUT, y);
  Ended ended;
  Signalled awaited;  // `fail_wait` does not use it
  const bp_point_t point = awaited.point();
  bp_run_t run = Streamed::run(&ended);
  run.waits = &point;
  run.wait_count = 1;
  instance->submit(run);
  EXPECT_EQ(ended.status(), BP_DEPENDENCY_FAILED);
  EXPECT_EQ(ended.flags, BP_ERROR_DEVICE_LOST | BP_ERROR_ABANDONED);
  EXPECT_EQ(ended.run, 41u);
}

TEST_F(Streamed, AnUnboundSlotIsNamed) {
  bind(*instance, 0, x);
  try {
    instance->submit(run(nullptr));
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.status, BP_BAD_STATE);
    EXPECT_THAT(error.text, HasSubstr("output 'AddOne0' is not bound"));
  }
}

TEST_F(Streamed, TheEndOfAnInstanceWaitsForItsRun) {
  std::atomic<bool> ran{false};
  on_launch = [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ran = true;
  };
  const auto stream = device->stream(bp_stream_create_t{sizeof(bp_stream_create_t), 0, nullptr, nullptr});
  bind(*instance, 0, x);
  bind(*instance, BP_SLOT_OUTPUT, y);
  instance->submit(run(nullptr, stream.get()));
  instance.reset();
  EXPECT_TRUE(ran);
}

TEST_F(Streamed, RefusesNativeHandles) {
  const bp_native_t native{sizeof native, BP_NATIVE_CL_QUEUE, 1};
  EXPECT_THROW(device->stream({sizeof(bp_stream_create_t), 0, &native, nullptr}), Error);
  EXPECT_THROW(device->semaphore({sizeof(bp_semaphore_create_t), 0, 0, &native, nullptr}), Error);
  EXPECT_EQ(device->semaphore({sizeof(bp_semaphore_create_t), 0, 7, nullptr, nullptr})->value(), 7u);
}

}  // namespace
}  // namespace streamed_program
