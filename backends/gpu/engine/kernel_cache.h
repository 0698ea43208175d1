// SPDX-License-Identifier: Apache-2.0
// Kernels built for one device: once in the process, and from disk when they were built before.
#pragma once

#include <chrono>
#include <future>
#include <map>
#include <mutex>

#include "backplane/sdk/file_cache.hpp"
#include "backplane/sdk/host.hpp"
#include "engine/facts.h"
#include "engine/kernel_source.h"

namespace backplane::opencl {

class KernelCache {
 public:
  KernelCache(const sdk::Host& host, const Facts& facts, cl_context context);

  // A kernel of its own for the caller: arguments are set on it. Thread-safe; blocks while it is built. Throws
  // sdk::Error with the build log.
  ClKernel kernel(const KernelSource& source);
  // Builds what is missing of these on the host's threads.
  void build(const std::vector<const KernelSource*>& sources);

 private:
  ClProgram program(const KernelSource& source);
  ClProgram make(const KernelSource& source, const std::string& text, const std::string& options);
  ClProgram from_binary(const std::string& binary, const std::string& options);
  ClProgram from_source(const std::string& text, const std::string& options);
  void tell(const KernelSource& source, std::chrono::steady_clock::time_point begin) const;  // that it was compiled
  std::string binary_of(cl_program program) const;

  const sdk::Host& host_;
  const Facts& facts_;
  cl_context context_;
  std::string options_;  // of all kernels
  sdk::FileCache disk_;
  std::mutex mutex_;
  std::map<std::string, std::shared_future<ClProgram>> programs_;  // by options and text
};

}  // namespace backplane::opencl
