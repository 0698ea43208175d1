// SPDX-License-Identifier: Apache-2.0
#include "engine/plan.h"

#include <algorithm>
#include <numeric>

namespace backplane::opencl {
namespace {

// First and last launch that touches a storage.
struct Life {
  size_t first = SIZE_MAX;
  size_t last = 0;
  bool meets(const Life& other) const { return first <= other.last && other.first <= last; }
};

std::vector<Life> lives(const Plan& plan) {
  std::vector<Life> life(plan.storages.size());
  for (size_t i = 0; i < plan.launches.size(); ++i) {
    if (plan.launches[i].once) continue;
    for (const auto* side : {&plan.launches[i].reads, &plan.launches[i].writes}) {
      for (const uint32_t storage : *side) {
        life[storage].first = std::min(life[storage].first, i);
        life[storage].last = std::max(life[storage].last, i);
      }
    }
  }
  return life;
}

}  // namespace

void pack(Plan& plan, uint64_t alignment) {
  const std::vector<Life> life = lives(plan);
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < plan.storages.size(); ++i) {
    if (plan.storages[i].place == Storage::Place::kArena && life[i].first != SIZE_MAX) order.push_back(i);
  }
  // The largest first, each into the lowest gap among those already placed that live when it does.
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return plan.storages[a].bytes > plan.storages[b].bytes; });
  std::vector<uint32_t> placed;  // by offset
  for (const uint32_t i : order) {
    Storage& storage = plan.storages[i];
    const uint64_t bytes = (std::max<uint64_t>(storage.bytes, 1) + alignment - 1) / alignment * alignment;
    uint64_t offset = 0;
    for (const uint32_t other : placed) {
      const Storage& neighbour = plan.storages[other];
      if (!life[i].meets(life[other])) continue;
      if (offset + bytes <= neighbour.offset) break;
      offset = std::max(offset, neighbour.offset + (neighbour.bytes + alignment - 1) / alignment * alignment);
    }
    storage.offset = offset;
    plan.arena_bytes = std::max(plan.arena_bytes, offset + bytes);
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), i,
                         [&](uint32_t a, uint32_t b) { return plan.storages[a].offset < plan.storages[b].offset; }),
        i);
  }
}

}  // namespace backplane::opencl
