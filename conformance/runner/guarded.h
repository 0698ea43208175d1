// SPDX-License-Identifier: Apache-2.0
// The fence of every command: no exception passes it.
#pragma once

#include <functional>

namespace backplane::conform {

// Gives what `run` gives. An exception becomes one line on standard error: 2 for Usage, 1 for any other.
int guarded(const std::function<int()>& run);

}  // namespace backplane::conform
