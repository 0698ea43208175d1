// SPDX-License-Identifier: Apache-2.0
#include "run/run_end.h"

#include <gtest/gtest.h>

#include <memory>

#include "testing/allocation_failure.h"

namespace backplane {
namespace {

TEST(StreamRuns, ARunThatAPluginEndsAndRefusesIsRecycledOnce) {
  const auto runs = std::make_shared<StreamRuns>("device 'd'");
  int ended = 0;
  bp_run_t order{};
  order.size = sizeof order;
  order.self = &ended;
  order.done = [](void* self, bp_status_t, const bp_error_t*) { ++*static_cast<int*>(self); };
  bp_run_t first = order, second = order, third = order;
  {
    const StreamRuns::Offer refused = runs->offer(order, first);
    first.done(first.self, BP_OK, nullptr);
  }
  StreamRuns::Offer one = runs->offer(order, second), other = runs->offer(order, third);
  one.accept();
  other.accept();
  ASSERT_NE(second.self, third.self);
  second.done(second.self, BP_OK, nullptr);
  third.done(third.self, BP_OK, nullptr);
  EXPECT_EQ(ended, 3);
  third.done(third.self, BP_OK, nullptr);  // a fault of the plugin
  EXPECT_EQ(ended, 3);
}

struct Seen {
  bp_status_t status = BP_OK;
  uint32_t flags = 0;
};

// A run whose end is written to `seen`.
bp_run_t order_for(Seen& seen) {
  bp_run_t order{};
  order.size = sizeof order;
  order.self = &seen;
  order.done = [](void* self, bp_status_t status, const bp_error_t* error) {
    *static_cast<Seen*>(self) = {status, error->flags};
  };
  return order;
}

TEST(StreamRuns, AFailureIsReportedWithoutMemory) {
  const auto runs = std::make_shared<StreamRuns>("device 'd'");
  Seen seen;
  const bp_run_t order = order_for(seen);
  bp_run_t run = order;
  StreamRuns::Offer offer = runs->offer(order, run);
  offer.accept();
  no_memory = true;
  run.done(run.self, BP_CANCELLED, nullptr);
  no_memory = false;
  EXPECT_EQ(seen.status, BP_RESOURCE_EXHAUSTED);
}

TEST(StreamRuns, ADeviceIsGivenUpWithoutMemory) {
  const auto runs = std::make_shared<StreamRuns>("device 'd'");
  Seen seen, later;
  const bp_run_t order = order_for(seen), next = order_for(later);
  bp_run_t run = order, second = next;
  StreamRuns::Offer offer = runs->offer(order, run), other = runs->offer(next, second);
  offer.accept();
  const Status lost(BP_DEVICE_LOST, "device 'd' hangs");
  no_memory = true;
  runs->give_up(lost);
  no_memory = false;
  EXPECT_EQ(seen.status, BP_DEVICE_LOST);
  EXPECT_TRUE(seen.flags & BP_ERROR_ABANDONED);
  other.accept();
  EXPECT_EQ(later.status, BP_DEVICE_LOST);
  EXPECT_TRUE(later.flags & BP_ERROR_ABANDONED);
}

// A framework that saw only the earlier failure would conclude that the run has ended, and free memory in use.
TEST(StreamRuns, AnEarlierFailureDoesNotHideThatARunWasAbandoned) {
  const auto runs = std::make_shared<StreamRuns>("device 'd'");
  Seen seen;
  const bp_run_t order = order_for(seen);
  bp_run_t run = order;
  StreamRuns::Offer offer = runs->offer(order, run);
  offer.accept();
  runs->keep(Status(BP_INTERNAL, "a failure of an earlier run"));
  runs->give_up(Status(BP_DEVICE_LOST, "device 'd' hangs"));
  EXPECT_EQ(seen.status, BP_DEVICE_LOST);
  EXPECT_TRUE(seen.flags & BP_ERROR_ABANDONED);
}

}  // namespace
}  // namespace backplane
