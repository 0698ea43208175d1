// SPDX-License-Identifier: Apache-2.0
#include "sandbox/cpu_starvation.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace backplane::conform {

std::chrono::milliseconds time_starved(pid_t process) {
  uint64_t longest = 0;
  std::error_code gone;  // threads may end during the iteration
  std::filesystem::directory_iterator threads("/proc/" + std::to_string(process) + "/task", gone);
  for (; !gone && threads != std::filesystem::directory_iterator(); threads.increment(gone)) {
    std::ifstream file(threads->path() / "schedstat");
    uint64_t ran = 0, waited = 0;  // in nanoseconds
    if (file >> ran >> waited) longest = std::max(longest, waited);
  }
  return std::chrono::milliseconds(longest / 1'000'000);
}

}  // namespace backplane::conform
