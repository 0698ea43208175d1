// SPDX-License-Identifier: Apache-2.0
// The machine on which a run happens.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace backplane::conform {

struct Machine {
  std::string processor, system, kernel;
  uint32_t cores = 0;
  uint64_t memory_bytes = 0;
};
Machine this_machine();

// The path of the loader that this program is linked with.
std::filesystem::path loader_file();

}  // namespace backplane::conform
