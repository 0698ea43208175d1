// SPDX-License-Identifier: Apache-2.0
#include "engine/kernel_source.h"

#include "backplane/sdk/fence.hpp"

namespace backplane::gpu {
namespace {

std::string_view file_text(std::string_view name) {
  for (const KernelFile& file : kernel_files()) {
    if (file.name == name) return file.text;
  }
  throw sdk::Error(BP_INTERNAL, "no kernel file is named '" + std::string(name) + "'; it is missing in CMakeLists.txt");
}

}  // namespace

std::string KernelSource::text() const {
  std::string all(file_text("types"));
  all += code;
  if (!file.empty()) all += file_text(file);
  return all;
}

}  // namespace backplane::gpu
