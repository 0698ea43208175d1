// SPDX-License-Identifier: Apache-2.0
// Tolerances for a vendor's own cases, read from a file in the folder of the cases: see vendor/README.md.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "judge/compare.h"

namespace backplane::conform {

class Tolerances {
 public:
  Tolerances() = default;  // ONNX's own tolerance for every case
  // Reads `data`/tolerance.json. Without that file, every case has ONNX's tolerance. Throws Usage, which names the file
  // and the key.
  static Tolerances read(const std::filesystem::path& data);

  // The tolerance of the last entry whose pattern matches the case's name, or the default if no pattern matches.
  Tolerance of(const std::string& case_name) const;
  // Patterns that match none of the names, most likely because they are misspelled.
  std::vector<std::string> unused(const std::vector<std::string>& case_names) const;

 private:
  Tolerance all_;
  std::vector<std::pair<std::string, Tolerance>> entries_;
};

}  // namespace backplane::conform
