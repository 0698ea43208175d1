// SPDX-License-Identifier: Apache-2.0
// A command of backplane-conform. It returns the exit status, or throws an exception that cli::guarded turns into one.
#pragma once

#include "cli/verb.h"

namespace backplane::conform {

using Verb = cli::Verb<int>;

}  // namespace backplane::conform
