// SPDX-License-Identifier: Apache-2.0
// The ONNX versions that a device knows: it sees nodes in the newest form that these versions have.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace backplane {

struct KnownOpsets {
  std::map<std::string, uint32_t, std::less<>> opsets;  // the newest by domain; nodes of any other are shown unchanged
  uint32_t ir_version = 0;                              // the newest for serialized models; 0: the loader's newest
};

}  // namespace backplane
