// SPDX-License-Identifier: Apache-2.0
// Common to all matrix products: their sizes, and the reference implementation.
#pragma once

#include <optional>
#include <vector>

#include "runtime/choices.h"
#include "runtime/kernel.h"
#include "runtime/parallel.h"
#include "runtime/watch.h"

namespace backplane::cpu {

struct MatMulSize {
  int64_t m, n, k;
  // For each product of the batch, the indices of the matrices of A and of B.
  std::vector<int64_t> a_offsets;
  std::vector<int64_t> b_offsets;
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

ImplementationNames matmul_implementations();

}  // namespace backplane::cpu
