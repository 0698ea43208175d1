// SPDX-License-Identifier: Apache-2.0
// An extension table whose functions take the plugin's own handles. Tests get it with
// bp_env_get_extension("partial/handles", 1).
#pragma once

#include "backplane/plugin.h"

namespace backplane::partial {

struct HandlesApi {
  uint32_t(BP_CALL* device_index)(const bp_device_t* device);
  uint32_t(BP_CALL* program_nodes)(const bp_program_t* program);
  bp_status_t(BP_CALL* stream_wait)(bp_stream_t* stream);
  uint64_t(BP_CALL* semaphore_value)(bp_native_semaphore_t* semaphore);
};

}  // namespace backplane::partial
