// SPDX-License-Identifier: Apache-2.0
#include "ops/infer/window.h"

#include "base/counted.h"

namespace backplane::ops {
namespace {

// Reads an attribute into `out`: `count` entries, each at least `least`. If it is absent, all entries are `otherwise`.
Status list(Context& c, std::string_view name, size_t count, int64_t least, int64_t otherwise,
            std::vector<int64_t>& out) {
  out = c.integers(name);
  if (out.empty()) out.assign(count, otherwise);
  if (out.size() != count) {
    return c.fail(std::string(name) + " has " + counted(out.size(), "entry", "entries") + ", but it needs " +
                  std::to_string(count));
  }
  for (int64_t value : out) {
    if (value < least || value > INT32_MAX) {
      return c.fail(std::string(name) + " has " + std::to_string(value) + ", but it must be at least " +
                    std::to_string(least) + " and below 2^31");
    }
  }
  return {};
}

}  // namespace

Status Window::read(Context& c, size_t spatial, Window& out) {
  BP_TRY(list(c, "strides", spatial, 1, 1, out.strides));
  BP_TRY(list(c, "dilations", spatial, 1, 1, out.dilations));
  std::string_view mode = c.text("auto_pad");
  if (mode == "VALID") {
    out.pads.assign(spatial * 2, 0);
  } else {
    // Negative pads crop; some exporters write them.
    BP_TRY(list(c, "pads", spatial * 2, INT32_MIN, 0, out.pads));
  }
  out.same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
  if (!out.same && mode != "VALID" && mode != "NOTSET" && !mode.empty()) {
    return c.fail("auto_pad is '" + std::string(mode) + "', but it must be NOTSET, SAME_UPPER, SAME_LOWER or VALID");
  }
  out.up = c.integer("ceil_mode") != 0;
  return {};
}

Scalar Window::positions(Expressions& m, size_t axis, const Scalar& extent, const Scalar& kernel) const {
  if (same) return m.ceil_divide(extent, strides[axis]);
  int64_t begin = pads[axis], end = pads[axis + strides.size()];
  Scalar reach = m.add(m.multiply(m.subtract(kernel, 1), dilations[axis]), 1);
  Scalar room = m.subtract(m.add(extent, begin + end), reach);
  if (!up) return m.add(m.floor_divide(room, strides[axis]), 1);
  Scalar count = m.add(m.ceil_divide(room, strides[axis]), 1);
  // The last window does not count if it would begin in the padding after the input. It begins at most stride - 1 after
  // `room`, so if stride - 1 < reach - end, it begins before that padding, whatever the extent.
  if (reach.is_number() && strides[axis] - 1 < reach.value - end) return count;
  Scalar last = m.multiply(m.subtract(count, 1), strides[axis]), input_end = m.add(extent, begin);
  if (!last.is_number() || !input_end.is_number()) return {};
  return last.value >= input_end.value ? Scalar(count.value - 1) : count;
}

Status kernel_shape(Context& c, size_t weights, size_t spatial, Shape& out, int64_t first) {
  out.assign(spatial, {});
  const auto& given = c.integers("kernel_shape");
  if (!given.empty() && given.size() != spatial) {
    return c.fail("kernel_shape has " + counted(given.size(), "entry", "entries") + " for " +
                  counted(spatial, "spatial axis", "spatial axes"));
  }
  for (size_t i = 0; i < spatial; ++i) {
    if (!given.empty()) out[i] = given[i];
    if (weights != BP_NONE) {
      BP_TRY(c.merge(out[i], c.dim(weights, static_cast<int64_t>(i) + first), out[i],
                     "kernel_shape and the extents of W"));
    }
    if (out[i].is_number() && (out[i].value < 1 || out[i].value > INT32_MAX)) {
      return c.fail("the kernel has extent " + std::to_string(out[i].value) +
                    ", but it must be at least 1 and below 2^31");
    }
  }
  return {};
}

}  // namespace backplane::ops
