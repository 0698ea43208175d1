// SPDX-License-Identifier: Apache-2.0
// Det: the determinants of square matrices, by Gaussian elimination with partial pivoting.
#include <cmath>

#include "kernels/common/function_kernel.h"
#include "kernels/common/support.h"
#include "runtime/watch.h"

namespace backplane::cpu {
namespace {

double determinant(std::vector<double>& m, int64_t n) {
  const auto at = [&](int64_t row, int64_t column) -> double& { return m[static_cast<size_t>(row * n + column)]; };
  double result = 1;
  Pace pace;
  for (int64_t k = 0; k < n; ++k) {
    int64_t pivot = k;
    for (int64_t row = k + 1; row < n; ++row)  // NaN counts as the largest, so that it reaches the result
      if (std::fabs(at(row, k)) > std::fabs(at(pivot, k)) || std::isnan(at(row, k))) pivot = row;
    if (at(pivot, k) == 0) return 0;
    if (pivot != k) {
      for (int64_t column = k; column < n; ++column) std::swap(at(pivot, column), at(k, column));
      result = -result;
    }
    result *= at(k, k);
    for (int64_t row = k + 1; row < n; ++row) {
      pace.spend(n - k);
      const double factor = at(row, k) / at(k, k);
      for (int64_t column = k + 1; column < n; ++column) at(row, column) -= factor * at(k, column);
    }
  }
  return result;
}

Verdict supports(const Node& node) {
  return accepts(node, 1, {kFloatTypes});
}

std::unique_ptr<Kernel> create(const Node&) {
  return make_kernel([](Tensors inputs) -> Plan {
    const Shape& shape = inputs[0].shape;
    const int rank = shape.rank();
    if (rank < 2 || shape[rank - 1] != shape[rank - 2])
      return fail("the input has shape " + to_string(shape) + "; it must end in two equal extents");
    const int64_t n = shape[rank - 1];
    return make_plan({Shape(shape.span().first(static_cast<size_t>(rank - 2)))}, [n](Tensors in, Tensors out) {
      dispatch<Floats>(in[0].dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        for (int64_t i = 0; i < out[0].shape.elements(); ++i) {
          const T* matrix = in[0].as<T>() + i * n * n;
          std::vector<double> copy(matrix, matrix + n * n);
          out[0].as<T>()[i] = static_cast<T>(static_cast<compute_t<T>>(determinant(copy, n)));
        }
      });
    });
  });
}

}  // namespace

[[gnu::cold]] std::span<const Row> det_rows() {
  static constexpr Row kRows[] = {{"", "Det", 11, supports, create}};
  return kRows;
}

}  // namespace backplane::cpu
