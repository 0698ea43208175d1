// SPDX-License-Identifier: Apache-2.0
#include "judge/window.h"

#include <algorithm>

namespace backplane::conform {

namespace {

// Returns `given`. Throws with the message `fault` unless it has `count` numbers, each at least `least` and small
// enough that products do not overflow.
Extents numbers(Extents given, size_t count, int64_t least, const char* fault) {
  const auto fits = [&](int64_t x) { return x >= least && x <= kMaxElements; };
  require(given.size() == count && std::all_of(given.begin(), given.end(), fits), fault);
  return given;
}

Extents spatial(const Extents& input) {
  require(input.size() > 2, "an image has no spatial axis");
  return {input.begin() + 2, input.end()};
}

}  // namespace

Window::Window(const Call& call, const Extents& input, Extents kernel_extents) : in(spatial(input)) {
  const size_t axes = in.size();
  kernel = numbers(call.ints("kernel_shape", std::move(kernel_extents)), axes, 1,
                   "the kernel's extents are not one number from 1 to 2^24 for each spatial axis");
  strides = numbers(call.ints("strides", Extents(axes, 1)), axes, 1,
                    "strides are not one number from 1 to 2^24 for each spatial axis");
  dilations = numbers(call.ints("dilations", Extents(axes, 1)), axes, 1,
                      "dilations are not one number from 1 to 2^24 for each spatial axis");
  const Extents pads = numbers(call.ints("pads", Extents(2 * axes, 0)), 2 * axes, -kMaxElements,
                               "pads are not two numbers from -2^24 to 2^24 for each spatial axis");
  const std::string_view automatic = call.text("auto_pad");
  for (size_t i = 0; i < axes; ++i) {
    const int64_t reach = (kernel[i] - 1) * dilations[i] + 1;
    if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
      out.push_back((in[i] + strides[i] - 1) / strides[i]);
      const int64_t total = std::max<int64_t>(0, (out[i] - 1) * strides[i] + reach - in[i]);
      begin.push_back(automatic == "SAME_UPPER" ? total / 2 : total - total / 2);
      end.push_back(total - begin[i]);
      continue;
    }
    const bool valid = automatic == "VALID";
    begin.push_back(valid ? 0 : pads[i]);
    end.push_back(valid ? 0 : pads[axes + i]);
    const int64_t room = in[i] + begin[i] + end[i] - reach;
    const bool ceil = call.integer("ceil_mode") != 0;
    // With ceil_mode, the last window may end after the padding, even if it is the only one.
    require(room >= 0 || (ceil && room > -strides[i]), "a window is larger than the padded input");
    out.push_back((ceil ? room + strides[i] - 1 : room) / strides[i] + 1);
    // A window that would begin in the padding after the input is omitted.
    if (ceil && (out[i] - 1) * strides[i] >= in[i] + begin[i]) --out[i];
  }
}

int64_t Window::source(size_t axis, int64_t position, int64_t tap) const {
  const int64_t at = position * strides[axis] + tap * dilations[axis] - begin[axis];
  return at >= 0 && at < in[axis] ? at : -1;
}

bool Window::in_padded(size_t axis, int64_t position, int64_t tap) const {
  return position * strides[axis] + tap * dilations[axis] < begin[axis] + in[axis] + end[axis];
}

}  // namespace backplane::conform
