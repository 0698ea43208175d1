// SPDX-License-Identifier: Apache-2.0
// Refusals of unaligned memory, for the plugin of one lie.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>

#include "backplane/plugin.h"
#include "backplane/sdk/fence.hpp"
#include "testing/struct_copy.h"

namespace backplane::liar {

// Whether the binding's memory does not start at a multiple of 64 bytes.
inline bool is_unaligned(const bp_binding_t* binding) {
  if (binding == nullptr || binding->tensor == nullptr) return false;
  const bp_buffer_t& buffer = binding->tensor->buffer;
  return (reinterpret_cast<uintptr_t>(buffer.address) + buffer.offset) % 64 != 0;
}

// Wraps `bind`, `run` and `destroy` of one plugin.
struct UnalignedRuns {
  static inline bp_instance_api_t api_, honest_;
  static inline std::mutex mutex_;
  static inline std::map<bp_instance_t*, std::set<uint32_t>> unaligned_;  // slots

  static bp_status_t bind(bp_instance_t* instance, const bp_binding_t* binding, bp_error_t* error) {
    const bp_status_t status = honest_.bind(instance, binding, error);
    if (status != BP_OK) return status;
    const std::lock_guard lock(mutex_);
    if (is_unaligned(binding))
      unaligned_[instance].insert(binding->slot);
    else
      unaligned_[instance].erase(binding->slot);
    return status;
  }
  static bool is_refused(bp_instance_t* instance) {
    const std::lock_guard lock(mutex_);
    return !unaligned_[instance].empty();
  }
  static void destroy(bp_instance_t* instance) {
    {
      const std::lock_guard lock(mutex_);
      unaligned_.erase(instance);
    }
    honest_.destroy(instance);
  }
};

// Makes `run` report `kStatus` if memory of a slot is unaligned.
template <bp_status_t kStatus>
void refuse_unaligned_runs(bp_plugin_t& plugin) {
  UnalignedRuns::honest_ = UnalignedRuns::api_ = taken(*plugin.instance);
  UnalignedRuns::api_.bind = UnalignedRuns::bind;
  UnalignedRuns::api_.destroy = UnalignedRuns::destroy;
  UnalignedRuns::api_.run = [](bp_instance_t* instance, const bp_run_t* run, bp_error_t* error) {
    return UnalignedRuns::is_refused(instance) ? sdk::report(error, kStatus, "memory of a slot is unaligned")
                                               : UnalignedRuns::honest_.run(instance, run, error);
  };
  plugin.instance = &UnalignedRuns::api_;
}

}  // namespace backplane::liar
