// SPDX-License-Identifier: Apache-2.0
#include "sandbox/cpu_starvation.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace backplane::conform {

Starvation starvation_of(pid_t process) {
  Starvation all;
  std::error_code gone;  // threads may end during the iteration
  std::filesystem::directory_iterator threads("/proc/" + std::to_string(process) + "/task", gone);
  for (; !gone && threads != std::filesystem::directory_iterator(); threads.increment(gone)) {
    std::ifstream file(threads->path() / "schedstat");
    uint64_t ran = 0, waited = 0;  // in nanoseconds
    if (file >> ran >> waited) all[std::atoi(threads->path().filename().c_str())] = std::chrono::nanoseconds(waited);
  }
  return all;
}

std::chrono::milliseconds time_starved(const Starvation& before, const Starvation& now) {
  std::chrono::nanoseconds longest{0};
  for (const auto& [thread, waited] : now) {
    const auto earlier = before.find(thread);
    longest = std::max(longest, earlier == before.end() ? waited : waited - earlier->second);
  }
  return std::chrono::duration_cast<std::chrono::milliseconds>(longest);
}

}  // namespace backplane::conform
