// SPDX-License-Identifier: Apache-2.0
// RotaryEmbedding.
#include "ops/rotary.h"

#include "ops/table.h"

namespace backplane::gpu {

void emit_rotation(Emit& e, const RotaryHeads& heads, const RotaryAngles& angles, const Tensor& y) {
  const Tensor &x = heads.x, &positions = angles.positions;
  const bool packed = x.rank() == 3;
  const int64_t length = x.shape[packed ? 1 : 2], size = heads.size, row = heads.row_heads * size;
  const int64_t total = x.shape[0] * heads.heads * length * size;
  e.launch("rotary", "rotary",
           "-DTYPE=" + Emit::type(x) + " -DDIM=" + std::to_string(angles.dim) + (positions ? " -DPOSITIONS" : "") +
               (angles.interleaved ? " -DINTERLEAVED" : ""))
      .in(x)
      .in(angles.cosines)
      .in(angles.sines)
      .in(positions ? positions : x)
      .out(y)
      .arg(total)
      .arg(heads.heads)
      .arg(length)
      .arg(size)
      .arg(row * length)
      .arg(packed ? size : length * size)
      .arg(packed ? row : size)
      .arg(angles.cosines.shape[0])
      .fault()
      .range(total);
}

namespace {

void emit_rotary(Emit& e, std::string_view) {
  const Tensor x = e.input(0), cosines = e.input(1), sines = e.input(2), positions = e.input(3);
  const bool packed = x.rank() == 3;  // [batch, length, heads * size], otherwise [batch, heads, length, size]
  const int64_t width = cosines.shape.back(), batch = x.shape[0], length = x.shape[packed ? 1 : 2];
  int64_t heads = packed ? e.node.int_attribute("num_heads", 0) : x.shape[1];
  if (packed && heads == 0 && width > 0) heads = x.shape[2] / (2 * width);
  if (packed && (heads <= 0 || x.shape[2] % heads != 0))
    throw sdk::Error(BP_TYPE_MISMATCH, "input 0 of shape " + to_string(x.shape) + " does not split into " +
                                           std::to_string(heads) + " heads");
  const int64_t size = packed ? x.shape[2] / heads : x.shape[3];
  const int64_t attribute = e.node.int_attribute("rotary_embedding_dim", 0), dim = attribute == 0 ? size : attribute;
  const Shape cache = positions ? Shape{cosines.shape[0], width} : Shape{batch, length, width};
  if (dim < 2 || dim > size || dim % 2 != 0 || width != dim / 2 || cosines.shape != cache || sines.shape != cache ||
      (positions && (positions.shape != Shape{batch, length} || cache[0] == 0)))
    throw sdk::Error(BP_TYPE_MISMATCH, "cos_cache of shape " + to_string(cosines.shape) + " and sin_cache of shape " +
                                           to_string(sines.shape) + " do not fit input 0 of shape " +
                                           to_string(x.shape) + ", of whose heads " + std::to_string(dim) + " of " +
                                           std::to_string(size) + " elements are to be rotated");
  emit_rotation(e, {x, heads, heads, size},
                {cosines, sines, positions, dim, e.node.int_attribute("interleaved", 0) != 0}, e.output(0, x.shape));
}

Verdict supports_rotary(const Node& node) {
  const int32_t wanted = node.input(3) ? 2 : 3;  // rank of the caches of cosines and sines
  return expect(node)
      .rank(0, 3, 4)
      .same_dtype(0, 1)
      .same_dtype(0, 2)
      .rank(1, wanted, wanted)
      .rank(2, wanted, wanted)
      .input_dtype(3, one(BP_DTYPE_INT64));
}

}  // namespace

std::span<const Row> rotary_rows() {
  static constexpr Row kRows[] = {
      {"", "RotaryEmbedding", 23, kFloats, {3, 4}, supports_rotary, emit_rotary},
  };
  return kRows;
}

}  // namespace backplane::gpu
