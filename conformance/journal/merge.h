// SPDX-License-Identifier: Apache-2.0
// One journal made of the journals of all shards.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "journal/journal.h"

namespace backplane::conform {

// The journal of the whole run, results by case. Throws std::runtime_error where the parts are not of one run, or a
// case is missing or there twice. `parts` come with the names under which errors call them.
Record merge(const std::vector<std::pair<std::string, Record>>& parts);

}  // namespace backplane::conform
