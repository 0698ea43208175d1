// SPDX-License-Identifier: Apache-2.0
// Common to all matrix products: their sizes, and the reference implementation.
#pragma once

#include <optional>
#include <vector>

#include "runtime/kernel.h"
#include "runtime/parallel.h"
#include "runtime/shape.h"
#include "runtime/watch.h"

namespace backplane::cpu {

// Maps the index of a product in a batch to the index of the matrix that an operand contributes to it. The map is
// computed, not stored, as a batch may have millions of products.
class MatrixOf {
 public:
  int64_t size() const { return size_; }  // number of products
  int64_t operator[](int64_t index) const {
    int64_t matrix = 0;
    for (int d = extents_.rank() - 1; d > 0; index /= extents_[d--]) matrix += index % extents_[d] * steps_[d];
    return extents_.rank() == 0 ? 0 : matrix + index * steps_[0];
  }
  // Replaces each product by `extent` products. For these the operand has `own` matrices: one for each, or one for all.
  MatrixOf& add_axis(int64_t extent, int64_t own) {
    size_ = cpu::product({size_, extent});
    for (int d = 0; d < steps_.rank(); ++d) steps_[d] *= own;
    if (extent == 1) return *this;
    const int64_t step = own == 1 ? 0 : 1;
    const int last = extents_.rank() - 1;
    if (last >= 0 && steps_[last] == step * extent) {  // as one longer axis
      extents_[last] *= extent;
      steps_[last] = step;
    } else {
      extents_.push_back(extent);
      steps_.push_back(step);
    }
    return *this;
  }

 private:
  int64_t size_ = 1;
  Shape extents_, steps_;
};

struct MatMulSize {
  int64_t m, n, k;
  MatrixOf a_offsets, b_offsets;  // in matrices
  Shape shape;
};
// Returns the sizes of A · B as MatMul defines it. If the shapes do not fit each other, sets `error` and returns
// nullopt. If B has two dimensions, `m` counts the rows of all matrices of A: they are one product.
std::optional<MatMulSize> matmul_size(const Shape& a, const Shape& b, std::string* error);

// Computes C [m, n] = A [m, k] · B [k, n]. a(row, i) and b(column, i) return an element of A or B as `Sum`; c(row,
// column, i, sum) stores an element of C. i is the row-major index of the element in its matrix.
template <class Sum, class A, class B, class C>
void multiply(int64_t m, int64_t n, int64_t k, const A& a, const B& b, const C& c) {
  int64_t grain = 1 + (int64_t{1} << 16) / (1 + n * k);
  parallel(m, grain, [&](int64_t begin, int64_t end) {
    std::vector<Sum> row(static_cast<size_t>(n));
    Pace pace;
    for (int64_t i = begin; i < end; ++i) {
      std::fill(row.begin(), row.end(), Sum{});
      for (int64_t l = 0; l < k; ++l) {
        pace.spend(n);
        Sum factor = a(i, i * k + l);
        for (int64_t j = 0; j < n; ++j) row[static_cast<size_t>(j)] += factor * b(j, l * n + j);
      }
      for (int64_t j = 0; j < n; ++j) c(i, j, i * n + j, row[static_cast<size_t>(j)]);
    }
  });
}

}  // namespace backplane::cpu
