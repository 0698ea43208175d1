// SPDX-License-Identifier: Apache-2.0
// One folder of ONNX test data, run on one device through the loader.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "backplane/client.hpp"
#include "journal/result.h"
#include "judge/compare.h"

namespace backplane::conform {

// The device under test: by name among the backends that the loader finds, or the first of a single backend.
struct Target {
  std::string device;  // may be empty with a plugin
  std::string plugin;  // a library or manifest, or empty
  uint32_t threads = 0;
};

class OnnxCases {
 public:
  // Throws Error if there is no such device; the text lists the devices that exist.
  explicit OnnxCases(const Target& target);
  // Runs all data sets of the folder, with all nodes on the device. Throws std::exception if the test data itself is
  // invalid.
  Result run(const std::filesystem::path& folder, const Tolerance& tolerance) const;

 private:
  Environment env_;
  std::string device_;
  uint64_t id_ = 0;
};

}  // namespace backplane::conform
