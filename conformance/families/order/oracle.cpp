// SPDX-License-Identifier: Apache-2.0
// Oracles of sorting, filtering, slicing and reversing.
#include "judge/oracle.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace backplane::conform {
namespace {

Reference moved(Array array) {
  return {std::move(array), Rule::bits()};
}

// Of equal elements, the one with the lower index comes first. Returns both outputs.
References top_k(const Call& call) {
  const Array& x = call.in(0, 1);
  const auto axis = static_cast<size_t>(normal_axis(call.integer("axis", -1), x.rank()));
  const int64_t k = whole(call.single(1)), extent = x.extents[axis];
  require(k >= 0 && k <= extent, "K exceeds the extent of the axis or is negative");
  require(call.integer("sorted", 1) != 0, "unsorted results have no defined order");
  for (const double value : x.values) require(!std::isnan(value), "NaN has no order");
  const bool largest = call.integer("largest", 1) != 0;
  Extents shape = x.extents, first = x.extents;
  shape[axis] = k;
  first[axis] = 1;
  Array values(x.dtype, shape), indices(BP_DTYPE_INT64, shape);
  if (x.count() == 0) return {moved(std::move(values)), moved(std::move(indices))};
  for_each_index(first, [&](const Index& line) {
    std::vector<int64_t> order(static_cast<size_t>(extent));
    std::iota(order.begin(), order.end(), 0);
    const auto element = [&](int64_t i) {
      Index at = line;
      at[axis] = i;
      return x.at(at);
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return largest ? element(a) > element(b) : element(a) < element(b); });
    Index to = line;
    for (to[axis] = 0; to[axis] < k; ++to[axis]) {
      const int64_t chosen = order[static_cast<size_t>(to[axis])];
      values.at(to) = element(chosen);
      indices.at(to) = static_cast<double>(chosen);
    }
  });
  return {moved(std::move(values)), moved(std::move(indices))};
}

References non_zero(const Call& call) {
  const Array& x = call.in(0, 1);
  std::vector<Index> found;
  for_each_index(x.extents, [&](const Index& index) {
    if (x.at(index) != 0) found.push_back(index);
  });
  Array result(BP_DTYPE_INT64, {x.rank(), static_cast<int64_t>(found.size())});
  for_each_index(result.extents, [&](const Index& at) {
    result.at(at) = static_cast<double>(found[static_cast<size_t>(at[1])][static_cast<size_t>(at[0])]);
  });
  return {moved(std::move(result))};
}

// Unique of the flattened input. Returns all four outputs.
References unique(const Call& call) {
  const Array& x = call.in(0);
  for (const Attribute& attribute : call.attributes())
    require_known(attribute.name != "axis", "the oracle supports only Unique of the flattened input");
  std::vector<double> order;  // the distinct elements, in the order of first occurrence
  for (const double value : x.values) {
    require(!std::isnan(value), "NaN has no order");
    if (std::find(order.begin(), order.end(), value) == order.end()) order.push_back(value);
  }
  if (call.integer("sorted", 1) != 0) std::sort(order.begin(), order.end());
  const auto n = static_cast<int64_t>(order.size());
  Array values(x.dtype, {n}), firsts(BP_DTYPE_INT64, {n}), inverse(BP_DTYPE_INT64, {x.count()}),
      counts(BP_DTYPE_INT64, {n});
  values.values = order;
  for (size_t i = x.values.size(); i-- > 0;) {
    const auto at = static_cast<size_t>(std::find(order.begin(), order.end(), x.values[i]) - order.begin());
    firsts.values[at] = static_cast<double>(i);
    inverse.values[i] = static_cast<double>(at);
    ++counts.values[at];
  }
  require(call.output_count() <= 4, "there are more than four outputs");
  References all = {{std::move(values), Rule::exact()},
                    moved(std::move(firsts)),
                    moved(std::move(inverse)),
                    moved(std::move(counts))};
  all.erase(all.begin() + std::max<int64_t>(1, call.output_count()), all.end());
  return all;
}

References compress(const Call& call) {
  const Array &given = call.in(0, 1), &condition = call.in(1);
  require(condition.rank() == 1 && condition.dtype == BP_DTYPE_BOOL, "the condition is not a vector of bools");
  Array x = given;
  const bool has_axis = std::any_of(call.attributes().begin(), call.attributes().end(),
                                    [](const Attribute& one) { return one.name == "axis"; });
  if (!has_axis) x.extents = {x.count()};
  const auto axis = static_cast<size_t>(has_axis ? normal_axis(call.integer("axis"), x.rank()) : 0);
  require(condition.count() <= x.extents[axis], "the condition is longer than the axis");
  std::vector<int64_t> chosen;
  for (int64_t i = 0; i < condition.count(); ++i) {
    if (condition.values[static_cast<size_t>(i)] != 0) chosen.push_back(i);
  }
  Extents shape = x.extents;
  shape[axis] = static_cast<int64_t>(chosen.size());
  Array result(x.dtype, shape);
  for_each_index(shape, [&](const Index& index) {
    Index from = index;
    from[axis] = chosen[static_cast<size_t>(index[axis])];
    result.at(index) = x.at(from);
  });
  return {moved(std::move(result))};
}

// Reverses the first `length` entries of each batch along the time axis.
References reverse_sequence(const Call& call) {
  const Array& x = call.in(0, 2);
  const int64_t batch = call.integer("batch_axis", 1), time = call.integer("time_axis", 0);
  require(batch >= 0 && time >= 0 && batch < 2 && time < 2 && batch != time,
          "batch and time are not the first two axes");
  const auto b = static_cast<size_t>(batch), t = static_cast<size_t>(time);
  const std::vector<double>& lengths = call.vector(1, x.extents[b]);
  Array result(x.dtype, x.extents);
  for_each_index(x.extents, [&](const Index& index) {
    const int64_t length = whole(lengths[static_cast<size_t>(index[b])]);
    require(length >= 0 && length <= x.extents[t], "a length is outside the time axis");
    Index from = index;
    if (from[t] < length) from[t] = length - 1 - from[t];
    result.at(index) = x.at(from);
  });
  return {moved(std::move(result))};
}

References trilu(const Call& call) {
  Array result = call.in(0, 2);
  const int64_t k = call.has(1) ? whole(call.single(1)) : 0;
  const bool upper = call.integer("upper", 1) != 0;
  const size_t row = result.extents.size() - 2;
  for_each_index(result.extents, [&](const Index& index) {
    // The distance to the right of the main diagonal. k may be any number.
    const int64_t right = index[row + 1] - index[row];
    if (upper ? right < k : right > k) result.at(index) = 0;
  });
  return {moved(std::move(result))};
}

References center_crop_pad(const Call& call) {
  const Array& x = call.in(0);
  const Extents wanted = call.integers(1);
  Extents axes = call.ints("axes"), shape = x.extents, begin(x.extents.size(), 0);
  if (axes.empty()) {
    for (int64_t i = 0; i < x.rank(); ++i) axes.push_back(i);
  }
  require(axes.size() == wanted.size(), "there is not one extent for each axis");
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(normal_axis(axes[i], x.rank()));
    require(wanted[i] >= 0, "an extent is negative");
    shape[axis] = wanted[i];
    const int64_t more = wanted[i] - x.extents[axis];
    begin[axis] = more >= 0 ? more / 2 : -(-more / 2);  // an odd remainder is added or removed at the end
  }
  Array result(x.dtype, shape);
  for_each_index(shape, [&](const Index& index) {
    Index from = index;
    bool is_inside = true;
    for (size_t i = 0; i < from.size(); ++i) {
      from[i] -= begin[i];
      is_inside = is_inside && from[i] >= 0 && from[i] < x.extents[i];
    }
    if (is_inside) result.at(index) = x.at(from);
  });
  return {moved(std::move(result))};
}

References cast_like(const Call& call) {
  Array result = call.in(0);
  result.dtype = call.in(1).dtype;
  for (double& x : result.values) {
    if (result.dtype == BP_DTYPE_BOOL)
      x = x != 0;
    else
      x = is_float(result.dtype) ? float_type(result.dtype).round(x) : std::trunc(x);
  }
  return {moved(std::move(result))};
}

// In inference, returns the input itself and a mask of ones.
References dropout(const Call& call) {
  const Array& x = call.in(0);
  require_known(!call.has(2) || call.single(2) == 0, "the oracle does not support training, which draws at random");
  require(call.output_count() <= 2, "there are more than two outputs");
  References all = {moved(x)};
  if (call.output_count() < 2) return all;
  Array mask(BP_DTYPE_BOOL, x.extents);
  std::fill(mask.values.begin(), mask.values.end(), 1);
  all.push_back(moved(std::move(mask)));
  return all;
}

const Operator kOperators[] = {
    {"TopK", {11, 24}, top_k},
    {"NonZero", {13}, non_zero},
    {"Unique", {11, 28}, unique},
    {"Compress", {11, 28}, compress},
    {"ReverseSequence", {10, 28}, reverse_sequence},
    {"Trilu", {14}, trilu},
    {"CenterCropPad", {18}, center_crop_pad},
    {"CastLike", {15, 19, 21, 23, 24, 25}, cast_like},
    {"Dropout", {13, 22}, dropout},
};

}  // namespace

std::span<const Operator> order_operators() {
  return kOperators;
}

}  // namespace backplane::conform
