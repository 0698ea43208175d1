// SPDX-License-Identifier: Apache-2.0
// Convolutions computed by a driver's library, such as cuDNN (Driver::convolutions).
#pragma once

#include "backplane/sdk/window.hpp"
#include "engine/library.h"

namespace backplane::gpu {

// y = activation(conv(a, b) + c + bias), where b are the weights; summed in fp32. All tensors are dense, of the same
// type, and have their channels before the spatial dimensions: a is [batch, channels, in…], b is
// [maps, channels / groups, kernel…], c and y are [batch, maps, out…].
struct ConvolutionProblem {
  static constexpr const char* kKind = "convolution";

  bp_dtype_t dtype = BP_DTYPE_FLOAT;
  uint32_t compute_types = 0;  // BP_COMPUTE_* that are allowed
  sdk::Window window;          // in, kernel and out extents, strides, dilations, padding
  int64_t batch = 0, channels = 0, maps = 0, groups = 1;
  // Libraries fuse only complete chains: if there is a c or a Relu, there is a bias too, which may be all zeros.
  bool has_c = false;
  bool has_bias = false;  // [maps], one element per output channel
  bool relu = false;

  double operations() const;
  std::string text() const;  // "f32 1x64x56x56 64 maps 3x3 pads 1,1,1,1 bias relu"
  LibraryOperands operands() const;
};
using ConvolutionLibrary = Library<ConvolutionProblem>;

}  // namespace backplane::gpu
