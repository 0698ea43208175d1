// SPDX-License-Identifier: Apache-2.0
// Oracles that gather elements from, or scatter them to, positions given by other inputs.
#include "judge/oracle.h"

#include <cmath>

namespace backplane::conform {
namespace {

void require_indices(const Array& indices) {
  require(!is_float(indices.dtype), "the indices are not integers");
}

// Applies updates to elements, with or without a reduction. The reduction "add" is judged as a sum of the element and
// all its updates, in any order.
class Target {
 public:
  Target(const Array& data, std::string_view reduction)
      : reduction_(reduction), result_(data, rule_of(data, reduction)), counts_(data.values.size(), 1) {
    for (const double x : data.values) result_.scale.push_back(std::fabs(x));
  }

  void update(const Index& index, double value) {
    size_t at = 0;
    require(index.size() == result_.value.extents.size(), "the rank of an index differs from that of the data");
    for (size_t i = 0; i < index.size(); ++i)
      at = at * static_cast<size_t>(result_.value.extents[i]) +
           static_cast<size_t>(normal_axis(index[i], result_.value.extents[i]));
    double& x = result_.value.values[at];
    ++counts_[at];
    if (reduction_ == "add") {
      x += value;
      result_.scale[at] += std::fabs(value);
    } else if (reduction_ == "mul") {
      x *= value;
    } else if (reduction_ == "max") {
      x = std::fmax(x, value);
    } else if (reduction_ == "min") {
      x = std::fmin(x, value);
    } else {
      x = value;
    }
  }
  References result() {
    for (const double count : counts_) result_.rule.terms = std::fmax(result_.rule.terms, count);
    if (reduction_ != "add") result_.scale.clear();
    return {Reference(std::move(result_))};
  }

 private:
  static Rule rule_of(const Array& data, std::string_view reduction) {
    if (reduction == "add") return is_float(data.dtype) ? Rule::of(Rule::kDot) : Rule::exact();
    if (reduction == "mul") return is_float(data.dtype) ? Rule::of(Rule::kProduct) : Rule::exact();
    require(reduction == "none" || reduction.empty() || reduction == "max" || reduction == "min",
            "the reduction is not known");
    return reduction == "max" || reduction == "min" ? Rule::exact() : Rule::bits();
  }

  std::string_view reduction_;
  Reference result_;
  std::vector<double> counts_;
};

References scatter_elements(const Call& call) {
  const Array &data = call.in(0, 1), &indices = call.in(1), &updates = call.in(2);
  require_indices(indices);
  require(indices.extents == updates.extents && indices.rank() == data.rank(),
          "indices and updates differ in shape, or indices and data in rank");
  require(updates.dtype == data.dtype, "the type of the updates differs from that of the data");
  const auto axis = static_cast<size_t>(normal_axis(call.integer("axis"), data.rank()));
  Target target(data, call.text("reduction"));
  for_each_index(indices.extents, [&](const Index& index) {
    Index to = index;
    for (size_t i = 0; i < to.size(); ++i) require(to[i] < data.extents[i] || i == axis, "an index is out of range");
    to[axis] = normal_axis(whole(indices.at(index)), data.extents[axis]);
    target.update(to, updates.at(index));
  });
  return target.result();
}

// The last axis of the indices holds a position along the first axes of the data. The remaining axes are moved as a
// block.
References scatter_nd(const Call& call) {
  const Array &data = call.in(0, 1), &indices = call.in(1, 1), &updates = call.in(2);
  require_indices(indices);
  require(updates.dtype == data.dtype, "the type of the updates differs from that of the data");
  const int64_t depth = indices.extents.back();
  require(depth >= 0 && depth <= data.rank(), "an index has more coordinates than the data has axes");
  const auto outer = static_cast<size_t>(indices.rank() - 1);
  Extents expected(indices.extents.begin(), indices.extents.end() - 1);
  expected.insert(expected.end(), data.extents.begin() + depth, data.extents.end());
  require(updates.extents == expected, "the updates do not fit indices and data");
  Target target(data, call.text("reduction"));
  for_each_index(updates.extents, [&](const Index& index) {
    Index place(index.begin(), index.begin() + static_cast<int64_t>(outer)), to;
    place.push_back(0);
    for (int64_t i = 0; i < depth; ++i) {
      place.back() = i;
      to.push_back(normal_axis(whole(indices.at(place)), data.extents[static_cast<size_t>(i)]));
    }
    to.insert(to.end(), index.begin() + static_cast<int64_t>(outer), index.end());
    target.update(to, updates.at(index));
  });
  return target.result();
}

References gather_nd(const Call& call) {
  const Array &data = call.in(0, 1), &indices = call.in(1, 1);
  require_indices(indices);
  const int64_t batch = call.integer("batch_dims"), depth = indices.extents.back();
  require(batch >= 0 && batch < indices.rank() && batch <= data.rank() && depth >= 0 && depth <= data.rank() - batch,
          "batch_dims and indices do not fit the data");
  for (int64_t i = 0; i < batch; ++i)
    require(data.extents[static_cast<size_t>(i)] == indices.extents[static_cast<size_t>(i)], "the batch axes differ");
  Extents shape(indices.extents.begin(), indices.extents.end() - 1);
  const auto outer = static_cast<int64_t>(shape.size());
  shape.insert(shape.end(), data.extents.begin() + batch + depth, data.extents.end());
  Array result(data.dtype, shape);
  for_each_index(shape, [&](const Index& index) {
    Index place(index.begin(), index.begin() + outer), from(index.begin(), index.begin() + batch);
    place.push_back(0);
    for (int64_t i = 0; i < depth; ++i) {
      place.back() = i;
      from.push_back(normal_axis(whole(indices.at(place)), data.extents[static_cast<size_t>(batch + i)]));
    }
    from.insert(from.end(), index.begin() + outer, index.end());
    result.at(index) = data.at(from);
  });
  return {Reference(std::move(result), Rule::bits())};
}

// Writes `update` into the cache along the axis. Each batch has its own start index, and in mode "circular" the index
// wraps around.
References tensor_scatter(const Call& call) {
  const Array &past = call.in(0, 2), &update = call.in(1, 2);
  require(update.rank() == past.rank() && update.dtype == past.dtype, "the update does not fit the cache");
  const int64_t axis = normal_axis(call.integer("axis", -2), past.rank());
  require(axis != 0, "the axis is the batch axis");
  const std::string_view mode = call.text("mode");
  require(mode == "linear" || mode == "circular" || mode.empty(), "the mode is not known");
  for (size_t i = 0; i < past.extents.size(); ++i)
    require(
        static_cast<int64_t>(i) == axis ? update.extents[i] <= past.extents[i] : update.extents[i] == past.extents[i],
        "the update does not fit the cache");
  std::vector<double> starts(static_cast<size_t>(past.extents[0]), 0);
  if (call.has(2)) starts = call.vector(2, past.extents[0]);
  Array result = past;
  for_each_index(update.extents, [&](const Index& index) {
    Index to = index;
    int64_t& at = to[static_cast<size_t>(axis)];
    const int64_t extent = past.extents[static_cast<size_t>(axis)],
                  start = whole(starts[static_cast<size_t>(index[0])]);
    require(start >= 0 && start <= extent, "a write index is outside the cache");
    at += start;
    if (mode == "circular") at %= extent;
    require(at < extent, "the update reaches beyond the cache");
    result.at(to) = update.at(index);
  });
  return {Reference(std::move(result), Rule::bits())};
}

const Operator kOperators[] = {
    {"ScatterElements", {18}, scatter_elements},
    {"Scatter", {9}, scatter_elements},  // the name of ScatterElements before opset 11
    {"ScatterND", {18}, scatter_nd},
    {"GatherND", {13}, gather_nd},
    {"TensorScatter", {24}, tensor_scatter},
};

}  // namespace

std::span<const Operator> scatter_operators() {
  return kOperators;
}

}  // namespace backplane::conform
