// SPDX-License-Identifier: Apache-2.0
// Which kernels of a plan wait for which: a queue out of order knows nothing else.
#include "engine/plan.h"

#include <gmock/gmock.h>

namespace backplane::gpu {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Place = Storage::Place;

// A plan in a few lines: storages, then launches that read and write them.
struct Sketch {
  Plan plan;
  uint32_t storage(Place place, uint64_t bytes = 64) {
    plan.storages.push_back({.place = place, .bytes = bytes});
    return static_cast<uint32_t>(plan.storages.size() - 1);
  }
  void launch(std::vector<uint32_t> reads, std::vector<uint32_t> writes) {
    plan.launches.push_back({.reads = std::move(reads), .writes = std::move(writes)});
  }
  const std::vector<uint32_t>& after(size_t launch) const { return plan.launches[launch].after; }
};

TEST(Order, BranchesWaitForTheirInputAndTheJoinForBoth) {
  Sketch s;
  const uint32_t x = s.storage(Place::kInput), a = s.storage(Place::kArena), b = s.storage(Place::kArena),
                 c = s.storage(Place::kArena), y = s.storage(Place::kOutput), w = s.storage(Place::kConstant);
  s.launch({x, w}, {a});
  s.launch({a, w}, {b});
  s.launch({a, x}, {c});
  s.launch({b, c}, {y});
  pack(s.plan, 64);
  order(s.plan);
  EXPECT_THAT(s.after(0), IsEmpty());
  EXPECT_THAT(s.after(1), ElementsAre(0));
  EXPECT_THAT(s.after(2), ElementsAre(0));
  EXPECT_THAT(s.after(3), ElementsAre(1, 2));
  EXPECT_THAT(s.plan.last, ElementsAre(3));
}

// What lies where another tensor lay is written when that was read for the last time.
TEST(Order, MemoryUsedAgainIsWaitedFor) {
  Sketch s;
  const uint32_t x = s.storage(Place::kInput), a = s.storage(Place::kArena), b = s.storage(Place::kArena),
                 c = s.storage(Place::kArena), y = s.storage(Place::kOutput), z = s.storage(Place::kOutput);
  s.launch({x}, {a});
  s.launch({a}, {y});
  s.launch({x}, {b});  // lies where `a` was, though nothing of it is read
  s.launch({b}, {c});
  s.launch({c}, {z});
  pack(s.plan, 64);
  ASSERT_EQ(s.plan.storages[a].offset, s.plan.storages[b].offset);
  ASSERT_NE(s.plan.storages[b].offset, s.plan.storages[c].offset);
  order(s.plan);
  EXPECT_THAT(s.after(2), ElementsAre(0, 1));
  EXPECT_THAT(s.after(3), ElementsAre(2));
  EXPECT_THAT(s.plan.last, ElementsAre(4));
}

TEST(Order, PiecesThatOverlapInPartAreWaitedForToo) {
  Sketch s;
  const uint32_t whole = s.storage(Place::kArena, 256), low = s.storage(Place::kArena, 64),
                 high = s.storage(Place::kArena, 64), y = s.storage(Place::kOutput);
  s.launch({}, {whole});
  s.launch({whole}, {y});
  s.launch({}, {low});
  s.launch({}, {high});
  s.launch({}, {whole});
  s.plan.storages[high].offset = 192;
  order(s.plan);
  EXPECT_THAT(s.after(2), ElementsAre(0, 1));
  EXPECT_THAT(s.after(3), ElementsAre(0, 1));  // and not for 2, which lies elsewhere
  EXPECT_THAT(s.after(4), ElementsAre(0, 1, 2, 3));
}

// Kernels that write parts of one output one after the other, and one that changes it where it lies.
TEST(Order, WritersOfOneOutputKeepTheirOrder) {
  Sketch s;
  const uint32_t x = s.storage(Place::kInput), y = s.storage(Place::kOutput), z = s.storage(Place::kOutput),
                 fault = s.storage(Place::kFault);
  s.launch({x}, {y, fault});
  s.launch({x, y}, {y, fault});
  s.launch({x}, {z, fault});  // faults alone need no wait
  order(s.plan);
  EXPECT_THAT(s.after(1), ElementsAre(0));
  EXPECT_THAT(s.after(2), IsEmpty());
  EXPECT_THAT(s.plan.last, ElementsAre(1, 2));
}

}  // namespace
}  // namespace backplane::gpu
