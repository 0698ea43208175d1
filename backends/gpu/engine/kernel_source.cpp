// SPDX-License-Identifier: Apache-2.0
#include "engine/kernel_source.h"

#include "backplane/sdk/fence.hpp"

namespace backplane::gpu {

std::string_view kernel_text(std::string_view name) {
  for (const KernelFile& file : kernel_files()) {
    if (file.name == name) return file.text;
  }
  throw sdk::Error(BP_INTERNAL,
                   "no kernel file is named '" + std::string(name) + "'; add it to backends/gpu/CMakeLists.txt");
}

std::string KernelSource::text() const {
  std::string all(kernel_text("types"));
  all += code;
  if (!file.empty()) all += kernel_text(file);
  return all;
}

}  // namespace backplane::gpu
