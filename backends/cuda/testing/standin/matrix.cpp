// SPDX-License-Identifier: Apache-2.0
#include "testing/standin/matrix.h"

#include <cmath>
#include <utility>

#include "testing/standin/number.h"

namespace standin {
namespace {

double activated(uint32_t epilogue, double v) {
  if ((epilogue & lt::kRelu) != 0) return v < 0 ? 0 : v;
  if ((epilogue & lt::kGelu) != 0) return 0.5 * v * (1 + std::tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)));
  return v;
}

// The index of an element in its matrix.
uint64_t index_of(const Matrix& matrix, bool transposed, uint64_t row, uint64_t column) {
  if (transposed) std::swap(row, column);
  return row + column * static_cast<uint64_t>(matrix.leading);
}

}  // namespace

uint64_t Matrix::element_bytes() const {
  return type == lt::kF64 ? 8 : type == lt::kF32 ? 4 : 2;
}

uint64_t Matrix::bytes() const {
  const uint64_t last = static_cast<uint64_t>(batch - 1) * static_cast<uint64_t>(stride) +
                        (columns - 1) * static_cast<uint64_t>(leading) + rows;
  return last * element_bytes();
}

bool MatrixProduct::is_consistent() const {
  for (const Matrix* each : {&a, &b, &c, &d}) {
    if (each->rows == 0 || each->columns == 0 || each->leading < static_cast<int64_t>(each->rows)) return false;
    if (each->type != a.type || each->batch != d.batch || each->batch < 1 || each->stride < 0) return false;
    const bool overlaps = each->stride < each->leading * static_cast<int64_t>(each->columns);
    if (each->batch > 1 && overlaps && (each == &c || each == &d || each->stride != 0)) return false;
  }
  if ((compute == lt::kCompute64F) != (a.type == lt::kF64)) return false;
  if (compute == lt::kCompute32FFastTf32 && a.type != lt::kF32) return false;
  return (a_transposed ? a.columns : a.rows) == d.rows && (b_transposed ? b.rows : b.columns) == d.columns &&
         (b_transposed ? b.columns : b.rows) == inner() && c.rows == d.rows && c.columns == d.columns;
}

void MatrixProduct::compute_all() const {
  const bool is_tf32 = compute == lt::kCompute32FFastTf32;
  for (uint64_t i = 0; i < static_cast<uint64_t>(d.batch); ++i) {
    const auto first = [i](const Matrix& matrix) { return i * static_cast<uint64_t>(matrix.stride); };
    for (uint64_t column = 0; column < d.columns; ++column) {
      for (uint64_t row = 0; row < d.rows; ++row) {
        double sum = 0;
        for (uint64_t k = 0; k < inner(); ++k) {
          const double product = factor(is_tf32, load(a.type, a_data, first(a) + index_of(a, a_transposed, row, k))) *
                                 factor(is_tf32, load(b.type, b_data, first(b) + index_of(b, b_transposed, k, column)));
          sum = a.type == lt::kF64 ? sum + product : static_cast<float>(sum + product);
        }
        sum *= alpha;
        if (beta != 0) sum += beta * load(c.type, c_data, first(c) + index_of(c, false, row, column));
        if ((epilogue & lt::kBias) != 0) sum += load(d.type, bias, row);
        store(d.type, d_data, first(d) + index_of(d, false, row, column), activated(epilogue, sum));
      }
    }
  }
}

}  // namespace standin
