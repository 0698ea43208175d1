// SPDX-License-Identifier: Apache-2.0
#include "oracle/window.h"

#include <algorithm>

namespace backplane::conform {

Window::Window(const Call& call, const Extents& input, Extents kernel_extents)
    : kernel(call.ints("kernel_shape", std::move(kernel_extents))), in(input.begin() + 2, input.end()) {
  const size_t axes = in.size();
  strides = call.ints("strides", Extents(axes, 1));
  dilations = call.ints("dilations", Extents(axes, 1));
  const Extents pads = call.ints("pads", Extents(2 * axes, 0));
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
    out.push_back((ceil ? room + strides[i] - 1 : room) / strides[i] + 1);
    // A window that would begin in the padding behind the input is left out.
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
