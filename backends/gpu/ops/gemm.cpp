// SPDX-License-Identifier: Apache-2.0
// MatMul and Gemm, and the matrix products of other operators.
#include "ops/gemm.h"

#include <iterator>

#include "ops/table.h"

namespace backplane::gpu {
namespace {

// Copies B into panels: blocks of columns as wide as a tile, whose lines (rows of B) are contiguous. Without panels,
// each line is in a different page, and lines that are a power of two apart evict each other from caches. Returns an
// empty tensor if a copy is not possible or not worthwhile, or b itself if it is in panels already.
Tensor in_panels(Emit& e, const Product& p, const Tile& tile) {
  const int64_t width = tile.width();
  if (p.in_panels) return p.b;
  if (p.window != nullptr || tile.depth != 0 || p.n % width != 0 || p.n == width) return {};
  const bool far = p.n % 256 == 0;
  if (!e.constant(p.b) && !(far && p.m >= 128)) return {};
  const Shape shape{p.b_count, p.n / width, p.k, width};
  return e.computed("$0", p.b.dtype, shape, {{p.b, {p.k * p.n, width, p.n, 1}, 0}});
}

// How a kernel iterates over the columns of B: in lines of adjacent columns.
struct Columns {
  int64_t lines, line;     // the number of lines, and the columns of each
  int64_t lines_of_slice;  // lines per position of the outermost spatial dimension
  bool gaps;               // also computes positions past the ends of y's rows, where windows wrap; they are not stored
  int64_t count() const { return lines * line; }
};

// One line of all positions from the first window to the last, including positions past the ends of y's rows.
Columns flattened(const Product& p) {
  if (p.window == nullptr) return {1, p.n, 1, false};
  const Spatial out = p.window->out, positions = p.window->positions();
  const int64_t all = ((out[0] - 1) * positions[1] + out[1] - 1) * positions[2] + out[2];
  return {1, all, 1, all != p.n};
}

Columns columns_of(const DeviceCaps& caps, const Product& p) {
  const Columns flat = flattened(p);
  if (!flat.gaps) return flat;
  // Skipping the gaps when results are stored is expensive if the sums are short, but short lines leave vectors idle.
  const Spatial out = p.window->out;
  if (p.k >= 128 || out[2] < 2 * int64_t{caps.float_lanes}) return flat;
  return {out[0] * out[1], out[2], out[1], false};
}

std::string macro(const char* name, int64_t value) {
  return " -D" + std::string(name) + "=" + std::to_string(value);
}

Tensor transposed(Emit& e, const Tensor& x) {
  const Shape shape{x.shape[1], x.shape[0]};
  return e.computed("$0", x.dtype, shape, {{x, {1, x.shape[1]}, 0}});
}

// ---- the driver's library -------------------------------------------------------------------------------------------

ProductProblem problem_of(const Product& p) {
  return {.dtype = p.a.dtype,
          .compute_types = p.compute_types,
          .m = p.m,
          .n = p.n,
          .k = p.k,
          .batch = p.batch,
          .a_repeats = p.batch != 1 && p.a_count == 1,
          .b_repeats = p.batch != 1 && p.b_count == 1,
          .a_transposed = p.a_transposed,
          .b_transposed = p.b_transposed,
          .alpha = p.alpha,
          .beta = p.c ? p.beta : 0,
          .has_bias = p.bias_of == Product::Bias::kColumns};
}

std::string library_refusal(Emit& e, const Product& p) {
  if (p.window != nullptr) return "its columns are windows";
  if (p.in_panels) return "B is in panels";
  if (p.bias_of == Product::Bias::kRows) return "a bias for each row";
  if ((p.a_count != 1 && p.a_count != p.batch) || (p.b_count != 1 && p.b_count != p.batch))
    return "its matrices repeat in groups";
  if (p.k == 0) return "its sums are empty";
  if (e.constant(p.a) && e.constant(p.b)) return "it is computed once, from constants";
  return e.libraries().products->refusal(problem_of(p));
}

void emit_in_library(Emit& e, const Product& p) {
  LaunchBuilder launch = e.launch(problem_of(p));
  const auto optional = [&](const Tensor& x) { x ? launch.in(x) : launch.none(); };
  launch.in(p.a).in(p.b);
  optional(p.c);
  optional(p.bias);
  // The workspace gets its size when the algorithm is chosen.
  launch.out(p.y).out(e.scratch(BP_DTYPE_UINT8, {0}));
  launch.allow_epilogue(p.y, p.batch * p.m, p.n);
}

// ---- the engine's kernel --------------------------------------------------------------------------------------------

void emit_in_tiles(Emit& e, const Product& product) {
  Product p = product;
  if (p.a_transposed) p.a = transposed(e, p.a);
  if (p.b_transposed) p.b = transposed(e, p.b);
  Columns columns = columns_of(e.caps(), p);
  const Tile tile = tile_for(e.caps(), p.m, columns.line, p.y.dtype);
  if (tile.depth != 0) columns = flattened(p);
  const Tensor panels = in_panels(e, p, tile);
  std::string options = "-DTYPE=" + Emit::type(p.y) + tile.macros() + macro("BIAS", static_cast<int64_t>(p.bias_of));
  if (!is_float(p.y.dtype)) options += " -DINTEGER";
  if (p.alpha != 1) options += " -DALPHA=" + literal(p.alpha);
  if (panels) options += " -DPANELS";
  if (p.window != nullptr)
    options += " -DWINDOWS" + p.window->polyphase_macros() + p.window->tap_macros() + (columns.gaps ? " -DGAPS" : "");
  LaunchBuilder launch = e.launch("gemm", "gemm", options);
  launch.in(p.a).in(panels ? panels : p.b).in(p.bias ? p.bias : p.a).out(p.y);
  launch.arg(p.m).arg(columns.count()).arg(p.k).arg(p.a_count).arg(p.b_count);
  if (p.window != nullptr) {
    const Spatial positions = p.window->positions();
    launch.arg(positions[0] * positions[1] * positions[2]).arg(positions[1] * positions[2]).arg(positions[2]);
    launch.arg(columns.gaps ? p.window->out[1] : columns.lines_of_slice);
    launch.arg(columns.gaps ? p.window->out[2] : columns.line).arg(p.n);
  }
  launch.range(tile.ranges(p.m, columns.line, columns.lines, p.batch));
  launch.allow_epilogue(p.y, p.a_count * p.m, p.n);
}

// ---- the choice -----------------------------------------------------------------------------------------------------

struct Implementation {
  std::string_view name;
  // Why the product is left to the next implementation; empty if this one computes it. NULL for the last one, which
  // computes all products except those that only the driver's library supports (Product).
  std::string (*refusal)(Emit& e, const Product& p);
  void (*emit)(Emit& e, const Product& p);
};

// Best first.
constexpr Implementation kImplementations[] = {
    {"library", library_refusal, emit_in_library},
    {"tiles", nullptr, emit_in_tiles},
};

const Implementation& implementation_of(Emit& e, const Product& p) {
  const Implementation& last = *std::prev(std::end(kImplementations));
  if (e.libraries().products == nullptr) return last;
  std::string refused;
  for (const Implementation& each : kImplementations) {
    const std::string why = each.refusal == nullptr ? "" : each.refusal(e, p);
    if (why.empty()) {
      e.log("product=" + std::string(each.name) + (refused.empty() ? "" : " (" + refused + ")"));
      return each;
    }
    refused += (refused.empty() ? "" : "; ") + std::string(each.name) + ": " + why;
  }
  return last;
}

// ---- operators ------------------------------------------------------------------------------------------------------

// Computes output 0 and returns true if the driver's library accepts the product. For forms of products that only the
// library supports.
bool emit_if_in_library(Emit& e, Product p, const Shape& shape) {
  if (elements(shape) == 0 || !library_refusal(e, p).empty()) return false;
  e.log("product=library");
  p.y = e.output(0, shape);
  emit_in_library(e, p);
  return true;
}

// Computes a Gemm whose C has the result's extents in one call of the driver's library. Returns false if the library
// does not accept the product.
bool emit_with_matrix(Emit& e, Product p, float beta) {
  if (e.libraries().products == nullptr) return false;
  p.c = e.input(2);
  p.beta = beta;
  return emit_if_in_library(e, p, {p.m, p.n});
}

// Computes a MatMul whose operands, one or both, are pending results of Transpose, in one call of the driver's library,
// which reads the untransposed tensors. Returns false if there is no such operand or the library does not accept that.
bool emit_transposed(Emit& e) {
  if (e.libraries().products == nullptr) return false;
  Tensor a = e.transposed_input(0), b = e.transposed_input(1);
  const bool a_transposed = static_cast<bool>(a), b_transposed = static_cast<bool>(b);
  if (!a_transposed && !b_transposed) return false;
  if (!a_transposed) a = e.input(0);
  if (!b_transposed) b = e.input(1);
  const auto batch = [](const Tensor& x) { return x.rank() < 2 ? Shape{} : Shape(x.shape.begin(), x.shape.end() - 2); };
  // For other batches, matrix_product would copy operands to broadcast them, or fold a transposed A into one tall
  // matrix.
  const bool suits = batch(a) == batch(b) || (elements(batch(b)) == 1 && !a_transposed) || elements(batch(a)) == 1;
  if (!suits) return false;
  Shape shape;
  Product p = matrix_product(e, a, b, shape);
  p.a_transposed = a_transposed;
  p.b_transposed = b_transposed;
  p.compute_types = e.compute_types();
  return emit_if_in_library(e, p, shape);
}

void emit_gemm(Emit& e, std::string_view) {
  const Tensor a = e.input(0), b = e.input(1);
  const bool a_transposed = e.node.int_attribute("transA", 0) != 0,
             b_transposed = e.node.int_attribute("transB", 0) != 0;
  Product p{.a = a,
            .b = b,
            .m = a.shape[a_transposed ? 1 : 0],
            .n = b.shape[b_transposed ? 0 : 1],
            .k = a.shape[a_transposed ? 0 : 1],
            .a_transposed = a_transposed,
            .b_transposed = b_transposed,
            .compute_types = e.compute_types()};
  if (p.k != b.shape[b_transposed ? 1 : 0])
    throw sdk::Error(BP_TYPE_MISMATCH, to_string({p.m, p.k}) + " and " +
                                           to_string({b.shape[b_transposed ? 1 : 0], p.n}) + " cannot be multiplied");
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
  if (e.shape(2) == shape && emit_with_matrix(e, p, beta)) return;
  // Computes 16-bit floats in fp32 and rounds once, at the end: 16-bit sums would be rounded before the bias is added.
  const bool narrow = is_float(a.dtype) && bytes_of(a.dtype) < 4;
  const auto wide = [&](const Tensor& x) {
    return narrow ? e.computed("$0", BP_DTYPE_FLOAT, x.shape, {{x, dense_strides(x.shape), 0}}) : x;
  };
  p.a = wide(a);
  p.b = wide(b);
  if (narrow) p.compute_types = 0;
  p.y = e.scratch(p.a.dtype, shape);
  emit_product(e, p);
  e.formula("$0 + ($T)" + literal(beta) + " * $1", a.dtype, shape, {View{p.y, dense_strides(shape), 0}, Operand(2)});
}

Verdict supports_gemm(const Node& node) {
  const float alpha = node.float_attribute("alpha", 1), beta = node.float_attribute("beta", 1);
  // A float holds integers exactly only up to 2^24, so sums of integers are not multiplied by alpha or beta.
  const bool exact = is_float(node.input(0).dtype()) || (alpha == 1 && (!node.input(2) || beta == 0 || beta == 1));
  return expect(node).rank(0, 2, 2).rank(1, 2, 2).same_dtypes().that(exact, BP_REASON_ATTRIBUTE, [&] {
    return "alpha is " + std::to_string(alpha) + " and beta " + std::to_string(beta) +
           "; for integers, alpha must be 1, and beta 0 or 1";
  });
}

void emit_matmul(Emit& e, std::string_view) {
  if (emit_transposed(e)) return;
  Shape shape;
  Product p = matrix_product(e, e.input(0), e.input(1), shape);
  p.compute_types = e.compute_types();
  p.y = e.output(0, shape);
  emit_product(e, p);
}

Verdict supports_matmul(const Node& node) {
  return expect(node).rank(0, 1).rank(1, 1).same_dtypes();
}

constexpr bp_dtype_set_t kProducts =
    kFloats | one(BP_DTYPE_INT32) | one(BP_DTYPE_INT64) | one(BP_DTYPE_UINT32) | one(BP_DTYPE_UINT64);

}  // namespace

void emit_product(Emit& e, const Product& p) {
  if (p.m == 0 || p.n == 0 || p.batch == 0) return;
  implementation_of(e, p).emit(e, p);
}

Product matrix_product(Emit& e, Tensor a, Tensor b, Shape& out_shape) {
  const bool row = a.rank() == 1, column = b.rank() == 1;
  if (row) a = e.view(a, {1, a.shape[0]});
  if (column) b = e.view(b, {b.shape[0], 1});
  const Shape a_batch(a.shape.begin(), a.shape.end() - 2), b_batch(b.shape.begin(), b.shape.end() - 2);
  const Shape batch = broadcast(a_batch, b_batch);
  Product p{.m = a.shape[a.rank() - 2], .n = b.shape[b.rank() - 1], .k = a.shape[a.rank() - 1]};
  if (p.k != b.shape[b.rank() - 2])
    throw sdk::Error(BP_TYPE_MISMATCH, to_string(a.shape) + " and " + to_string(b.shape) + " cannot be multiplied");
  p.batch = elements(batch);
  out_shape = batch;
  if (!row) out_shape.push_back(p.m);
  if (!column) out_shape.push_back(p.n);
  // If all matrices of A use the same B, they become one tall matrix.
  if (elements(b_batch) == 1 && elements(a_batch) == p.batch) {
    p.m *= p.batch;
    p.batch = 1;
  }
  // A batch that is repeated as a whole needs no copy; for other broadcasts, the matrices are copied.
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
  p.a = std::move(a);
  p.b = std::move(b);
  return p;
}

std::span<const Row> gemm_rows() {
  static constexpr Row kRows[] = {
      {"", "MatMul", 1, kProducts, kBinary, supports_matmul, emit_matmul, {}, SummedBy::kProducts},
      {"", "Gemm", 7, kProducts, {2, 3}, supports_gemm, emit_gemm, {}, SummedBy::kProducts},
  };
  return kRows;
}

}  // namespace backplane::gpu
