// SPDX-License-Identifier: Apache-2.0
// Oracles of operators that keep the elements and change their shape or order.
#include "judge/oracle.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace backplane::conform {
namespace {

Reference moved(Array array) {
  return Reference(std::move(array), Rule::bits());
}

// Fills an array of `shape`: `source` returns the position in `from` of each element.
template <class F>
Reference gathered(const Array& from, Extents shape, F source) {
  Array result(from.dtype, std::move(shape));
  for_each_index(result.extents, [&](const Index& index) { result.at(index) = from.at(source(index)); });
  return moved(std::move(result));
}

Reference reshaped(const Array& from, Extents shape) {
  require(count_of(shape) == from.count(), "the new shape has a different number of elements");
  Array result = from;
  result.extents = std::move(shape);
  return moved(std::move(result));
}

References identity(const Call& call) {
  return {moved(call.in(0))};
}

// A 0 copies the input's extent unless `allowzero` is set. One -1 stands for the extent that the number of elements
// determines.
References reshape(const Call& call) {
  const Array& x = call.in(0);
  Extents shape = call.integers(1);
  Extents given;  // all extents except -1
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 && call.integer("allowzero") == 0) {
      require(i < x.extents.size(), "there is no extent to copy");
      shape[i] = x.extents[i];
    }
    if (shape[i] != -1) given.push_back(shape[i]);
  }
  require(given.size() + 1 >= shape.size(), "more than one extent is -1");
  const int64_t known = count_of(given);
  for (int64_t& extent : shape) {
    if (extent == -1) extent = known == 0 ? 0 : x.count() / known;
  }
  return {reshaped(x, shape)};
}

References flatten(const Call& call) {
  const Array& x = call.in(0);
  const int64_t axis = normal_axis(call.integer("axis"), x.rank() + 1) - (call.integer("axis") < 0 ? 1 : 0);
  require(axis >= 0, "the axis is out of range");
  return {reshaped(x, {count_of({x.extents.begin(), x.extents.begin() + axis}),
                       count_of({x.extents.begin() + axis, x.extents.end()})})};
}

References squeeze(const Call& call) {
  const Array& x = call.in(0);
  std::vector<bool> gone(x.extents.size());
  if (call.has(1)) {
    for (const int64_t axis : call.integers(1)) gone[static_cast<size_t>(normal_axis(axis, x.rank()))] = true;
  } else {
    for (size_t i = 0; i < gone.size(); ++i) gone[i] = x.extents[i] == 1;
  }
  Extents shape;
  for (size_t i = 0; i < gone.size(); ++i) {
    if (!gone[i]) shape.push_back(x.extents[i]);
  }
  return {reshaped(x, shape)};
}

References unsqueeze(const Call& call) {
  const Array& x = call.in(0);
  Extents shape = x.extents, axes = call.integers(1);
  for (int64_t& axis : axes) axis = normal_axis(axis, x.rank() + static_cast<int64_t>(axes.size()));
  std::sort(axes.begin(), axes.end());
  require(std::adjacent_find(axes.begin(), axes.end()) == axes.end(), "an axis is repeated");
  for (const int64_t axis : axes) shape.insert(shape.begin() + axis, 1);
  return {reshaped(x, shape)};
}

References transpose(const Call& call) {
  const Array& x = call.in(0);
  Extents backwards(x.extents.size());
  std::iota(backwards.rbegin(), backwards.rend(), 0);
  const Extents perm = call.ints("perm", backwards);
  require(std::is_permutation(perm.begin(), perm.end(), backwards.begin(), backwards.end()),
          "perm is not a permutation of the axes");
  Extents shape;
  for (const int64_t axis : perm) shape.push_back(x.extents[static_cast<size_t>(axis)]);
  return {gathered(x, shape, [&](const Index& index) {
    Index from(index.size());
    for (size_t i = 0; i < perm.size(); ++i) from[static_cast<size_t>(perm[i])] = index[i];
    return from;
  })};
}

References concat(const Call& call) {
  const auto axis = static_cast<size_t>(normal_axis(call.integer("axis"), call.in(0).rank()));
  Extents shape = call.in(0).extents;
  shape[axis] = 0;
  for (size_t i = 0; i < call.input_count(); ++i) {
    Extents other = call.in(i).extents;
    require(other.size() == shape.size(), "the inputs have different ranks");
    const int64_t own = std::exchange(other[axis], shape[axis]);
    require(other == shape && call.in(i).dtype == call.in(0).dtype, "the inputs differ in other axes, or in type");
    shape[axis] += own;
  }
  Array result(call.in(0).dtype, shape);
  for_each_index(shape, [&](const Index& index) {
    Index from = index;
    size_t i = 0;
    for (; from[axis] >= call.in(i).extents[axis]; ++i) from[axis] -= call.in(i).extents[axis];
    result.at(index) = call.in(i).at(from);
  });
  return {moved(std::move(result))};
}

// Input 1 lists the sizes. Without it, the axis is cut into equal pieces, and the last piece may be smaller.
References split(const Call& call) {
  const Array& x = call.in(0);
  const auto axis = static_cast<size_t>(normal_axis(call.integer("axis"), x.rank()));
  Extents sizes;
  if (call.has(1)) {
    sizes = call.integers(1);
  } else {
    require(call.output_count() != 0, "there is no output");
    const int64_t n = call.output_count(), whole = x.extents[axis], piece = (whole + n - 1) / n;
    for (int64_t left = whole, i = 0; i < n; ++i, left -= piece) sizes.push_back(std::clamp<int64_t>(left, 0, piece));
  }
  require(std::all_of(sizes.begin(), sizes.end(), [](int64_t size) { return size >= 0 && size <= kMaxElements; }) &&
              std::accumulate(sizes.begin(), sizes.end(), int64_t{0}) == x.extents[axis],
          "a piece has a negative size, or the sizes of the pieces do not add up to the extent");
  References results;
  int64_t start = 0;
  for (const int64_t size : sizes) {
    Extents shape = x.extents;
    shape[axis] = size;
    results.push_back(gathered(x, shape, [&](const Index& index) {
      Index from = index;
      from[axis] += start;
      return from;
    }));
    start += size;
  }
  return results;
}

References expand(const Call& call) {
  const Extents shape = broadcast(call.in(0).extents, call.integers(1));
  Array result(call.in(0).dtype, shape);
  for_each_index(shape, [&](const Index& index) { result.at(index) = call.in(0).broadcast_at(index); });
  return {moved(std::move(result))};
}

References tile(const Call& call) {
  const Array& x = call.in(0);
  Extents shape = call.integers(1);
  require(shape.size() == x.extents.size(), "there is not one repeat for each axis");
  for (size_t i = 0; i < shape.size(); ++i) {
    require(shape[i] >= 0 && shape[i] <= kMaxElements, "a repeat is out of range");
    shape[i] *= x.extents[i];
  }
  return {gathered(x, shape, [&](const Index& index) {
    Index from = index;
    for (size_t i = 0; i < from.size(); ++i) from[i] %= x.extents[i];
    return from;
  })};
}

// Returns the block size. Throws if the input is not an image [batch, channels, height, width].
int64_t blocksize(const Call& call) {
  require(call.in(0).rank() == 4, "the input is not of rank 4");
  const int64_t block = call.integer("blocksize");
  require(block >= 1 && block <= kMaxElements, "blocksize is out of range");
  return block;
}

// Mode DCR orders the channels as [block row, block column, depth], mode CRD as [depth, block row, block column].
References depth_to_space(const Call& call) {
  const Array& x = call.in(0);
  const int64_t block = blocksize(call), depth = x.extents[1] / (block * block);
  require(x.extents[1] % (block * block) == 0, "the number of channels is not a multiple of blocksize²");
  const bool depth_last = call.text("mode") != "CRD";
  return {gathered(x, {x.extents[0], depth, x.extents[2] * block, x.extents[3] * block}, [&](const Index& index) {
    const int64_t cell = index[2] % block * block + index[3] % block;
    return Index{index[0], depth_last ? cell * depth + index[1] : index[1] * block * block + cell, index[2] / block,
                 index[3] / block};
  })};
}

// The modes order the result's channels in the same way as the channels of the input of depth_to_space.
References space_to_depth(const Call& call) {
  const Array& x = call.in(0);
  const bool depth_last = call.text("mode") != "CRD";
  const int64_t block = blocksize(call), depth = x.extents[1];
  require(x.extents[2] % block == 0 && x.extents[3] % block == 0, "height or width is not a multiple of blocksize");
  return {gathered(x, {x.extents[0], depth * block * block, x.extents[2] / block, x.extents[3] / block},
                   [&](const Index& index) {
                     const int64_t cell = depth_last ? index[1] / depth : index[1] % (block * block);
                     const int64_t channel = depth_last ? index[1] % depth : index[1] / (block * block);
                     return Index{index[0], channel, index[2] * block + cell / block, index[3] * block + cell % block};
                   })};
}

References shape(const Call& call) {
  const Extents& extents = call.in(0).extents;
  const auto rank = static_cast<int64_t>(extents.size());
  const auto clamped = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const int64_t start = clamped(call.integer("start")), end = std::max(start, clamped(call.integer("end", rank)));
  Array result(BP_DTYPE_INT64, {end - start});
  std::copy(extents.begin() + start, extents.begin() + end, result.values.begin());
  return {moved(std::move(result))};
}

const Operator kOperators[] = {
    {"Identity", {14, 16, 19, 21, 23, 24, 25}, identity},
    {"Reshape", {14, 19, 21, 23, 24, 25}, reshape},
    {"Flatten", {13, 21, 23, 24, 25}, flatten},
    {"Squeeze", {13, 21, 23, 24, 25}, squeeze},
    {"Unsqueeze", {13, 21, 23, 24, 25}, unsqueeze},
    {"Transpose", {13, 21, 23, 24, 25}, transpose},
    {"Concat", {13}, concat},
    {"Split", {18}, split},
    {"Expand", {13}, expand},
    {"Tile", {13}, tile},
    {"DepthToSpace", {13, 28}, depth_to_space},
    {"SpaceToDepth", {13, 28}, space_to_depth},
    {"Shape", {15, 19, 21, 23, 24, 25}, shape},
};

}  // namespace

std::span<const Operator> shape_operators() {
  return kOperators;
}

}  // namespace backplane::conform
