// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

namespace backplane {

// Never destroyed, and reachable, so that leak checkers do not report it: what an abandoned device may still use.
// Thread-safe.
void keep_for_good(std::shared_ptr<const void> object);

}  // namespace backplane
