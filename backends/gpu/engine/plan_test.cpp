// SPDX-License-Identifier: Apache-2.0
// Checks how a plan's arena is packed.
#include "engine/plan.h"

#include <gmock/gmock.h>

namespace backplane::gpu {
namespace {

using Place = Storage::Place;

// Builds a plan in a few lines: storages, then launches that read and write them.
struct PlanBuilder {
  Plan plan;
  uint32_t storage(Place place, uint64_t bytes = 64) {
    plan.storages.push_back({.place = place, .bytes = bytes});
    return static_cast<uint32_t>(plan.storages.size() - 1);
  }
  void launch(std::vector<uint32_t> reads, std::vector<uint32_t> writes, bool once = false) {
    plan.launches.push_back({.reads = std::move(reads), .writes = std::move(writes), .once = once});
  }
  uint64_t offset(uint32_t storage) const { return plan.storages[storage].offset; }
};

TEST(Pack, TensorsThatNeverLiveAtOnceShareMemory) {
  PlanBuilder s;
  const uint32_t x = s.storage(Place::kInput), a = s.storage(Place::kArena), b = s.storage(Place::kArena),
                 c = s.storage(Place::kArena), y = s.storage(Place::kOutput);
  s.launch({x}, {a});
  s.launch({a}, {b});
  s.launch({b}, {c});
  s.launch({c}, {y});
  pack(s.plan, 64);
  EXPECT_EQ(s.plan.arena_bytes, 128u);
  EXPECT_EQ(s.offset(a), s.offset(c));
  EXPECT_NE(s.offset(a), s.offset(b));
}

TEST(Pack, TensorsThatLiveAtOnceDoNotOverlap) {
  PlanBuilder s;
  const uint32_t x = s.storage(Place::kInput), a = s.storage(Place::kArena, 100), b = s.storage(Place::kArena, 30),
                 c = s.storage(Place::kArena, 200), y = s.storage(Place::kOutput);
  s.launch({x}, {a});
  s.launch({a}, {b});
  s.launch({a}, {c});
  s.launch({b, c}, {y});
  pack(s.plan, 32);
  for (const auto& [one, other] : {std::pair{a, b}, {a, c}, {b, c}}) {
    const bool before = s.offset(one) + s.plan.storages[one].bytes <= s.offset(other);
    const bool after = s.offset(other) + s.plan.storages[other].bytes <= s.offset(one);
    EXPECT_TRUE(before || after) << one << " and " << other;
    EXPECT_EQ(s.offset(one) % 32, 0u);
  }
}

// Launches that run once, when the plan is prepared, write constants, which are not in the arena.
TEST(Pack, LaunchesThatRunOnceTakeNoMemory) {
  PlanBuilder s;
  const uint32_t w = s.storage(Place::kConstant), k = s.storage(Place::kConstant), x = s.storage(Place::kInput),
                 y = s.storage(Place::kOutput);
  s.launch({w}, {k}, true);
  s.launch({x, k}, {y});
  pack(s.plan, 64);
  EXPECT_EQ(s.plan.arena_bytes, 0u);
}

}  // namespace
}  // namespace backplane::gpu
