// SPDX-License-Identifier: Apache-2.0
// Formats: admin-guide/cgroup-v2.rst (memory.max, cpu.max) and admin-guide/cgroup-v1/memory.rst in Linux's
// documentation.
#include "host/cgroup.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

namespace backplane {
namespace {

namespace fs = std::filesystem;

// Calls visit(folder) for the process's group of a controller, and for each group above it. In /proc/self/cgroup the
// unified hierarchy has an empty list of controllers. In a container, the process's own group may be mounted as the
// root.
template <class Visit>
void for_each_group(const std::string& controller, const fs::path& mount, Visit visit) {
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    // For the unified hierarchy this is ",,", which only an empty `controller` matches.
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    if (controllers.find("," + controller + ",") == std::string::npos) continue;
    for (fs::path group = fs::path(line.substr(second + 1)).relative_path(); !group.empty();
         group = group.parent_path())
      visit(mount / group);
    visit(mount);
    return;
  }
}

// The number at the start of a file. UINT64_MAX if it contains "max" or does not exist.
uint64_t number(const fs::path& file) {
  uint64_t value;
  return std::ifstream(file) >> value ? value : UINT64_MAX;
}

}  // namespace

uint64_t cgroup_memory_limit() {
  uint64_t limit = UINT64_MAX;
  for_each_group("", "/sys/fs/cgroup",
                 [&](const fs::path& group) { limit = std::min(limit, number(group / "memory.max")); });
  for_each_group("memory", "/sys/fs/cgroup/memory",
                 [&](const fs::path& group) { limit = std::min(limit, number(group / "memory.limit_in_bytes")); });
  return limit;
}

uint32_t cgroup_cpu_limit() {
  uint64_t limit = UINT32_MAX;
  auto bound = [&](uint64_t quota, uint64_t period) {
    if (quota != 0 && quota < UINT64_MAX / 2 && period != 0) limit = std::min(limit, (quota + period - 1) / period);
  };
  for_each_group("", "/sys/fs/cgroup", [&](const fs::path& group) {
    uint64_t quota, period;
    if (std::ifstream(group / "cpu.max") >> quota >> period) bound(quota, period);
  });
  for_each_group("cpu", "/sys/fs/cgroup/cpu", [&](const fs::path& group) {
    bound(number(group / "cpu.cfs_quota_us"), number(group / "cpu.cfs_period_us"));
  });
  return static_cast<uint32_t>(limit);
}

}  // namespace backplane
