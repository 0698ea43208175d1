// SPDX-License-Identifier: Apache-2.0
// Merges the journals of all shards into one.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "journal/journal.h"

namespace backplane::conform {

// Returns the journal of the whole run, sorted by case name. Each part is a journal and the name that error messages
// use for it. Throws std::runtime_error if the parts belong to different runs, or if a case is missing or duplicated.
Record merge(const std::vector<std::pair<std::string, Record>>& parts);

}  // namespace backplane::conform
