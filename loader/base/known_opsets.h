// SPDX-License-Identifier: Apache-2.0
// The ONNX versions that a device supports. The device sees a node in the form that these versions define. A node
// that cannot be expressed in that form is refused for the device, with BP_REASON_OPSET (view/view.h).
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace backplane {

struct KnownOpsets {
  std::map<std::string, uint32_t, std::less<>>
      opsets;               // newest version by domain; nodes of other domains are shown unchanged
  uint32_t ir_version = 0;  // newest version for serialized models; 0: the loader's newest
};

}  // namespace backplane
