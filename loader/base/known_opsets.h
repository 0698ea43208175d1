// SPDX-License-Identifier: Apache-2.0
// What a device knows of ONNX: nodes are presented to it in the newest form that fits.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace backplane {

struct KnownOpsets {
  std::map<std::string, uint32_t, std::less<>> opsets;  // the newest by domain; others are presented as they are
  uint32_t ir_version = 0;                              // the newest for serialized models; 0: the loader's own
};

}  // namespace backplane
