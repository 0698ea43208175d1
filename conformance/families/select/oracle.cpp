// SPDX-License-Identifier: Apache-2.0
// Oracles of selection by index, range or condition, of casts and of clipping.
#include "judge/oracle.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backplane/graph.hpp"

namespace backplane::conform {
namespace {

// Starts, ends, axes (default: all) and steps (default: 1) are inputs. Negative starts and ends count from the end.
// Then ONNX clamps starts to [0, n] and ends to [0, n] if the step is positive, else starts to [0, n - 1] and ends to
// [-1, n - 1]. (In NumPy, a start before the first element and a negative step select nothing.)
References slice(const Call& call) {
  const Array& x = call.in(0);
  const Extents starts = call.integers(1), ends = call.integers(2);
  const auto for_each_start = [&](size_t i) { return !call.has(i) || call.integers(i).size() == starts.size(); };
  require(ends.size() == starts.size() && for_each_start(3) && for_each_start(4),
          "starts, ends, axes and steps differ in number");
  require(call.has(3) || starts.size() <= x.extents.size(), "there are more starts than axes");
  Index first(x.extents.size(), 0), step(x.extents.size(), 1);
  Extents shape = x.extents;
  std::vector<bool> is_cut(x.extents.size());
  for (size_t i = 0; i < starts.size(); ++i) {
    const auto axis = call.has(3) ? static_cast<size_t>(normal_axis(call.integers(3)[i], x.rank())) : i;
    require(!is_cut[axis], "an axis is repeated");
    is_cut[axis] = true;
    const int64_t n = x.extents[axis], by = call.has(4) ? call.integers(4)[i] : 1;
    require(by != 0, "a step is 0");
    if (n == 0) continue;
    const auto clamped = [&](int64_t at, int64_t low) {
      return std::clamp<int64_t>(at < 0 ? at + n : at, low, by < 0 ? n - 1 : n);
    };
    const int64_t from = clamped(starts[i], 0), to = clamped(ends[i], by < 0 ? -1 : 0);
    first[axis] = from;
    step[axis] = by;
    shape[axis] = std::max<int64_t>(0, by > 0 ? (to - from + by - 1) / by : (from - to - by - 1) / -by);
  }
  Array result(x.dtype, shape);
  for_each_index(shape, [&](const Index& index) {
    Index from = index;
    for (size_t i = 0; i < from.size(); ++i) from[i] = first[i] + index[i] * step[i];
    result.at(index) = x.at(from);
  });
  return {Reference(std::move(result), Rule::bits())};
}

References gather(const Call& call) {
  const Array &x = call.in(0, 1), &indices = call.in(1);
  require(!is_float(indices.dtype), "the indices are not integers");
  const int64_t axis = normal_axis(call.integer("axis"), x.rank());
  Extents shape(x.extents.begin(), x.extents.begin() + axis);
  shape.insert(shape.end(), indices.extents.begin(), indices.extents.end());
  shape.insert(shape.end(), x.extents.begin() + axis + 1, x.extents.end());
  Array result(x.dtype, shape);
  for_each_index(shape, [&](const Index& index) {
    const auto chosen = whole(indices.at({index.begin() + axis, index.begin() + axis + indices.rank()}));
    Index from(index.begin(), index.begin() + axis);
    from.push_back(normal_axis(chosen, x.extents[static_cast<size_t>(axis)]));
    from.insert(from.end(), index.begin() + axis + indices.rank(), index.end());
    result.at(index) = x.at(from);
  });
  return {Reference(std::move(result), Rule::bits())};
}

References gather_elements(const Call& call) {
  const Array &x = call.in(0, 1), &indices = call.in(1);
  require(!is_float(indices.dtype), "the indices are not integers");
  require(indices.rank() == x.rank(), "the rank of the indices differs from that of the data");
  const auto axis = static_cast<size_t>(normal_axis(call.integer("axis"), x.rank()));
  Array result(x.dtype, indices.extents);
  for_each_index(indices.extents, [&](const Index& index) {
    Index from = index;
    from[axis] = normal_axis(whole(indices.at(index)), x.extents[axis]);
    result.at(index) = x.at(from);
  });
  return {Reference(std::move(result), Rule::bits())};
}

// The inputs are data, pads and constant. Pads list the begin of every axis, then the end of every axis; negative pads
// crop.
References pad(const Call& call) {
  const Array& x = call.in(0);
  const Extents pads = call.integers(1);
  const std::string_view mode = call.text("mode");
  const double constant = call.has(2) ? call.single(2) : 0;
  require(!call.has(3), "the oracle does not support the input axes");
  require(pads.size() == 2 * x.extents.size(), "there are not two pads for each axis");
  require(!call.has(2) || call.in(2).dtype == x.dtype, "the type of the constant differs from that of the data");
  require(mode == "constant" || mode == "edge" || mode == "wrap" || mode == "reflect", "the mode is not known");
  Extents shape = x.extents;
  for (size_t i = 0; i < shape.size(); ++i) {
    const int64_t begin = pads[i], end = pads[shape.size() + i];
    shape[i] += begin + end;
    // ONNX does not say whether the elements removed at one end are repeated at the other.
    require(mode == "constant" || std::min(begin, end) >= 0 || std::max(begin, end) <= 0,
            "an axis is cropped at one end and padded at the other");
  }
  Array result(x.dtype, shape);
  require(mode == "constant" || x.count() != 0 || result.count() == 0, "the input has no elements to pad with");
  for_each_index(shape, [&](const Index& index) {
    Index from = index;
    bool outside = false;
    for (size_t i = 0; i < from.size(); ++i) {
      const int64_t n = x.extents[i];
      int64_t at = index[i] - pads[i];
      if (at < 0 || at >= n) {
        outside = true;
        if (mode == "edge") at = std::clamp<int64_t>(at, 0, n - 1);
        if (mode == "wrap") at = (at % n + n) % n;
        if (mode == "reflect") {
          const int64_t period = std::max<int64_t>(1, 2 * (n - 1));
          at = (at % period + period) % period;
          at = at < n ? at : period - at;
        }
      }
      from[i] = at;
    }
    result.at(index) = outside && mode == "constant" ? constant : x.at(from);
  });
  return {Reference(std::move(result), Rule::bits())};
}

References where(const Call& call) {
  const Array &condition = call.in(0), &yes = call.in(1), &no = call.in(2);
  require(condition.dtype == BP_DTYPE_BOOL && yes.dtype == no.dtype,
          "the condition is not BOOL, or the other two inputs differ in type");
  Array result(yes.dtype, broadcast(condition.extents, broadcast(yes.extents, no.extents)));
  for_each_index(result.extents, [&](const Index& index) {
    result.at(index) = (condition.broadcast_at(index) != 0 ? yes : no).broadcast_at(index);
  });
  return {Reference(std::move(result), Rule::bits())};
}

// Returns the low bits of an integer, as a number of type `to`. Numbers of 64 bits are left as they are, because judges
// compare them modulo 2^64.
double wrapped(double x, bp_dtype_t to) {
  const uint32_t bits = view::dtype_bits(to);
  if (bits == 64) return x;
  require_known(std::fabs(x) <= 0x1p53, "the low bits of an integer beyond 2^53 are not known");
  const bool is_signed =
      to == BP_DTYPE_INT32 || to == BP_DTYPE_INT16 || to == BP_DTYPE_INT8 || to == BP_DTYPE_INT4 || to == BP_DTYPE_INT2;
  const double range = std::exp2(bits), least = is_signed ? -range / 2 : 0, rest = std::fmod(x, range);
  if (rest < least) return rest + range;
  return rest < least + range ? rest : rest - range;
}

// Integers wrap. Floats are truncated to integers; NaN and numbers out of range have no defined result.
References cast(const Call& call) {
  const int64_t wanted = call.integer("to");
  require(wanted > 0 && wanted <= BP_DTYPE_INT2, "the type is not known");
  const auto to = static_cast<bp_dtype_t>(wanted);
  require(view::dtype_bits(to) != 0, "the type is not numeric");
  Array result = call.in(0);
  const bool from_float = is_float(result.dtype);
  result.dtype = to;
  for (double& x : result.values) {
    if (to == BP_DTYPE_BOOL)
      x = x != 0;
    else if (is_float(to))
      x = float_type(to).round(x);
    else
      x = from_float ? std::trunc(x) : wrapped(x, to);
  }
  return {Reference(std::move(result), Rule::bits())};
}

References clip(const Call& call) {
  Array result = call.in(0);
  for (const size_t limit : {1, 2})
    require(!call.has(limit) || call.in(limit).dtype == result.dtype,
            "the type of a limit differs from that of the data");
  const double low = call.has(1) ? call.single(1) : -HUGE_VAL, high = call.has(2) ? call.single(2) : HUGE_VAL;
  for (double& x : result.values) {
    if (x < low) x = low;
    if (x > high) x = high;
  }
  return {Reference(std::move(result), Rule::exact())};
}

const Operator kOperators[] = {
    {"Slice", {13}, slice},
    {"Gather", {13}, gather},
    {"GatherElements", {13}, gather_elements},
    {"Pad", {19, 21, 23, 24, 25}, pad},
    {"Where", {16}, where},
    {"Cast", {13, 19, 21, 23, 24, 25, 28}, cast},
    {"Clip", {13}, clip},
};

}  // namespace

std::span<const Operator> select_operators() {
  return kOperators;
}

}  // namespace backplane::conform
