// SPDX-License-Identifier: Apache-2.0
// Oracles of matrix products.
#include "judge/oracle.h"

#include <cmath>

namespace backplane::conform {
namespace {

// Like numpy.matmul: a vector is a row on the left and a column on the right, and leading axes broadcast.
References matmul(const Call& call) {
  Array a = call.in(0, 1), b = call.in(1, 1);
  const bool row = a.rank() == 1, column = b.rank() == 1;
  if (row) a.extents.insert(a.extents.begin(), 1);
  if (column) b.extents.push_back(1);
  const int64_t m = a.extents[a.extents.size() - 2], k = a.extents.back(), n = b.extents.back();
  require(a.dtype == b.dtype, "the factors have different types");
  require(b.extents[b.extents.size() - 2] == k, "the factors' inner extents differ");
  Extents shape = broadcast({a.extents.begin(), a.extents.end() - 2}, {b.extents.begin(), b.extents.end() - 2});
  const size_t batch = shape.size();
  shape.insert(shape.end(), {m, n});

  Reference result(Array(a.dtype, shape), Rule::of(Rule::kDot, static_cast<double>(k)));
  require_steps(static_cast<double>(result.value.count()) * static_cast<double>(k));
  for_each_index(shape, [&](const Index& index) {
    const size_t row = matrix_start(a, index) + static_cast<size_t>(index[batch] * k);
    const size_t column = matrix_start(b, index) + static_cast<size_t>(index[batch + 1]);
    double sum = 0, scale = 0;
    for (size_t i = 0; i < static_cast<size_t>(k); ++i) {
      const double product = a.values[row + i] * b.values[column + i * static_cast<size_t>(n)];
      sum += product;
      scale += std::fabs(product);
    }
    result.value.at(index) = sum;
    result.scale.push_back(scale);
  });
  if (column) result.value.extents.pop_back();
  if (row) result.value.extents.erase(result.value.extents.end() - (column ? 1 : 2));
  return {result};
}

References gemm(const Call& call) {
  const Array &a = call.in(0), &b = call.in(1);
  require(a.rank() == 2 && b.rank() == 2, "a factor is not a matrix");
  require(a.dtype == b.dtype && (!call.has(2) || call.in(2).dtype == a.dtype), "the inputs have different types");
  const bool trans_a = call.integer("transA") != 0, trans_b = call.integer("transB") != 0;
  const double alpha = call.real("alpha", 1), beta = call.real("beta", 1);
  const int64_t m = a.extents[trans_a], k = a.extents[!trans_a], n = b.extents[!trans_b];
  require(b.extents[trans_b] == k, "the factors' inner extents differ");
  require(!call.has(2) || broadcast(call.in(2).extents, {m, n}) == Extents{m, n},
          "C does not broadcast to the product");
  require_steps(static_cast<double>(count_of({m, n})) * static_cast<double>(k));
  Reference result(Array(a.dtype, {m, n}), Rule::of(Rule::kDot, static_cast<double>(k + (call.has(2) ? 1 : 0))));
  for_each_index({m, n}, [&](const Index& index) {
    double sum = 0, scale = 0;
    for (int64_t i = 0; i < k; ++i) {
      const double product = alpha * (trans_a ? a.at({i, index[0]}) : a.at({index[0], i})) *
                             (trans_b ? b.at({index[1], i}) : b.at({i, index[1]}));
      sum += product;
      scale += std::fabs(product);
    }
    if (call.has(2)) {
      sum += beta * call.in(2).broadcast_at(index);
      scale += std::fabs(beta * call.in(2).broadcast_at(index));
    }
    result.value.at(index) = sum;
    result.scale.push_back(scale);
  });
  return {result};
}

const Operator kOperators[] = {
    {"MatMul", {13}, matmul},
    {"Gemm", {13}, gemm},
};

}  // namespace

std::span<const Operator> dot_operators() {
  return kOperators;
}

}  // namespace backplane::conform
