// SPDX-License-Identifier: Apache-2.0
// Runs one folder of ONNX test data on one device through the loader.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "backplane/client.hpp"
#include "journal/result.h"
#include "judge/compare.h"

namespace backplane::conform {

// The device under test: the one named `device`, or the first device of `plugin`.
struct Target {
  std::string device;    // may be empty if `plugin` is set
  std::string plugin;    // library or manifest; may be empty
  uint32_t threads = 0;  // shared by the backends; 0: one for each core that the process may use
};

class OnnxCases {
 public:
  // Throws Error if there is no such device. The message lists the available devices.
  explicit OnnxCases(const Target& target);
  // The library of the device's backend; empty if the backend is linked into this program.
  std::filesystem::path library() const;
  // Runs the data sets of the folder, up to the first that does not pass, with fallback to other devices forbidden.
  // Throws std::exception if the test data is invalid.
  Result run(const std::filesystem::path& folder, const Tolerance& tolerance) const;

 private:
  Environment env_;
  std::string device_;
  uint64_t id_ = 0;
};

}  // namespace backplane::conform
