// SPDX-License-Identifier: Apache-2.0
#include "certify/machine.h"

#include <dlfcn.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>
#include <stdexcept>
#include <thread>

#include "backplane/loader.h"

namespace backplane::conform {
namespace {

// The value after `separator` in the line that begins with `key`, without quotes; empty if there is none.
std::string value_in(const char* file, const std::string& key, char separator) {
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    const size_t at = line.find(separator);
    if (!line.starts_with(key) || at == std::string::npos) continue;
    const size_t first = line.find_first_not_of(" \t\"", at + 1), last = line.find_last_not_of(" \t\"");
    return first == std::string::npos ? "" : line.substr(first, last - first + 1);
  }
  return "";
}

}  // namespace

Machine this_machine() {
  utsname kernel = {};
  uname(&kernel);
  return {
      .processor = value_in("/proc/cpuinfo", "model name", ':'),
      .system = value_in("/etc/os-release", "PRETTY_NAME", '='),
      .kernel = std::string(kernel.release) + " " + kernel.machine,
      .cores = std::thread::hardware_concurrency(),
      .memory_bytes = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE))};
}

std::filesystem::path loader_file() {
  Dl_info info = {};
  if (dladdr(reinterpret_cast<const void*>(&bp_env_create), &info) == 0 || info.dli_fname == nullptr)
    throw std::runtime_error("the loader's file is not known");
  return info.dli_fname;
}

}  // namespace backplane::conform
