// SPDX-License-Identifier: Apache-2.0
// Operators that rearrange, mask or sum elements: Transpose, DepthToSpace, SpaceToDepth, Trilu, ReverseSequence,
// Col2Im.
#include <algorithm>

#include "base/counted.h"
#include "ops/infer/rules.h"

namespace backplane::ops {
namespace {

Status transpose(Context& c) {
  if (!c.ranked(0)) return {};
  Shape shape = c.shape(0), result(shape.size());
  if (!c.has_attribute("perm")) return c.set_shape(0, Shape(shape.rbegin(), shape.rend()));
  std::vector<int64_t> perm;
  BP_TRY(c.axes(c.integers("perm"), c.rank(0), perm));
  if (perm.size() != shape.size()) {
    return c.fail("perm has " + counted(perm.size(), "entry", "entries") + ", but the input has rank " +
                  std::to_string(shape.size()));
  }
  for (size_t i = 0; i < perm.size(); ++i) result[i] = shape[perm[i]];
  if (const KnownData* x = c.elements(0); x && perm.size() <= 1) c.set_known_data(0, *x);
  return c.set_shape(0, result);
}

Status depth_to_space(Context& c) {
  BP_TRY(c.expect_rank(0, 4, 4));
  int64_t block = c.integer("blocksize");
  if (block <= 0 || block > INT32_MAX)
    return c.fail("blocksize is " + std::to_string(block) + ", but it must be from 1 to 2147483647");
  if (!c.ranked(0)) return c.set_rank(0, 4);
  Shape x = c.shape(0);
  if (x[1].is_number() && x[1].value % (block * block) != 0) {
    return c.fail("the channel count " + std::to_string(x[1].value) + " is not a multiple of blocksize squared, " +
                  std::to_string(block * block));
  }
  Expressions& m = c.math();
  return c.set_shape(0, {x[0], m.floor_divide(x[1], block * block), m.multiply(x[2], block), m.multiply(x[3], block)});
}

Status space_to_depth(Context& c) {
  BP_TRY(c.expect_rank(0, 4, 4));
  int64_t block = c.integer("blocksize");
  if (block <= 0 || block > INT32_MAX)
    return c.fail("blocksize is " + std::to_string(block) + ", but it must be from 1 to 2147483647");
  if (!c.ranked(0)) return c.set_rank(0, 4);
  Shape x = c.shape(0);
  for (size_t axis : {2, 3}) {
    if (x[axis].is_number() && x[axis].value % block != 0) {
      return c.fail("extent " + std::to_string(x[axis].value) + " is not a multiple of blocksize " +
                    std::to_string(block));
    }
  }
  Expressions& m = c.math();
  return c.set_shape(0,
                     {x[0], m.multiply(x[1], block * block), m.floor_divide(x[2], block), m.floor_divide(x[3], block)});
}

Status trilu(Context& c) {
  BP_TRY(c.expect_rank(0, 2, BP_MAX_RANK));
  return same_shape(c);
}

Status reverse_sequence(Context& c) {
  BP_TRY(c.expect_rank(0, 2, BP_MAX_RANK));
  BP_TRY(c.expect_rank(1, 1, 1));
  return same_shape(c);
}

// X [N, C*block, L] and the extents of the image yield [N, C, image...].
Status col_to_im(Context& c) {
  BP_TRY(c.expect_rank(0, 3, 3));
  const KnownData* image = c.known_data(1);
  if (!image) {
    auto axes = c.length(1);
    if (!axes) return {};
    Shape shape(static_cast<size_t>(std::min<int64_t>(*axes, BP_MAX_RANK)) + 2);
    shape[0] = c.dim(0, 0);
    return c.set_shape(0, shape);
  }
  const KnownData* block = c.known_data(2);
  Shape shape{c.dim(0, 0), block ? c.math().floor_divide(c.dim(0, 1), c.math().product(*block)) : Scalar()};
  shape.insert(shape.end(), image->begin(), image->end());
  return c.set_shape(0, shape);
}

}  // namespace

std::span<const RuleRow> layout_rules() {
  static constexpr RuleRow kRows[] = {
      {"", "Col2Im", col_to_im},
      {"", "DepthToSpace", depth_to_space},
      {"", "ReverseSequence", reverse_sequence},
      {"", "SpaceToDepth", space_to_depth},
      {"", "Transpose", transpose},
      {"", "Trilu", trilu},
  };
  return kRows;
}

}  // namespace backplane::ops
