// SPDX-License-Identifier: Apache-2.0
// The product of two float tensors summed over some of their dimensions, or the sums of one: as matrix products where
// possible, else as loops over rows.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/common/odometer.h"
#include "kernels/common/strided_copy.h"

namespace backplane::cpu {

// A dimension with its stride in each operand, 0 in an operand that lacks it.
struct ContractedAxis {
  int64_t extent, a, b;
};

class Contraction {
 public:
  using Axes = std::vector<ContractedAxis>;
  // `kept`: the result's dimensions, in its order; no extent is 0. Without a second operand, b is a single 1 with
  // strides of 0.
  Contraction(Axes kept, Axes summed);

  int64_t scratch_floats() const { return scratch_floats_; }
  void run(const float* a, const float* b, float* y, float* scratch) const;

 private:
  // An operand or the result: its batch dimensions with their strides, and the layout of its matrices.
  struct Operand {
    Dimensions batch;
    int64_t stride = 0;
    bool transposed = false;
    std::optional<StridedCopy> copy;  // into scratch memory; for the result, from it
    int64_t at = 0;                   // the copy's offset in scratch memory
  };
  struct Products {
    int64_t m = 1, n = 1, k = 1;
    Operand a, b, y;
  };
  // Kept and summed dimensions with their strides in each operand, the innermost apart, for loops over rows.
  struct Rows {
    Dimensions kept_a, kept_b, summed_a, summed_b;
    ContractedAxis row{1, 0, 0}, sum{1, 0, 0};
  };

  void plan_products(const Axes& kept, const Axes& summed);
  void plan_rows(const Axes& kept, const Axes& summed);
  void run_products(const float* a, const float* b, float* y, float* scratch) const;
  void run_rows(const float* a, const float* b, float* y) const;

  std::optional<Products> products_;
  Rows rows_;
  int64_t scratch_floats_ = 0;
};

}  // namespace backplane::cpu
