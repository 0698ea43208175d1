// SPDX-License-Identifier: Apache-2.0
#include "runtime/budget.h"

#include <string>

#include "backplane/sdk/fence.hpp"

namespace backplane::cpu {

void Budget::refuse(int64_t bytes) {
  release(bytes);
  throw_too_large(bytes);
}

void Budget::throw_too_large(int64_t bytes) const {
  throw sdk::Error(BP_RESOURCE_EXHAUSTED, std::to_string(bytes) + " bytes are needed and " + std::to_string(used()) +
                                              " are in use; the limit is " + std::to_string(limit_) +
                                              " (option cpu.max_bytes)");
}

}  // namespace backplane::cpu
