// SPDX-License-Identifier: Apache-2.0
#include "ops/window.h"

#include <algorithm>

namespace backplane::opencl {

Spatial Window::phases() const {
  Spatial count;
  for (size_t d = 0; d < 3; ++d) count[d] = std::min(stride[d], (kernel[d] - 1) * dilation[d] + 1);
  return count;
}

Spatial Window::places() const {
  Spatial count;
  for (size_t d = 0; d < 3; ++d) count[d] = out[d] + (kernel[d] - 1) * dilation[d] / stride[d];
  return count;
}

bool Window::in_place() const {
  return phases() == Spatial{1, 1, 1} && stride == Spatial{1, 1, 1} && begin == Spatial{0, 0, 0} && places() == in;
}

Shape Window::output_shape(int64_t first, int64_t second) const {
  Shape shape{first, second};
  shape.insert(shape.end(), out.end() - static_cast<ptrdiff_t>(dims), out.end());
  return shape;
}

namespace {

std::string macro(const char* name, const Spatial& values) {
  std::string text;
  for (size_t i = 0; i < 3; ++i) text += std::string(" -D") + name + "_" + "DHW"[i] + "=" + std::to_string(values[i]);
  return text;
}

}  // namespace

std::string Window::macros() const {
  return tap_macros() + macro("STRIDE", stride) + macro("PAD", begin);
}

std::string Window::phase_macros() const {
  return macro("STRIDE", stride) + macro("PHASES", phases());
}

std::string Window::tap_macros() const {
  return macro("KERNEL", kernel) + macro("DILATION", dilation);
}

Window window_of(const Node& node, const Shape& shape, const std::vector<int64_t>& kernel) {
  Window w;
  w.dims = shape.size() - 2;
  const std::vector<int64_t> strides = node.ints_attribute("strides"), dilations = node.ints_attribute("dilations"),
                             pads = node.ints_attribute("pads");
  const std::string_view automatic = node.text_attribute("auto_pad", "NOTSET");
  const bool ceil = node.int_attribute("ceil_mode", 0) != 0;
  for (size_t i = 0; i < w.dims; ++i) {
    const size_t d = 3 - w.dims + i;
    w.in[d] = shape[2 + i];
    w.kernel[d] = kernel.at(i);
    if (!strides.empty()) w.stride[d] = strides[i];
    if (!dilations.empty()) w.dilation[d] = dilations[i];
    if (!pads.empty() && automatic == "NOTSET") {
      w.begin[d] = pads[i];
      w.end[d] = pads[i + w.dims];
    }
    const int64_t span = (w.kernel[d] - 1) * w.dilation[d] + 1;
    if (automatic.starts_with("SAME")) {
      w.out[d] = (w.in[d] + w.stride[d] - 1) / w.stride[d];
      const int64_t pad = std::max<int64_t>(0, (w.out[d] - 1) * w.stride[d] + span - w.in[d]);
      w.begin[d] = automatic == "SAME_LOWER" ? pad - pad / 2 : pad / 2;
      w.end[d] = pad - w.begin[d];
      continue;
    }
    const int64_t room = w.in[d] + w.begin[d] + w.end[d] - span;
    if (room < 0) {
      throw sdk::Error(BP_TYPE_MISMATCH, "a window of " + std::to_string(span) + " does not fit into " +
                                             std::to_string(w.in[d]) + " with padding");
    }
    w.out[d] = (ceil ? (room + w.stride[d] - 1) / w.stride[d] : room / w.stride[d]) + 1;
    // A window that would begin in the padding behind is none.
    if (ceil && (w.out[d] - 1) * w.stride[d] >= w.in[d] + w.begin[d]) --w.out[d];
  }
  return w;
}

Verdict supports_window(const Node& node) {
  const int32_t dims = node.input(0).rank() - 2;
  if (dims < 1 || dims > 3)
    return sdk::no(BP_REASON_SHAPE, "input 0 has rank " + std::to_string(dims + 2) + "; 3 to 5 is supported");
  const std::string_view automatic = node.text_attribute("auto_pad", "NOTSET");
  if (automatic != "NOTSET" && automatic != "VALID" && automatic != "SAME_UPPER" && automatic != "SAME_LOWER")
    return sdk::no(BP_REASON_ATTRIBUTE, "auto_pad is '" + std::string(automatic) + "'");
  const struct {
    const char* name;
    size_t each;
    int64_t least;
  } lists[] = {{"kernel_shape", 1, 1}, {"strides", 1, 1}, {"dilations", 1, 1}, {"pads", 2, 0}};
  for (const auto& [name, each, least] : lists) {
    const std::vector<int64_t> values = node.ints_attribute(name);
    if (values.empty()) continue;
    if (values.size() != each * static_cast<size_t>(dims) || std::ranges::min(values) < least ||
        std::ranges::max(values) > INT32_MAX)
      return sdk::no(BP_REASON_ATTRIBUTE, std::string(name) + " " + to_string(values) + " does not fit " +
                                              std::to_string(dims) + " dimensions");
  }
  return accept();
}

}  // namespace backplane::opencl
