// SPDX-License-Identifier: Apache-2.0
// Streams: the order of runs, their failures, and command queues and events of the framework.
#include <gmock/gmock.h>

#include <chrono>

#include "testing/sync_fixture.h"

namespace backplane::opencl::testing {
namespace {

using StreamsTest = SyncTest;

using ::testing::HasSubstr;

// Copies, a fill and runs, in memory of the device and of the host, take effect in the order of the calls.
TEST_F(StreamsTest, AStreamKeepsItsOrder) {
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
TEST_F(StreamsTest, AStreamReportsEarlierFailures) {
  bp_stream_t* const stream = this->stream();
  bind(0, of(x), of(y));
  bind(1, of(y), of(z));
  for (const int instance : {0, 1}) {  // makes the plans and maps the bound memory: in a stream, mapping would wait
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

// The fixture destroys the streams, then the semaphores, then the instances.
TEST_F(StreamsTest, AStreamEndsBeforeThePointsOfItsRuns) {
  bp_stream_t *const one = this->stream(), *const two = this->stream();
  bp_native_semaphore_t *const first = semaphore(), *const second = semaphore();
  bind(0, of(x), of(y));
  bind(1, of(y), of(z));
  ok(start(0, nullptr, {bp_native_point(first, 0, 1)}, {bp_native_point(second, 0, 1)}, 0, one));
  ok(start(1, nullptr, {bp_native_point(second, 0, 1)}, {}, 0, two));
  ok(slots->sync->semaphore_signal(first, 1, error()));
}

// Without a flush, a driver may never start the work in its queue, and a wait for the signal would never end.
TEST_F(StreamsTest, WhatARunSignalsIsFlushed) {
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

// However many runs are in flight, starting another queries the driver about only a few of them.
TEST_F(StreamsTest, ALongQueueCostsEachRunNoMore) {
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
TEST_F(StreamsTest, StreamsWaitForEachOtherAndForTheHost) {
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
TEST_F(StreamsTest, AHostPointCarriesAFailureAndDoesNotReportIt) {
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

TEST_F(StreamsTest, StreamsAreCommandQueues) {
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

TEST_F(StreamsTest, AnEventOfTheFrameworkIsWaitedFor) {
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

// PoCL reports an event that had failed before it was imported as one that succeeded.
TEST_F(StreamsTest, AFailedEventOfTheFrameworkIsAFailure) {
  cl_int status = CL_SUCCESS;
  const cl_event event = clCreateUserEvent(context(), &status);
  ASSERT_EQ(status, CL_SUCCESS);
  clSetUserEventStatus(event, CL_OUT_OF_RESOURCES);
  const bp_native_t native{sizeof native, BP_NATIVE_CL_EVENT, reinterpret_cast<uint64_t>(event)};
  bp_native_semaphore_t* const semaphore = this->semaphore(&native);
  bind(0, of(x), of(y));
  Ended end;
  ok(start(0, &end, {bp_native_point(semaphore, 0, 1)}, {}));
  EXPECT_EQ(end.status(), BP_DEPENDENCY_FAILED);
  clReleaseEvent(event);
}

// Neither semaphore_signal nor a run, copy or fill signals an imported event. The next test tries it with the loader.
TEST_F(StreamsTest, AnEventOfTheFrameworkIsSignaledByNothingElse) {
  cl_int status = CL_SUCCESS;
  const cl_event event = clCreateUserEvent(context(), &status);
  ASSERT_EQ(status, CL_SUCCESS);
  const bp_native_t native{sizeof native, BP_NATIVE_CL_EVENT, reinterpret_cast<uint64_t>(event)};
  bp_native_semaphore_t* const semaphore = this->semaphore(&native);
  EXPECT_EQ(slots->sync->semaphore_signal(semaphore, 1, error()), BP_UNSUPPORTED);
  EXPECT_THAT(detail(), HasSubstr("signaled by its event alone"));
  const bp_point_t point = bp_native_point(semaphore, 0, 1);
  bind(0, of(x), of(y));
  Ended end;
  EXPECT_EQ(start(0, &end, {}, {point}), BP_UNSUPPORTED);
  EXPECT_EQ(start(0, &end, {}, {point}, 0, stream()), BP_UNSUPPORTED);
  const bp_buffer_t from = of(x), to = buffer();
  bp_run_t run{};
  run.size = sizeof run;
  run.stream = stream();
  run.signals = &point;
  run.signal_count = 1;
  const bp_copy_t copy{sizeof copy, 0, &from, &to, kElements * sizeof(float), &run};
  EXPECT_EQ(slots->memory->copy(device, &copy, error()), BP_UNSUPPORTED);
  const bp_fill_t fill{sizeof fill, 4, 0, &to, &run};
  EXPECT_EQ(slots->memory->fill(device, &fill, error()), BP_UNSUPPORTED);
  EXPECT_FALSE(end.yet(kAWhile));
  uint64_t value = 7;
  ok(slots->sync->semaphore_query(semaphore, &value, error()));
  EXPECT_EQ(value, 0u);
  clSetUserEventStatus(event, CL_COMPLETE);
  EXPECT_EQ(wait(semaphore, 1), BP_OK);
  clReleaseEvent(event);
}

TEST_F(StreamsTest, TheLoaderSignalsNoEventOfTheFramework) {
  const Environment env = opencl();
  uint64_t device = 0;
  for (const Device& one : env.devices())
    if (device == 0 && one.name.starts_with("opencl")) device = one.info.id;
  const Stream stream = env.stream(device);
  cl_context context = nullptr;
  clGetCommandQueueInfo(reinterpret_cast<cl_command_queue>(stream.native().handle), CL_QUEUE_CONTEXT, sizeof context,
                        &context, nullptr);
  cl_int status = CL_SUCCESS;
  const cl_event event = clCreateUserEvent(context, &status);
  ASSERT_EQ(status, CL_SUCCESS);
  const bp_native_t native{sizeof native, BP_NATIVE_CL_EVENT, reinterpret_cast<uint64_t>(event)};
  const bp_semaphore_create_t how{sizeof how, 0, 0, &native, nullptr};
  bp_native_semaphore_t* semaphore = nullptr;
  detail::call(api().native_semaphore_create, env.get(), device, &how, &semaphore);
  const Session session = env.compile(small_model(), only_opencl());
  Exec exec = session.exec();
  exec.bind(0, small_input(2, 0));
  RunOptions run;
  run.signals = {bp_native_point(semaphore, device, 1)};
  for (const Stream* in : {static_cast<const Stream*>(nullptr), &stream}) {
    run.stream = in;
    const Error refused = failure([&] { exec.run(run); });
    EXPECT_EQ(refused.status(), BP_UNSUPPORTED);
    EXPECT_THAT(refused.text(), HasSubstr("only its event signals it"));
  }
  EXPECT_EQ(failure([&] { detail::call(api().native_semaphore_signal, semaphore, uint64_t{1}); }).status(),
            BP_UNSUPPORTED);
  uint64_t value = 7;
  detail::call(api().native_semaphore_query, semaphore, &value);
  EXPECT_EQ(value, 0u);
  clSetUserEventStatus(event, CL_COMPLETE);
  detail::call(api().native_semaphore_wait, semaphore, uint64_t{1}, BP_FOREVER);
  api().native_semaphore_destroy(semaphore);
  clReleaseEvent(event);
}

}  // namespace
}  // namespace backplane::opencl::testing
