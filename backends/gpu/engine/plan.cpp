// SPDX-License-Identifier: Apache-2.0
#include "engine/plan.h"

#include "backplane/sdk/arena.hpp"

namespace backplane::gpu {

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

}  // namespace backplane::gpu
