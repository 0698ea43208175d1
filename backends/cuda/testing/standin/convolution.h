// SPDX-License-Identifier: Apache-2.0
// Test code: a convolution by plain loops, as the stand-in for cuDNN computes it.
#pragma once

#include <array>
#include <vector>

#include "testing/standin/number.h"

namespace standin {

using Extents = std::vector<int64_t>;

// A dense tensor with its channels before the spatial dimensions.
struct DenseTensor {
  lt::DataType type = lt::kF32;
  Extents extents;
  int64_t id = 0, alignment = 0;

  uint64_t count() const;
  uint64_t bytes() const { return count() * (type == lt::kF32 ? 4 : 2); }
};

// y = conv(x, w) + c + bias, followed by Relu if `relu`
struct Convolution {
  DenseTensor x, w, y, c, bias;  // a convolution without c or bias has no extents for it
  Extents stride, dilation, before, after;
  bool relu = false;

  bool is_consistent() const;  // whether extents and types fit each other
  // `data` are the addresses of x, w, y, c and bias. `is_tf32`: rounds the elements of x and w to TF32.
  void compute_all(bool is_tf32, const std::array<void*, 5>& data) const;
};

}  // namespace standin
