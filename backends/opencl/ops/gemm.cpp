// SPDX-License-Identifier: Apache-2.0
// MatMul, Gemm.
#include "ops/gemm.h"

#include <algorithm>
#include <bit>

#include "ops/table.h"

namespace backplane::opencl {
namespace {

// What a work item computes: as many registers as hold the sums and one line of B.
struct Tile {
  int64_t rows, vector, columns;
};

Tile tile_for(const Facts& facts, const Product& p) {
  const auto below = [](int64_t limit, int64_t n) {
    return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::min(limit, n))));
  };
  Tile tile{below(8, p.m), 1, 1};
  if (p.y.dtype != BP_DTYPE_FLOAT) return tile;
  const int64_t lanes = facts.kind == BP_DEVICE_CPU ? std::max<int64_t>(4, facts.float_lanes) : 4;
  tile.vector = below(std::min<int64_t>(16, lanes), p.n);
  tile.columns = below(2, p.n / tile.vector);
  return tile;
}

std::string macro(const char* name, int64_t value) {
  return " -D" + std::string(name) + "=" + std::to_string(value);
}

Tensor transposed(Emit& e, const Tensor& x) {
  const Shape shape{x.shape[1], x.shape[0]};
  return e.computed("$0", x.dtype, shape, {{x, {1, x.shape[1]}, 0}});
}

void emit_gemm(Emit& e, std::string_view) {
  Tensor a = e.input(0), b = e.input(1);
  if (e.node.int_attribute("transA", 0) != 0) a = transposed(e, a);
  if (e.node.int_attribute("transB", 0) != 0) b = transposed(e, b);
  Product p{.a = a, .b = b, .m = a.shape[0], .n = b.shape[1], .k = a.shape[1]};
  p.alpha = e.node.float_attribute("alpha", 1);
  const float beta = e.node.float_attribute("beta", 1);
  const Shape shape{p.m, p.n};
  if (!e.has_input(2) || beta == 0) {
    p.y = e.output(0, shape);
    return emit_product(e, p);
  }
  const bool per_column = e.shape(2) == Shape{p.n} || e.shape(2) == Shape{1, p.n};
  if (per_column && beta == 1) {
    p.bias = e.input(2);
    p.bias_of = Product::Bias::kColumns;
    p.y = e.output(0, shape);
    return emit_product(e, p);
  }
  // Rounded once, at the end: 16-bit sums would be rounded before the bias is added.
  const bool narrow = is_float(a.dtype) && bytes_of(a.dtype) < 4;
  const auto wide = [&](const Tensor& x) {
    return narrow ? e.computed("$0", BP_DTYPE_FLOAT, x.shape, {{x, dense_strides(x.shape), 0}}) : x;
  };
  p.a = wide(a);
  p.b = wide(b);
  p.y = e.scratch(p.a.dtype, shape);
  emit_product(e, p);
  e.formula("$0 + ($T)" + literal(beta) + " * $1", a.dtype, shape, {View{p.y, dense_strides(shape), 0}, Operand(2)});
}

Verdict supports_gemm(const Node& node) {
  for (const uint32_t slot : {0u, 1u}) {
    if (node.input(slot).rank() != 2)
      return sdk::no(BP_REASON_SHAPE, "input " + std::to_string(slot) + " has rank " +
                                          std::to_string(node.input(slot).rank()) + ", not 2");
  }
  return same_types(node);
}

void emit_matmul(Emit& e, std::string_view) {
  Shape shape;
  Product p = matrix_product(e, e.input(0), e.input(1), shape);
  p.y = e.output(0, shape);
  emit_product(e, p);
}

Verdict supports_matmul(const Node& node) {
  for (const uint32_t slot : {0u, 1u}) {
    if (node.input(slot).rank() == 0) return sdk::no(BP_REASON_SHAPE, "input " + std::to_string(slot) + " is a scalar");
  }
  return same_types(node);
}

constexpr bp_dtype_set_t products =
    floats | one(BP_DTYPE_INT32) | one(BP_DTYPE_INT64) | one(BP_DTYPE_UINT32) | one(BP_DTYPE_UINT64);

constexpr Row rows[] = {
    {"", "MatMul", 1, products, binary, supports_matmul, emit_matmul},
    {"", "Gemm", 7, products, {2, 3}, supports_gemm, emit_gemm},
};

}  // namespace

void emit_product(Emit& e, const Product& p) {
  if (p.m == 0 || p.n == 0 || p.batch == 0) return;
  const Tile tile = tile_for(e.facts(), p);
  std::string options = "-DTYPE=" + Emit::type(p.y) + macro("ROWS", tile.rows) + macro("VECTOR", tile.vector) +
                        macro("COLUMNS", tile.columns) + macro("BIAS", static_cast<int64_t>(p.bias_of));
  if (!is_float(p.y.dtype)) options += " -DINTEGER";
  if (p.alpha != 1) options += " -DALPHA=" + literal(p.alpha);
  LaunchBuilder launch = e.launch("gemm", "gemm", options);
  launch.in(p.a).in(p.b).in(p.bias ? p.bias : p.a).out(p.y).arg(p.m).arg(p.n).arg(p.k).arg(p.a_count).arg(p.b_count);
  const auto tiles = [](int64_t n, int64_t size) { return (n + size - 1) / size; };
  const std::array<int64_t, 3> items{tiles(p.m, tile.rows), tiles(p.n, tile.vector * tile.columns), p.batch};
  launch.groups(items, {1, 1, 1});
}

Product matrix_product(Emit& e, Tensor a, Tensor b, Shape& out_shape) {
  const bool row = a.rank() == 1, column = b.rank() == 1;
  if (row) a = e.view(a, {1, a.shape[0]});
  if (column) b = e.view(b, {b.shape[0], 1});
  const Shape a_batch(a.shape.begin(), a.shape.end() - 2), b_batch(b.shape.begin(), b.shape.end() - 2);
  const Shape batch = broadcast(a_batch, b_batch);
  Product p{.m = a.shape[a.rank() - 2], .n = b.shape[b.rank() - 1], .k = a.shape[a.rank() - 1]};
  if (p.k != b.shape[b.rank() - 2])
    throw sdk::Error(BP_TYPE_MISMATCH, to_string(a.shape) + " and " + to_string(b.shape) + " do not multiply");
  p.batch = elements(batch);
  out_shape = batch;
  if (!row) out_shape.push_back(p.m);
  if (!column) out_shape.push_back(p.n);
  // One matrix B for all of A: rows of one tall matrix.
  if (elements(b_batch) == 1 && elements(a_batch) == p.batch) {
    p.m *= p.batch;
    p.batch = 1;
  }
  // A batch that is repeated whole needs no copy; others are laid out.
  const auto spread = [&](Tensor& x, const Shape& own, int64_t rows, int64_t columns) {
    const bool whole =
        elements(own) == 1 || (own.size() <= batch.size() && std::equal(own.rbegin(), own.rend(), batch.rbegin()));
    if (whole || p.batch == 1) return elements(own);
    Shape full = batch;
    full.push_back(rows);
    full.push_back(columns);
    x = e.computed("$0", x.dtype, full, {broadcast_view(x, full)});
    return elements(batch);
  };
  const int64_t a_rows = p.batch == 1 ? 1 : p.m;
  p.a_count = p.batch == 1 ? 1 : spread(a, a_batch, a_rows, p.k);
  p.b_count = p.batch == 1 ? 1 : spread(b, b_batch, p.k, p.n);
  p.a = a;
  p.b = b;
  return p;
}

std::span<const Row> gemm_rows() {
  return rows;
}

}  // namespace backplane::opencl
