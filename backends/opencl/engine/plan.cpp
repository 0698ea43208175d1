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

// The bytes of a launch's storage, that launches after it may have to wait for.
struct Access {
  const Storage* storage;
  uint32_t launch;
  bool writes;

  uint64_t begin() const { return storage->offset; }
  uint64_t end() const { return storage->offset + storage->bytes; }
  bool both_in_arena(const Access& other) const {
    return storage->place == Storage::Place::kArena && other.storage->place == Storage::Place::kArena;
  }
  bool waits_for(const Access& earlier) const {
    if (launch == earlier.launch || !(writes || earlier.writes)) return false;
    return storage == earlier.storage || (both_in_arena(earlier) && begin() < earlier.end() && earlier.begin() < end());
  }
  // Who would wait for the earlier one waits for this one too.
  bool hides(const Access& earlier) const {
    if (!writes) return false;
    return storage == earlier.storage ||
           (both_in_arena(earlier) && begin() <= earlier.begin() && earlier.end() <= end());
  }
};

// Inputs and constants are never written, and all that write a fault write one of equal worth.
bool needs_order(const Storage& storage) {
  return storage.place == Storage::Place::kArena || storage.place == Storage::Place::kOutput;
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

void order(Plan& plan) {
  std::vector<Access> accesses;  // that nothing hides
  std::vector<bool> is_last(plan.launches.size(), true);
  for (uint32_t l = 0; l < plan.launches.size(); ++l) {
    Launch& launch = plan.launches[l];
    std::vector<Access> own;
    for (const bool writes : {false, true}) {
      for (const uint32_t storage : writes ? launch.writes : launch.reads) {
        if (needs_order(plan.storages[storage])) own.push_back({&plan.storages[storage], l, writes});
      }
    }
    launch.after.clear();
    for (const Access& access : own) {
      for (const Access& earlier : accesses) {
        if (access.waits_for(earlier)) launch.after.push_back(earlier.launch);
      }
    }
    std::ranges::sort(launch.after);
    launch.after.erase(std::unique(launch.after.begin(), launch.after.end()), launch.after.end());
    for (const uint32_t before : launch.after) is_last[before] = false;
    for (const Access& access : own) std::erase_if(accesses, [&](const Access& a) { return access.hides(a); });
    accesses.insert(accesses.end(), own.begin(), own.end());
  }
  plan.last.clear();
  for (uint32_t l = 0; l < plan.launches.size(); ++l) {
    if (is_last[l]) plan.last.push_back(l);
  }
}

}  // namespace backplane::opencl
