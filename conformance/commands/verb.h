// SPDX-License-Identifier: Apache-2.0
// A command of backplane-conform: it returns the exit status, or throws, which cli::guarded turns into one.
#pragma once

#include "cli/verb.h"

namespace backplane::conform {

using Verb = cli::Verb<int>;

}  // namespace backplane::conform
