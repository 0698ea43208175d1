// SPDX-License-Identifier: Apache-2.0
// Removes the transposes around an NhwcConv. Exporters write them where the rest of the model has its channels first.
#pragma once

#include "passes/fusion_graph.h"

namespace backplane::cpu {

struct NhwcConvCall {
  uint32_t call = BP_NONE;      // the call that now computes the convolution; BP_NONE if there is none
  bool channels_first = false;  // whether its result is [N, C, …] instead of [N, …, C]
};

// If `call` is an NhwcConv, removes a Transpose directly before or after it that only moves the channels, provided that
// no other node reads the value between the two. Returns the call that then computes the convolution, which may be
// `call` itself. For an NhwcConv of 16-bit floats, changes nothing and returns BP_NONE.
NhwcConvCall find_nhwc_conv(FusionGraph& graph, uint32_t call);

}  // namespace backplane::cpu
