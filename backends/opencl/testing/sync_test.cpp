// SPDX-License-Identifier: Apache-2.0
// Runs that continue after the call that started them has returned, and the points that they wait for and signal.
#include <gmock/gmock.h>

#include <chrono>
#include <future>
#include <thread>

#include "testing/sync_fixture.h"

namespace backplane::opencl::testing {
namespace {

using ::testing::HasSubstr;

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

// Abandoning a device ends the waits for its streams and semaphores. Work that has not been started is never started.
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
  of_host.signal(1);  // ends the plugin's thread that waits for the point, but the queue stays blocked
  EXPECT_FALSE(in_stream.yet(kAWhile));
  EXPECT_EQ(cl_layer().launches, launches);
}

// Calls that other threads began before the device was abandoned may arrive afterwards.
TEST_F(SyncTest, AnAbandonedDeviceStartsNothing) {
  bp_stream_t* const stream = this->stream();
  bind(0, of(x), of(y));
  Ended warm;
  ok(start(0, &warm, {}, {}));
  ASSERT_EQ(warm.status(), BP_OK);
  const bp_buffer_t from = of(x), to = of(y);
  bp_device_t* const device = this->device;
  bp_instance_t* const instance = instances[0];
  const uint64_t launches = cl_layer().launches;
  abandon();
  bp_run_t run{};
  run.size = sizeof run;
  run.stream = stream;
  EXPECT_EQ(slots->instance->run(instance, &run, error()), BP_DEVICE_LOST);
  EXPECT_THAT(detail(), HasSubstr("the device was abandoned"));
  for (const bp_run_t* in : {static_cast<const bp_run_t*>(nullptr), static_cast<const bp_run_t*>(&run)}) {
    const bp_copy_t copy{sizeof copy, 0, &from, &to, kElements * sizeof(float), in};
    EXPECT_EQ(slots->memory->copy(device, &copy, error()), BP_DEVICE_LOST);
    const bp_fill_t fill{sizeof fill, 4, 0, &to, in};
    EXPECT_EQ(slots->memory->fill(device, &fill, error()), BP_DEVICE_LOST);
  }
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

}  // namespace
}  // namespace backplane::opencl::testing
