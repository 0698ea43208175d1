// SPDX-License-Identifier: Apache-2.0
// The kernels of one device. Each is compiled, or loaded from disk, once per process.
#pragma once

#include <chrono>
#include <functional>
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

  // Returns a new kernel object; the caller sets its arguments. Thread-safe; blocks while its module is built. If the
  // build fails, throws sdk::Error with the build log.
  Kernel kernel(const KernelSource& source);
  // Builds the missing modules on the host's threads. Calls `check`, unless it is empty, before each build; an
  // exception that `check` throws ends this call.
  void build(const std::vector<const KernelSource*>& sources, const std::function<void()>& check = {});

 private:
  Module module(const KernelSource& source);
  Module make(const KernelSource& source, const std::string& text, const std::string& options);
  // Logs and traces the compilation.
  void report(const KernelSource& source, std::chrono::steady_clock::time_point begin) const;

  const sdk::Host& host_;
  const DeviceCaps& caps_;
  const Driver& driver_;
  std::string options_;  // compiler options of all kernels
  sdk::FileCache disk_;
  std::mutex mutex_;
  std::map<std::string, std::shared_future<Module>> modules_;  // keyed by options and text
};

}  // namespace backplane::gpu
