// SPDX-License-Identifier: Apache-2.0
// Removes the transposes around an NhwcConv, which exporters write where the rest of the model has its channels first.
#pragma once

#include "passes/fusion_graph.h"

namespace backplane::cpu {

struct NhwcConvCall {
  uint32_t call = BP_NONE;      // the call that computes the convolution's result, or BP_NONE if it is not one
  bool channels_first = false;  // the order of the result
};

// Returns where the convolution is after the transposes before and after it were removed, if `call` is one.
NhwcConvCall find_nhwc_conv(FusionGraph& graph, uint32_t call);

}  // namespace backplane::cpu
