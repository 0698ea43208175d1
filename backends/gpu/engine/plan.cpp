// SPDX-License-Identifier: Apache-2.0
#include "engine/plan.h"

#include <algorithm>

#include "backplane/sdk/arena.hpp"

namespace backplane::gpu {
namespace {

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
  std::vector<sdk::ArenaTensor> tensors(plan.storages.size());
  for (size_t i = 0; i < plan.launches.size(); ++i) {
    if (plan.launches[i].once) continue;
    for (const auto* side : {&plan.launches[i].reads, &plan.launches[i].writes}) {
      for (const uint32_t storage : *side) {
        if (plan.storages[storage].place == Storage::Place::kArena) tensors[storage].touch(i);
      }
    }
  }
  for (size_t i = 0; i < tensors.size(); ++i) tensors[i].bytes = plan.storages[i].bytes;
  plan.arena_bytes = sdk::pack(tensors, alignment);
  for (size_t i = 0; i < tensors.size(); ++i) plan.storages[i].offset = tensors[i].offset;
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

}  // namespace backplane::gpu
