// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

namespace backplane {

// Keeps an object alive forever, for memory that an abandoned device may still use. Leak checkers see it as reachable.
// Thread-safe.
void keep_for_good(std::shared_ptr<const void> object) noexcept;

}  // namespace backplane
