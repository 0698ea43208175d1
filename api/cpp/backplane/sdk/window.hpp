// SPDX-License-Identifier: Apache-2.0
// The window of a convolution, pool or transposed convolution over up to three spatial dimensions. Missing dimensions
// are prepended with extent 1, so that kernels can always work on three.
#pragma once

#include <algorithm>
#include <array>

#include "backplane/sdk/coverage.hpp"
#include "backplane/sdk/expect.hpp"
#include "backplane/sdk/shape.hpp"

namespace backplane::sdk {

using Spatial = std::array<int64_t, 3>;

struct Window {
  size_t dims = 0;  // spatial dimensions of the tensor, at most 3
  Spatial in{1, 1, 1}, out{1, 1, 1}, kernel{1, 1, 1}, stride{1, 1, 1}, dilation{1, 1, 1};
  Spatial begin{0, 0, 0}, end{0, 0, 0};  // padding before and after

  int64_t in_size() const { return in[0] * in[1] * in[2]; }
  int64_t out_size() const { return out[0] * out[1] * out[2]; }
  int64_t kernel_size() const { return kernel[0] * kernel[1] * kernel[2]; }
  // The extent that the window covers in a dimension, including the gaps of dilation.
  int64_t reach(size_t d) const { return (kernel[d] - 1) * dilation[d] + 1; }
  // Returns the output's shape: [first, second, spatial extents], where `first` is the batch and `second` the channels.
  Shape output_shape(int64_t first, int64_t second) const {
    Shape shape{first, second};
    shape.insert(shape.end(), out.end() - static_cast<ptrdiff_t>(dims), out.end());
    return shape;
  }
};

// The window attributes of a convolution, pool or transposed convolution.
struct WindowAttributes {
  explicit WindowAttributes(const Node& node)
      : strides(node.ints_attribute("strides")),
        dilations(node.ints_attribute("dilations")),
        pads(node.ints_attribute("pads")),
        auto_pad(node.text_attribute("auto_pad", "NOTSET")),
        ceil_mode(node.int_attribute("ceil_mode", 0) != 0) {}

  bool same() const { return auto_pad.substr(0, 4) == "SAME"; }
  // Returns the window over an input of this shape, without its output extents. Sets the padding only if `auto_pad`
  // does not determine it. Throws Error if the window has no elements.
  Window over(const Shape& shape, const std::vector<int64_t>& kernel) const {
    Window w;
    w.dims = shape.size() - 2;
    for (size_t i = 0; i < w.dims; ++i) {
      const size_t d = 3 - w.dims + i;
      w.in[d] = shape[2 + i];
      w.kernel[d] = kernel.at(i);
      if (w.kernel[d] < 1)
        throw Error(BP_TYPE_MISMATCH, "the window has extent " + std::to_string(w.kernel[d]) + " in dimension " +
                                          std::to_string(i + 2) + "; it must be at least 1");
      if (!strides.empty()) w.stride[d] = strides.at(i);
      if (!dilations.empty()) w.dilation[d] = dilations.at(i);
      if (pads.empty() || auto_pad != "NOTSET") continue;
      w.begin[d] = pads.at(i);
      w.end[d] = pads.at(i + w.dims);
    }
    return w;
  }

  std::vector<int64_t> strides, dilations, pads;
  std::string_view auto_pad;
  bool ceil_mode;
};

// Whether input 0 has one to three spatial dimensions and the attributes are valid for them. The functions below handle
// every node that this accepts, but throw if the window has no elements, if it or the padding does not fit, or if
// output_padding or output_shape has another number of dimensions.
inline Verdict supports_window(const Node& node) {
  const auto dims = static_cast<size_t>(std::max(node.input(0).rank() - 2, 0));
  return expect(node)
      .rank(0, 3, 5)
      .choice("auto_pad", {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"})
      .integers("kernel_shape", dims, 1, INT32_MAX)
      .integers("strides", dims, 1, INT32_MAX)
      .integers("dilations", dims, 1, INT32_MAX)
      .integers("pads", 2 * dims, 0, INT32_MAX);
}

// Returns the window of a convolution or pool. `shape` has the extents of input 0, `kernel` the spatial extents of the
// window. Throws Error if the window has no elements, or if the padded input has room for none.
inline Window window_of(const Node& node, const Shape& shape, const std::vector<int64_t>& kernel) {
  const WindowAttributes attributes(node);
  Window w = attributes.over(shape, kernel);
  for (size_t d = 3 - w.dims; d < 3; ++d) {
    if (attributes.same()) {
      w.out[d] = (w.in[d] + w.stride[d] - 1) / w.stride[d];
      const int64_t pad = std::max<int64_t>(0, (w.out[d] - 1) * w.stride[d] + w.reach(d) - w.in[d]);
      w.begin[d] = attributes.auto_pad == "SAME_LOWER" ? pad - pad / 2 : pad / 2;
      w.end[d] = pad - w.begin[d];
      continue;
    }
    const int64_t room = w.in[d] + w.begin[d] + w.end[d] - w.reach(d);
    // With ceil_mode, the last window may end after the padding, even if it is the only window.
    if (room < 0 && !(attributes.ceil_mode && room > -w.stride[d])) {
      throw Error(BP_TYPE_MISMATCH, "a window of extent " + std::to_string(w.reach(d)) +
                                        " does not fit into an input of extent " + std::to_string(w.in[d]) +
                                        " with its padding");
    }
    w.out[d] = (attributes.ceil_mode ? room + w.stride[d] - 1 : room) / w.stride[d] + 1;
    // Drops a last window that would begin in the trailing padding.
    if (attributes.ceil_mode && (w.out[d] - 1) * w.stride[d] >= w.in[d] + w.begin[d]) --w.out[d];
  }
  return w;
}

// Returns the window of a ConvTranspose. Its `in` has the spatial extents of the input, its `out` those of the output.
// Throws Error if the window has no elements, if output_padding or output_shape has another number of dimensions than
// the input, or if the padding leaves a negative extent.
inline Window transposed_window(const Node& node, const Shape& shape, const std::vector<int64_t>& kernel) {
  const WindowAttributes attributes(node);
  Window w = attributes.over(shape, kernel);
  const std::vector<int64_t> extra = node.ints_attribute("output_padding"),
                             wanted = node.ints_attribute("output_shape");
  if ((!extra.empty() && extra.size() != w.dims) ||
      (!wanted.empty() && wanted.size() != w.dims && wanted.size() != shape.size()))
    throw Error(BP_TYPE_MISMATCH, "output_padding has " + std::to_string(extra.size()) + " elements and output_shape " +
                                      std::to_string(wanted.size()) + "; the input has " + std::to_string(w.dims) +
                                      " spatial dimensions");
  for (size_t i = 0; i < w.dims; ++i) {
    const size_t d = 3 - w.dims + i;
    const int64_t whole = w.stride[d] * (w.in[d] - 1) + (extra.empty() ? 0 : extra.at(i)) + w.reach(d);
    if (!wanted.empty() || attributes.same()) {
      w.out[d] = wanted.empty() ? w.in[d] * w.stride[d] : wanted.at(wanted.size() == shape.size() ? i + 2 : i);
      const int64_t cut = std::max<int64_t>(whole - w.out[d], 0);
      w.begin[d] = attributes.auto_pad == "SAME_UPPER" ? cut / 2 : cut - cut / 2;
      w.end[d] = cut - w.begin[d];
    } else {
      w.out[d] = whole - w.begin[d] - w.end[d];
    }
    if (w.out[d] < 0)
      throw Error(BP_TYPE_MISMATCH,
                  "padding leaves an extent of " + std::to_string(w.out[d]) + " in dimension " + std::to_string(i + 2));
  }
  return w;
}

}  // namespace backplane::sdk
