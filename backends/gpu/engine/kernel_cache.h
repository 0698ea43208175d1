// SPDX-License-Identifier: Apache-2.0
// Kernels built for one device: once in the process, and from disk when they were built before.
#pragma once

#include <chrono>
#include <future>
#include <map>
#include <mutex>

#include "backplane/sdk/file_cache.hpp"
#include "backplane/sdk/host.hpp"
#include "engine/device_caps.h"
#include "engine/driver.h"
#include "engine/kernel_source.h"

namespace backplane::gpu {

class KernelCache {
 public:
  KernelCache(const sdk::Host& host, const DeviceCaps& caps, const Driver& driver);

  // A kernel of its own for the caller: arguments are set on it. Thread-safe; blocks while it is built. Throws
  // sdk::Error with the build log.
  Kernel kernel(const KernelSource& source);
  // Builds what is missing of these on the host's threads.
  void build(const std::vector<const KernelSource*>& sources);

 private:
  Module module(const KernelSource& source);
  Module make(const KernelSource& source, const std::string& text, const std::string& options);
  // Logs and traces that it was compiled.
  void report(const KernelSource& source, std::chrono::steady_clock::time_point begin) const;

  const sdk::Host& host_;
  const DeviceCaps& caps_;
  const Driver& driver_;
  std::string options_;  // of all kernels
  sdk::FileCache disk_;
  std::mutex mutex_;
  std::map<std::string, std::shared_future<Module>> modules_;  // by options and text
};

}  // namespace backplane::gpu
