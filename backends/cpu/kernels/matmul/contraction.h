// SPDX-License-Identifier: Apache-2.0
// Sums of products of two float tensors over some of their dimensions, or sums of one tensor. They are computed as
// matrix products where that is possible and worthwhile, otherwise in loops over rows.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/common/odometer.h"
#include "kernels/common/strided_copy.h"

namespace backplane::cpu {

// A dimension with its stride in each operand, which is 0 if the operand does not have the dimension.
struct ContractedAxis {
  int64_t extent, a, b;
};

class Contraction {
 public:
  using Axes = std::vector<ContractedAxis>;
  // `kept` are the dimensions of the result, in order; `summed` are those to sum over. No extent may be 0. To sum a
  // single operand, give b strides of 0 here, and pass the address of the number 1 as b to run().
  Contraction(Axes kept, Axes summed);

  int64_t scratch_floats() const { return scratch_floats_; }
  void run(const float* a, const float* b, float* y, float* scratch) const;

 private:
  // An operand or the result: its batch dimensions with their strides, and the layout of its matrices.
  struct Operand {
    Dimensions batch;
    int64_t stride = 0;
    bool transposed = false;
    std::optional<StridedCopy> copy;  // of an operand into scratch memory, or of the result out of it
    int64_t at = 0;                   // offset of the copy in scratch memory, in floats
  };
  struct Products {
    int64_t m = 1, n = 1, k = 1;
    Operand a, b, y;
  };
  // For loops over rows: the kept and summed dimensions with their strides in each operand. The innermost ones are in
  // `row` and `sum`.
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
