// SPDX-License-Identifier: Apache-2.0
// Host memory that other processes can map: the table of the draft extension, the same for every host.
#pragma once

#include "backplane/ext/draft/shared_memory.h"

namespace backplane {

const bp_draft_shared_memory_api_t* shared_memory_api();

}  // namespace backplane
