// SPDX-License-Identifier: Apache-2.0
// Merges the journals of all shards into one.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "journal/journal.h"

namespace backplane::conform {

// Returns the journal of the whole run, sorted by case name. Throws std::runtime_error if the parts are of different
// runs, or a case is missing or duplicated. Each part comes with the name that errors use for it.
Record merge(const std::vector<std::pair<std::string, Record>>& parts);

}  // namespace backplane::conform
