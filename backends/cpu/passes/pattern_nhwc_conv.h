// SPDX-License-Identifier: Apache-2.0
// Removes the transposes around an NhwcConv. Exporters write them where the rest of the model has its channels first.
#pragma once

#include "passes/fusion_graph.h"

namespace backplane::cpu {

struct NhwcConvCall {
  uint32_t call = BP_NONE;      // the call that now computes the convolution; BP_NONE if there is none
  bool channels_first = false;  // whether its result is [N, C, …] instead of [N, …, C]
};

// If `call` is an NhwcConv, removes the transposes directly before and after it, and returns the call that then
// computes the convolution. Leaves NhwcConvs of 16-bit floats as they are.
NhwcConvCall find_nhwc_conv(FusionGraph& graph, uint32_t call);

}  // namespace backplane::cpu
