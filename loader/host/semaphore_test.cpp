// SPDX-License-Identifier: Apache-2.0
#include "host/semaphore.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "host/cancel.h"

namespace backplane {
namespace {

uint64_t now_ns() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
}

TEST(Semaphore, WaitersWakeWhenTheValueIsReached) {
  bp_semaphore_t semaphore;
  std::thread signaller([&] {
    for (uint64_t i = 1; i <= 100; ++i) semaphore.signal(i);
  });
  EXPECT_TRUE(semaphore.wait(100).ok());
  signaller.join();
  semaphore.signal(5);  // ignored, because the value never decreases
  uint64_t value = 0;
  EXPECT_TRUE(semaphore.query(value).ok());
  EXPECT_EQ(value, 100u);
}

TEST(Semaphore, WaitsEndByDeadlineCancelAndFailure) {
  bp_semaphore_t semaphore(1);
  EXPECT_EQ(semaphore.wait(2, now_ns() + 3'000'000).code(), BP_TIMED_OUT);
  EXPECT_EQ(semaphore.wait(2, 0).code(), BP_TIMED_OUT);

  bp_cancel_t cancel;
  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    cancel.set();
  });
  EXPECT_EQ(semaphore.wait(2, BP_FOREVER, &cancel).code(), BP_CANCELLED);
  canceller.join();

  std::thread failing([&] { semaphore.fail(3, Status(BP_DEVICE_LOST, "it fell off the bus").with_node(7)); });
  const Status failed = semaphore.wait(2);
  failing.join();
  EXPECT_EQ(failed.code(), BP_DEPENDENCY_FAILED);
  EXPECT_THAT(std::string(failed.text()), ::testing::HasSubstr("it fell off the bus"));
  EXPECT_EQ(failed.node(), 7u);
  uint64_t value = 0;
  EXPECT_EQ(semaphore.query(value).code(), BP_DEPENDENCY_FAILED);
  EXPECT_EQ(value, 3u);
}

TEST(Semaphore, AFailureBelongsToItsInterval) {
  bp_semaphore_t semaphore(1);
  semaphore.fail(3, {BP_INTERNAL, "the second step"});
  semaphore.signal(4);
  for (uint64_t value : {0u, 1u, 4u}) EXPECT_TRUE(semaphore.wait(value).ok()) << value;
  for (uint64_t value : {2u, 3u}) EXPECT_EQ(semaphore.wait(value).code(), BP_DEPENDENCY_FAILED) << value;
  uint64_t value = 0;
  EXPECT_TRUE(semaphore.query(value).ok());
  semaphore.fail(4, {BP_INTERNAL, "adds no value"});
  EXPECT_TRUE(semaphore.wait(4).ok());
  semaphore.reset(2);
  EXPECT_TRUE(semaphore.wait(2).ok());
  EXPECT_EQ(semaphore.wait(3, 0).code(), BP_TIMED_OUT);
}

// No failure is lost, even if there are many. After records are merged, the values between them count as failed too.
TEST(Semaphore, NoFailureIsForgotten) {
  bp_semaphore_t semaphore;
  for (uint64_t value = 1; value <= 100; value += 2) {
    semaphore.fail(value, {BP_INTERNAL, "odd"});
    semaphore.signal(value + 1);
  }
  for (uint64_t value = 1; value <= 100; value += 2)
    EXPECT_EQ(semaphore.wait(value).code(), BP_DEPENDENCY_FAILED) << value;
  for (uint64_t value = 72; value <= 100; value += 2) EXPECT_TRUE(semaphore.wait(value).ok()) << value;
}

TEST(Semaphore, FailuresThatFollowEachOtherAreMergedFirst) {
  bp_semaphore_t semaphore;
  semaphore.fail(1, {BP_INTERNAL, "the first"});
  semaphore.signal(100);
  for (uint64_t value = 101; value <= 140; ++value) semaphore.fail(value, {BP_INTERNAL, "all of these"});
  for (uint64_t value : {2u, 50u, 100u}) EXPECT_TRUE(semaphore.wait(value).ok()) << value;
  for (uint64_t value : {1u, 101u, 120u, 140u}) EXPECT_EQ(semaphore.wait(value).code(), BP_DEPENDENCY_FAILED) << value;
}

}  // namespace
}  // namespace backplane
