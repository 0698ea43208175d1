// SPDX-License-Identifier: Apache-2.0
// Rewrites canonical nodes in the older forms that a library reads, if the older form of a node has the same meaning.
#pragma once

#include <span>
#include <string>

#include "onnx_model.h"

namespace onnxifi_backend {

// The newest opset of ai.onnx that the table covers. Devices report it as the newest that they accept.
inline constexpr uint32_t kNewestOpset = 28;
// The oldest opset in which models are written.
inline constexpr uint32_t kOldestOpset = 7;

// Rewrites every node of ai.onnx in the form that its operator has in opset `opset`, and removes pads that `auto_pad`
// overrides. Returns why this is impossible for a node, or an empty string. If it is impossible, the model is left
// partly rewritten.
std::string downgrade(OnnxModel& onnx_model, uint32_t opset);

// ---- the table, for its test ---------------------------------------------------------------------------------------

class Rewrite;

// The change of an operator in version `since`: how a node in the form of this version is rewritten in the previous
// form. The function returns why this is impossible, or an empty string. A form that has no step differs from the
// previous one only in the types that it allows.
struct Step {
  std::string_view op;
  uint32_t since;
  std::string (*function)(Rewrite&);
  std::string_view attribute = {};  // used by the function: the attribute that the version added
  std::string_view neutral = {};    // used by the function: the value with which this attribute changes nothing
};

// An operator and the versions in which it got its forms, the newest first; a 0 ends the list.
struct Forms {
  std::string_view op;
  uint8_t since[9];
};

std::span<const Step> steps();
std::span<const Forms> forms();

}  // namespace onnxifi_backend
