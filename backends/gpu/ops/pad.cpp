// SPDX-License-Identifier: Apache-2.0
// Pad and CenterCropPad, one axis at a time: a table lists the input position of each output position.
#include <algorithm>

#include "ops/resample.h"
#include "ops/table.h"

namespace backplane::gpu {
namespace {

// The input position for position i of an axis with n elements, where i may be outside [0, n). Returns -1 for the fill
// value.
int64_t position_of(int64_t i, int64_t n, std::string_view mode) {
  if (i >= 0 && i < n) return i;
  if (mode == "constant") return -1;
  if (mode == "edge") return std::clamp<int64_t>(i, 0, n - 1);
  if (mode == "wrap") return (i % n + n) % n;
  const int64_t period = std::max<int64_t>(2 * (n - 1), 1);
  const int64_t at = (i % period + period) % period;
  return at < n ? at : period - at;
}

// Longer pads are refused before they are added, so that no sum of positions overflows.
constexpr int64_t kLongestPad = int64_t{1} << 32;

// Negative pads remove elements, before others are added.
Taps padded(size_t axis, int64_t n, int64_t before, int64_t after, std::string_view mode) {
  const auto far = [](int64_t pad) { return pad < -kLongestPad || pad > kLongestPad; };
  Taps taps{.axis = axis, .to = far(before) || far(after) ? -1 : n + before + after};
  if (taps.to < 0 || taps.to > kMaxTaps)
    throw sdk::Error(BP_INVALID_ARGUMENT, "pads " + std::to_string(before) + " and " + std::to_string(after) +
                                              " do not fit an extent of " + std::to_string(n));
  const int64_t first = std::max<int64_t>(-before, 0), rest = n - first + std::min<int64_t>(after, 0);
  if (rest <= 0 && taps.to > 0 && mode != "constant")
    throw sdk::Error(BP_INVALID_ARGUMENT, "pads " + std::to_string(before) + " and " + std::to_string(after) +
                                              " leave none of " + std::to_string(n) + " elements for mode '" +
                                              std::string(mode) + "'; only mode 'constant' needs none");
  for (int64_t i = 0; i < taps.to; ++i) {
    const int64_t position = position_of(i - std::max<int64_t>(before, 0), rest, mode);
    taps.positions.push_back(static_cast<int32_t>(position < 0 ? position : first + position));
  }
  return taps;
}

void emit_pad(Emit& e, std::string_view) {
  const Shape shape = e.shape(0);
  const std::vector<int64_t> pads = e.ints(1);
  std::vector<int64_t> axes = e.ints(3);
  if (!e.has_input(3)) {
    for (size_t i = 0; i < shape.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  }
  axis_set(axes, shape.size());  // refuses repeated axes, as each table is made for an extent of the input
  const std::string mode(e.node.text_attribute("mode", "constant"));
  std::vector<Taps> tables;
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t axis = axis_of(axes[i], shape.size());
    const int64_t before = pads.at(i), after = pads.at(i + axes.size());
    if (before != 0 || after != 0) tables.push_back(padded(axis, shape[axis], before, after, mode));
  }
  emit_resample(e, tables, e.has_input(2) ? e.input(2) : zero(e, e.node.input(0).dtype()));
}

Verdict supports_pad(const Node& node) {
  const std::string_view mode = node.text_attribute("mode", "constant");
  if (mode != "constant" && mode != "edge" && mode != "reflect" && mode != "wrap")
    return sdk::no(BP_REASON_ATTRIBUTE, "mode '" + std::string(mode) + "' is not supported");
  if (node.input(2) && node.input(2).dtype() != node.input(0).dtype())
    return sdk::no(BP_REASON_DTYPE, "the constant value is " + std::string(view::dtype_name(node.input(2).dtype())) +
                                        ", but input 0 is " + std::string(view::dtype_name(node.input(0).dtype())));
  if (Verdict v = known_on_host(node, 1); !accepted(v)) return v;
  return known_on_host(node, 3);
}

void emit_center_crop_pad(Emit& e, std::string_view) {
  const Shape shape = e.shape(0);
  const std::vector<int64_t> sizes = e.ints(1);
  std::vector<int64_t> axes = e.node.ints_attribute("axes");
  if (axes.empty()) {
    for (size_t i = 0; i < shape.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  }
  axis_set(axes, shape.size());
  std::vector<Taps> tables;
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t axis = axis_of(axes[i], shape.size());
    const int64_t n = shape[axis], size = sizes.at(i);
    if (size < 0) throw sdk::Error(BP_INVALID_ARGUMENT, "the shape " + to_string(sizes) + " has a negative extent");
    // Of an odd number of elements to add or remove, the greater part is at the end.
    const int64_t before = size >= n ? (size - n) / 2 : -((n - size) / 2);
    if (size != n) tables.push_back(padded(axis, n, before, size - n - before, "constant"));
  }
  emit_resample(e, tables, zero(e, e.node.input(0).dtype()));
}

Verdict supports_center_crop_pad(const Node& node) {
  return known_on_host(node, 1);
}

}  // namespace

std::span<const Row> pad_rows() {
  static constexpr Row kRows[] = {
      {"", "Pad", 11, kAnything, {2, 4}, supports_pad, emit_pad},
      {"", "CenterCropPad", 18, kAnything, kBinary, supports_center_crop_pad, emit_center_crop_pad},
  };
  return kRows;
}

}  // namespace backplane::gpu
