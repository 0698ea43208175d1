// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/window.h"

#include <algorithm>

#include "kernels/common/support.h"

namespace backplane::cpu {

WindowAttributes::WindowAttributes(const Node& node)
    : kernel(node.ints("kernel_shape")),
      strides(node.ints("strides")),
      dilations(node.ints("dilations")),
      pads(node.ints("pads")),
      auto_pad(node.attr("auto_pad", "NOTSET")),
      ceil_mode(node.attr("ceil_mode", int64_t{0}) != 0) {}

Verdict check_window(const Node& node, uint32_t slot) {
  WindowAttributes w(node);
  int32_t rank = node.input_type(slot).rank;
  if (rank >= 0 && (rank < 3 || rank > 2 + kSpatial)) {
    return no(BP_REASON_SHAPE,
              "the input has rank " + std::to_string(rank) + "; one to three spatial dimensions are supported");
  }
  auto check = [&](const char* name, const std::vector<int64_t>& list, size_t per_dim, int64_t least) {
    if (!list.empty() && rank >= 0 && list.size() != per_dim * static_cast<size_t>(rank - 2)) {
      return no(BP_REASON_ATTRIBUTE, std::string(name) + " has " + std::to_string(list.size()) +
                                         " numbers for an input of rank " + std::to_string(rank) + "; it needs " +
                                         std::to_string(per_dim * static_cast<size_t>(rank - 2)));
    }
    for (int64_t value : list) {
      if (value < least || value > INT32_MAX)
        return no(BP_REASON_ATTRIBUTE, std::string(name) + " contains " + std::to_string(value) +
                                           "; its numbers must be " + std::to_string(least) + " to 2^31 - 1");
    }
    return yes();
  };
  if (Verdict v = check("kernel_shape", w.kernel, 1, 1); !v) return v;
  if (Verdict v = check("strides", w.strides, 1, 1); !v) return v;
  if (Verdict v = check("dilations", w.dilations, 1, 1); !v) return v;
  if (Verdict v = check("pads", w.pads, 2, 0); !v) return v;
  return attribute_in(node, "auto_pad", "NOTSET", {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"});
}

double Window::reads() const {
  double positions = 1;
  for (size_t d = 0; d < kSpatial; ++d) positions *= static_cast<double>(std::min(kernel[d], in[d]));
  return positions;
}

Shape Window::output_shape(int64_t batch, int64_t channels) const {
  Shape shape{batch, channels};
  for (int d = kSpatial - dims; d < kSpatial; ++d) shape.push_back(out[static_cast<size_t>(d)]);
  return shape;
}

std::optional<Window> make_window(const WindowAttributes& attributes, const Shape& input,
                                  std::span<const int64_t> kernel, std::string* error) {
  Window w;
  w.dims = input.rank() - 2;
  auto dims = static_cast<size_t>(std::max(w.dims, 0));
  auto fits = [&](const std::vector<int64_t>& list, size_t count) { return list.empty() || list.size() == count; };
  if (w.dims < 1 || w.dims > kSpatial || kernel.size() != dims || !fits(attributes.kernel, dims) ||
      !fits(attributes.strides, dims) || !fits(attributes.dilations, dims) || !fits(attributes.pads, 2 * dims)) {
    *error = "an input of rank " + std::to_string(input.rank()) + " does not fit a window of " +
             std::to_string(kernel.size()) + " dimensions";
    return std::nullopt;
  }
  for (size_t i = 0; i < dims; ++i) {
    size_t d = kSpatial - dims + i;
    w.in[d] = input[static_cast<int>(i) + 2];
    w.kernel[d] = kernel[i];
    if (w.kernel[d] < 1 || w.kernel[d] > INT32_MAX) {
      *error = "the window has extent " + std::to_string(w.kernel[d]) + "; it must be 1 to 2^31 - 1";
      return std::nullopt;
    }
    if (!attributes.strides.empty()) w.stride[d] = attributes.strides[i];
    if (!attributes.dilations.empty()) w.dilation[d] = attributes.dilations[i];
    int64_t reach = (w.kernel[d] - 1) * w.dilation[d] + 1;
    if (attributes.auto_pad.starts_with("SAME")) {
      w.out[d] = (w.in[d] + w.stride[d] - 1) / w.stride[d];
      int64_t total = std::max<int64_t>(0, (w.out[d] - 1) * w.stride[d] + reach - w.in[d]);
      w.begin[d] = attributes.auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
      w.end[d] = total - w.begin[d];
      continue;
    }
    if (attributes.auto_pad == "NOTSET" && !attributes.pads.empty()) {
      w.begin[d] = attributes.pads[i];
      w.end[d] = attributes.pads[i + dims];
    }
    int64_t room = w.in[d] + w.begin[d] + w.end[d] - reach;
    // With ceil_mode, the last window may end after the padding, even if it is the only one.
    if (room < 0 && !(attributes.ceil_mode && room > -w.stride[d])) {
      *error = "a window of " + std::to_string(reach) + " is larger than the padded extent " +
               std::to_string(room + reach) + " of dimension " + std::to_string(i + 2);
      return std::nullopt;
    }
    w.out[d] = (attributes.ceil_mode ? room + w.stride[d] - 1 : room) / w.stride[d] + 1;
    // The last window must begin inside the input or in the padding before it.
    if (attributes.ceil_mode && (w.out[d] - 1) * w.stride[d] >= w.in[d] + w.begin[d]) --w.out[d];
  }
  return w;
}

}  // namespace backplane::cpu
