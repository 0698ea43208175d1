// SPDX-License-Identifier: Apache-2.0
#include "kernels/matmul/contraction.h"

#include <algorithm>

#include "kernels/common/support.h"
#include "kernels/onednn/onednn.h"
#include "kernels/simd/clones.h"
#include "runtime/parallel.h"
#include "runtime/processor.h"
#include "runtime/watch.h"

namespace backplane::cpu {

namespace {

using Axes = Contraction::Axes;

constexpr int64_t kLeastProduct = 512;  // multiply-adds below which calling oneDNN costs more than the product
constexpr double kTaskTime = 2.048;     // minimum work of a task, in microseconds at the nominal rate of multiply-adds
constexpr int64_t kRowPiece = 4096;     // elements; longer rows are cut into such pieces, for parallelism

// A dimension with its stride in an operand or in the result.
struct Axis {
  int64_t extent, stride;
};
using Group = std::vector<Axis>;

int64_t size_of(const Group& group) {
  int64_t n = 1;
  for (const Axis& axis : group) n *= axis.extent;
  return n;
}

// If the dimensions of a group can be merged into one, returns its stride (1 for an empty group); otherwise nullopt.
std::optional<int64_t> joined(const Group& group) {
  for (size_t i = 0; i + 1 < group.size(); ++i)
    if (group[i].stride != group[i + 1].stride * group[i + 1].extent) return std::nullopt;
  return group.empty() ? 1 : group.back().stride;
}

// How oneDNN reads a matrix with contiguous rows or contiguous columns. matrix_of returns nullopt for other matrices.
struct MatrixForm {
  int64_t stride;
  bool transposed;
};
std::optional<MatrixForm> matrix_of(const Group& rows, const Group& columns) {
  const auto down = joined(rows), right = joined(columns);
  if (!down || !right) return std::nullopt;
  if (columns.empty() || *right == 1) return MatrixForm{rows.empty() ? size_of(columns) : *down, false};
  if (rows.empty() || *down == 1) return MatrixForm{*right, true};
  return std::nullopt;
}

// Concatenates the dimensions of some groups.
Dimensions together(std::initializer_list<const Group*> groups) {
  Dimensions result;
  for (const Group* group : groups)
    for (const Axis& axis : *group) result.add(axis.extent, axis.stride);
  return result;
}

Dimensions dense(const Group& batch, int64_t inner) {
  Dimensions result;
  int64_t stride = inner;
  for (size_t i = batch.size(); i-- > 0; stride *= batch[i].extent) {
    result.extents.insert(result.extents.begin(), batch[i].extent);
    result.strides.insert(result.strides.begin(), stride);
  }
  return result;
}

CLONED float dot(const float* a, const float* b, int64_t n) {
  constexpr int64_t kSums = 32;
  float sums[kSums] = {};
  int64_t i = 0;
  for (; i + kSums <= n; i += kSums)
    for (int64_t l = 0; l < kSums; ++l) sums[l] += a[i + l] * b[i + l];
  float rest = 0;
  for (; i < n; ++i) rest += a[i] * b[i];
  for (int64_t half = kSums / 2; half > 0; half /= 2)
    for (int64_t l = 0; l < half; ++l) sums[l] += sums[l + half];
  return sums[0] + rest;
}
CLONED float sum(const float* a, int64_t n) {
  constexpr int64_t kSums = 32;
  float sums[kSums] = {};
  int64_t i = 0;
  for (; i + kSums <= n; i += kSums)
    for (int64_t l = 0; l < kSums; ++l) sums[l] += a[i + l];
  float rest = 0;
  for (; i < n; ++i) rest += a[i];
  for (int64_t half = kSums / 2; half > 0; half /= 2)
    for (int64_t l = 0; l < half; ++l) sums[l] += sums[l + half];
  return sums[0] + rest;
}
float dot_along(const ContractedAxis& axis, const float* a, const float* b) {
  if (axis.a == 1 && axis.b == 1) return clone_of<dot>(a, b, axis.extent);
  if (axis.a == 1 && axis.b == 0) return clone_of<sum>(a, axis.extent) * *b;
  if (axis.a == 0 && axis.b == 1) return clone_of<sum>(b, axis.extent) * *a;
  float total = 0;
  for (int64_t i = 0; i < axis.extent; ++i) total += a[i * axis.a] * b[i * axis.b];
  return total;
}

CLONED void add_products(const float* a, const float* b, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] += a[i] * b[i];
}
CLONED void add_scaled(const float* a, float b, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] += a[i] * b;
}
// y += a · b along the axis.
void add_along(const ContractedAxis& axis, const float* a, const float* b, float* y, int64_t n) {
  if (axis.a == 1 && axis.b == 1) return clone_of<add_products>(a, b, y, n);
  if (axis.a == 1 && axis.b == 0) return clone_of<add_scaled>(a, *b, y, n);
  if (axis.a == 0 && axis.b == 1) return clone_of<add_scaled>(b, *a, y, n);
  for (int64_t i = 0; i < n; ++i) y[i] += a[i * axis.a] * b[i * axis.b];
}

// Merges adjacent dimensions that are contiguous in both operands.
Axes merged(const Axes& axes) {
  Axes result;
  for (const ContractedAxis& axis : axes) {
    if (!result.empty() && result.back().a == axis.a * axis.extent && result.back().b == axis.b * axis.extent)
      result.back() = {result.back().extent * axis.extent, axis.a, axis.b};
    else
      result.push_back(axis);
  }
  return result;
}

}  // namespace

Contraction::Contraction(Axes kept, Axes summed) {
  for (Axes* axes : {&kept, &summed}) std::erase_if(*axes, [](const ContractedAxis& axis) { return axis.extent == 1; });
  // Sort by descending strides, so that adjacent dimensions can be merged.
  std::ranges::stable_sort(summed,
                           [](const auto& x, const auto& y) { return std::max(x.a, x.b) > std::max(y.a, y.b); });
  plan_products(kept, summed);
  if (!products_) plan_rows(kept, summed);
}

void Contraction::plan_products(const Axes& kept, const Axes& summed) {
  Group batch_a, batch_b, batch_y, m_a, m_y, n_b, n_y, k_a, k_b;
  int64_t y_stride = 1;
  for (const ContractedAxis& axis : kept) y_stride *= axis.extent;
  const int64_t results = y_stride;
  for (const ContractedAxis& axis : kept) {
    y_stride /= axis.extent;
    if (axis.a != 0 && axis.b != 0) {
      batch_a.push_back({axis.extent, axis.a});
      batch_b.push_back({axis.extent, axis.b});
      batch_y.push_back({axis.extent, y_stride});
    } else if (axis.a != 0) {
      m_a.push_back({axis.extent, axis.a});
      m_y.push_back({axis.extent, y_stride});
    } else {
      n_b.push_back({axis.extent, axis.b});
      n_y.push_back({axis.extent, y_stride});
    }
  }
  for (const ContractedAxis& axis : summed) {
    if (axis.a == 0 || axis.b == 0) return;  // not a matrix product: only one operand has this dimension
    k_a.push_back({axis.extent, axis.a});
    k_b.push_back({axis.extent, axis.b});
  }
  Products p;
  p.m = size_of(m_a);
  p.n = size_of(n_b);
  p.k = size_of(k_a);
  if (p.k == 1 || p.m * p.n == 1 || p.m * p.n * p.k < kLeastProduct) return;

  const int64_t batch = size_of(batch_y);
  const auto place = [&](Operand& operand, const Group& own_batch, const Group& rows, const Group& columns) {
    const int64_t inner = size_of(rows) * size_of(columns);
    if (const auto form = matrix_of(rows, columns)) {
      operand.stride = form->stride;
      operand.transposed = form->transposed;
      operand.batch = together({&own_batch});
      return;
    }
    const Dimensions from = together({&own_batch, &rows, &columns});
    operand.copy.emplace(from.extents, from.strides, 0, sizeof(float));
    operand.stride = size_of(columns);
    operand.batch = dense(own_batch, inner);
    operand.at = scratch_floats_;
    scratch_floats_ += (batch * inner + 15) / 16 * 16;
  };
  place(p.a, batch_a, m_a, k_a);
  place(p.b, batch_b, k_b, n_b);
  if (const auto form = matrix_of(m_y, n_y)) {
    p.y.stride = form->stride;
    p.y.transposed = form->transposed;
    p.y.batch = together({&batch_y});
  } else {  // the products are stored one after another, and transposed afterwards
    p.y.batch = dense(batch_y, p.m * p.n);
    p.y.stride = p.n;
    p.y.at = scratch_floats_;
    scratch_floats_ += (results + 15) / 16 * 16;
    // For each dimension of the result, the stride in the stored products.
    Dimensions order;
    int64_t m_stride = p.m * p.n, n_stride = p.n;
    size_t b = 0;
    for (const ContractedAxis& axis : kept) {
      if (axis.a != 0 && axis.b != 0)
        order.add(axis.extent, p.y.batch.strides[b++]);
      else if (axis.a != 0)
        order.add(axis.extent, m_stride /= axis.extent);
      else
        order.add(axis.extent, n_stride /= axis.extent);
    }
    p.y.copy.emplace(order.extents, order.strides, 0, sizeof(float));
  }
  products_ = std::move(p);
}

void Contraction::run_products(const float* a, const float* b, float* y, float* scratch) const {
  const Products& p = *products_;
  const auto ready = [&](const Operand& operand, const float* data) {
    if (!operand.copy) return data;
    (*operand.copy)(data, scratch + operand.at);
    return static_cast<const float*>(scratch + operand.at);
  };
  a = ready(p.a, a);
  b = ready(p.b, b);
  float* to = p.y.copy ? scratch + p.y.at : y;
  parallel(p.y.batch.positions(), 1 + processor().multiply_adds(kTaskTime) / (p.m * p.n * p.k),
           [&](int64_t begin, int64_t end) {
             Odometer at_a(p.a.batch, begin), at_b(p.b.batch, begin), at_y(p.y.batch, begin);
             for (int64_t i = begin; i < end; ++i, at_a.next(), at_b.next(), at_y.next()) {
               const Matrix left{a + at_a.offset(), p.a.stride, p.a.transposed};
               const Matrix right{b + at_b.offset(), p.b.stride, p.b.transposed};
               float* result = to + at_y.offset();
               if (!p.y.transposed)
                 sgemm(p.m, p.n, p.k, 1, left, right, 0, result, p.y.stride);
               else  // (A · B)ᵀ = Bᵀ · Aᵀ
                 sgemm(p.n, p.m, p.k, 1, {right.data, right.stride, !right.transposed},
                       {left.data, left.stride, !left.transposed}, 0, result, p.y.stride);
             }
           });
  if (p.y.copy) (*p.y.copy)(to, y);
}

void Contraction::plan_rows(const Axes& kept, const Axes& summed) {
  Axes outer = merged(kept), sums = merged(summed);
  if (!outer.empty()) {
    rows_.row = outer.back();
    outer.pop_back();
  }
  if (!sums.empty()) {
    rows_.sum = sums.back();
    sums.pop_back();
  }
  for (const ContractedAxis& axis : outer) {
    rows_.kept_a.add(axis.extent, axis.a);
    rows_.kept_b.add(axis.extent, axis.b);
  }
  for (const ContractedAxis& axis : sums) {
    rows_.summed_a.add(axis.extent, axis.a);
    rows_.summed_b.add(axis.extent, axis.b);
  }
}

void Contraction::run_rows(const float* a, const float* b, float* y) const {
  const Rows& r = rows_;
  const int64_t n = r.row.extent, pieces = (n + kRowPiece - 1) / kRowPiece, rows = r.kept_a.positions();
  const int64_t terms = r.summed_a.positions(), work = std::min(n, kRowPiece) * terms * r.sum.extent;
  // The inner loop is over the terms of a sum if they are contiguous or a row has one element, otherwise over the row.
  const bool by_sums = r.sum.extent > 1 && (n == 1 || (std::max(r.sum.a, r.sum.b) == 1));
  parallel(rows * pieces, 1 + kCheapGrain / work, [&](int64_t begin, int64_t end) {
    Pace pace;
    Odometer at_a(r.kept_a, begin / pieces), at_b(r.kept_b, begin / pieces);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % pieces * kRowPiece, count = std::min(kRowPiece, n - first);
      const float *x = a + at_a.offset() + first * r.row.a, *w = b + at_b.offset() + first * r.row.b;
      float* to = y + i / pieces * n + first;
      std::fill_n(to, count, 0.0f);
      Odometer term_a(r.summed_a), term_b(r.summed_b);
      for (int64_t t = 0; t < terms; ++t, term_a.next(), term_b.next()) {
        pace.spend(count * r.sum.extent);
        const float *xt = x + term_a.offset(), *wt = w + term_b.offset();
        if (by_sums) {
          for (int64_t j = 0; j < count; ++j) to[j] += dot_along(r.sum, xt + j * r.row.a, wt + j * r.row.b);
        } else {
          for (int64_t j = 0; j < r.sum.extent; ++j) add_along(r.row, xt + j * r.sum.a, wt + j * r.sum.b, to, count);
        }
      }
      if ((i + 1) % pieces == 0) {
        at_a.next();
        at_b.next();
      }
    }
  });
}

void Contraction::run(const float* a, const float* b, float* y, float* scratch) const {
  if (products_)
    run_products(a, b, y, scratch);
  else
    run_rows(a, b, y);
}

}  // namespace backplane::cpu
