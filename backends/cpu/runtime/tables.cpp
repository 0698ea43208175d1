// SPDX-License-Identifier: Apache-2.0
#include "runtime/tables.h"

namespace backplane::cpu {

bool may_build_tables(const PlanContext& context, int64_t bytes) {
  return context.tables != nullptr ? context.tables->take(bytes) : TableAllowance().take(bytes);
}

}  // namespace backplane::cpu
