// SPDX-License-Identifier: Apache-2.0
// com.microsoft MatMulNBits: a product with weights that are stored in blocks of 2-, 4- or 8-bit values.
#include <algorithm>

#include "ops/rows.h"
#include "ops/table.h"

namespace backplane::gpu {
namespace {

enum Slot : uint32_t { kA, kB, kScales, kZeros, kGroups, kBias };

// The most rows of A that a work item multiplies by its column: it decodes each weight once for all of them.
constexpr int64_t kMostRows = 8;
constexpr bp_dtype_set_t kReals = kFloats & ~one(BP_DTYPE_DOUBLE);

struct Weights {
  int64_t k, n, bits, block;
  int64_t blocks() const { return (k + block - 1) / block; }
  int64_t zero_row() const { return (blocks() * bits + 7) / 8; }  // bytes of a column's packed zero points
};

Weights weights_of(const Node& node) {
  return {node.int_attribute("K", 0), node.int_attribute("N", 0), node.int_attribute("bits", 4),
          node.int_attribute("block_size", 0)};
}

void check_count(const Tensor& tensor, const char* name, int64_t count) {
  if (tensor && tensor.count() != count)
    throw sdk::Error(BP_TYPE_MISMATCH, std::string(name) + " has " + std::to_string(tensor.count()) +
                                           " elements, but K, N, bits and block_size require " + std::to_string(count));
}

void emit_nbits(Emit& e, std::string_view) {
  const Weights w = weights_of(e.node);
  const Tensor a = e.input(kA), values = e.input(kB), scales = e.input(kScales), zeros = e.input(kZeros),
               groups = e.input(kGroups), bias = e.input(kBias);
  if (a.rank() == 0 || a.shape.back() != w.k)
    throw sdk::Error(BP_TYPE_MISMATCH, "A has extents " + to_string(a.shape) + ", but K is " + std::to_string(w.k));
  const bool packs_zeros = zeros && zeros.dtype == BP_DTYPE_UINT8;
  check_count(values, "B", w.n * w.blocks() * (w.block / 8 * w.bits));
  check_count(scales, "scales", w.n * w.blocks());
  check_count(zeros, "zero_points", packs_zeros ? w.n * w.zero_row() : w.n * w.blocks());
  check_count(bias, "bias", w.n);
  if (groups && groups.count() < w.k)
    throw sdk::Error(BP_TYPE_MISMATCH,
                     "g_idx has " + std::to_string(groups.count()) + " elements, but K is " + std::to_string(w.k));
  Shape shape = a.shape;
  shape.back() = w.n;
  const Tensor y = e.output(0, shape);
  const int64_t rows = elements(shape, 0, shape.size() - 1);
  if (rows == 0) return;
  const int64_t own = std::min(rows, kMostRows), items = (rows + own - 1) / own * w.n;
  const Rows lines = rows_of(e.caps(), {items, std::max<int64_t>(w.k / 8, 1)}, 1, 2);
  std::string options = lines.macros() + " -DTYPE=" + Emit::type(a) + " -DSCALE=" + Emit::type(scales) +
                        " -DBITS=" + std::to_string(w.bits) + " -DBLOCK=" + std::to_string(w.block) +
                        " -DROWS=" + std::to_string(own);
  if (zeros) options += " -DZERO=" + Emit::type(zeros) + " -DZERO_BITS=" + (packs_zeros ? std::to_string(w.bits) : "0");
  if (groups) options += " -DGROUPED";
  if (bias) options += " -DBIAS=" + Emit::type(bias);
  LaunchBuilder launch = e.launch("nbits_product", "nbits_product", options);
  launch.in(a).in(values).in(scales);
  for (const Tensor& given : {zeros, groups, bias})
    if (given) launch.in(given);
  launch.out(y).arg(items).arg(rows).arg(w.n).arg(w.k).arg(w.blocks());
  if (groups) launch.fault();
  lines.range(launch);
}

Verdict supports_nbits(const Node& node) {
  const Weights w = weights_of(node);
  if (w.bits != 2 && w.bits != 4 && w.bits != 8)
    return sdk::no(BP_REASON_ATTRIBUTE, "bits is " + std::to_string(w.bits) + "; it must be 2, 4 or 8");
  if (w.block < 16 || w.block > INT32_MAX || (w.block & (w.block - 1)) != 0)
    return sdk::no(BP_REASON_ATTRIBUTE,
                   "block_size is " + std::to_string(w.block) + "; it must be a power of two, 16 to 2^30");
  if (w.k < 1 || w.n < 1 || w.k > INT32_MAX || w.n > INT32_MAX)
    return sdk::no(BP_REASON_ATTRIBUTE,
                   "K is " + std::to_string(w.k) + " and N is " + std::to_string(w.n) + "; both must be 1 to 2^31 - 1");
  return expect(node)
      .integer("weight_prepacked", 0, 0)
      .rank(kA, 1)
      .input_dtype(kB, one(BP_DTYPE_UINT8))
      .input_dtype(kScales, kReals)
      .input_dtype(kZeros, kReals | one(BP_DTYPE_UINT8))
      .input_dtype(kGroups, one(BP_DTYPE_INT32))
      .input_dtype(kBias, kReals);
}

}  // namespace

std::span<const Row> nbits_rows() {
  static constexpr Row kRows[] = {
      {"com.microsoft", "MatMulNBits", 1, kReals, {3, 6}, supports_nbits, emit_nbits},
  };
  return kRows;
}

}  // namespace backplane::gpu
