// SPDX-License-Identifier: Apache-2.0
// A window that slides over the spatial dimensions of a tensor [N, C, D1 … Dn], for convolutions and pools with up to
// three spatial dimensions. Windows with fewer get leading dimensions of extent 1, so that loops are written only for
// three.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "runtime/row.h"

namespace backplane::cpu {

inline constexpr int kSpatial = 3;
using Spatial = std::array<int64_t, kSpatial>;

// The attributes as the node has them.
struct WindowAttributes {
  explicit WindowAttributes(const Node& node);

  std::vector<int64_t> kernel;
  std::vector<int64_t> strides;
  std::vector<int64_t> dilations;
  std::vector<int64_t> pads;
  std::string auto_pad;
  bool ceil_mode;
};

// Checks that input `slot` has one to three spatial dimensions and the attributes have the lengths for its rank (both
// only if the rank is known), and that their values are valid.
Verdict check_window(const Node& node, uint32_t slot = 0);

// A window with known extents, always in three dimensions.
struct Window {
  int dims = 0;  // number of spatial dimensions of the tensor
  Spatial in{1, 1, 1};
  Spatial out{1, 1, 1};
  Spatial kernel{1, 1, 1};
  Spatial stride{1, 1, 1};
  Spatial dilation{1, 1, 1};
  Spatial begin{0, 0, 0};  // padding before the input
  Spatial end{0, 0, 0};    // padding after the input

  int64_t in_size() const { return product(in); }
  int64_t out_size() const { return product(out); }
  int64_t kernel_size() const { return product(kernel); }
  // Returns how many positions of the input a window reads at most. Attributes may choose a far larger kernel, whose
  // size need not fit in int64_t.
  double reads() const;
  // Returns [batch, channels, spatial output extents…].
  Shape output_shape(int64_t batch, int64_t channels) const;
};

// Returns the window over `input`. `kernel` has the window's extents, which are those of the weights if the attribute
// kernel_shape is absent. If the arguments do not fit together, sets `error` and returns nullopt.
std::optional<Window> make_window(const WindowAttributes& attributes, const Shape& input,
                                  std::span<const int64_t> kernel, std::string* error);

// For each tap t (a position of the window) of output position `position`, calls tap(t, at) if it reads position `at`
// of the image, or miss(t) if it is in the padding.
template <class Tap, class Miss>
void each_tap(const Window& w, int64_t position, const Tap& tap, const Miss& miss) {
  const int64_t z0 = position / (w.out[1] * w.out[2]) * w.stride[0] - w.begin[0];
  const int64_t y0 = position / w.out[2] % w.out[1] * w.stride[1] - w.begin[1];
  const int64_t x0 = position % w.out[2] * w.stride[2] - w.begin[2];
  int64_t t = 0;
  for (int64_t kz = 0; kz < w.kernel[0]; ++kz) {
    const int64_t z = z0 + kz * w.dilation[0];
    for (int64_t ky = 0; ky < w.kernel[1]; ++ky) {
      const int64_t y = y0 + ky * w.dilation[1];
      const bool row = z >= 0 && z < w.in[0] && y >= 0 && y < w.in[1];
      for (int64_t kx = 0; kx < w.kernel[2]; ++kx, ++t) {
        const int64_t x = x0 + kx * w.dilation[2];
        if (row && x >= 0 && x < w.in[2])
          tap(t, (z * w.in[1] + y) * w.in[2] + x);
        else
          miss(t);
      }
    }
  }
}

// Like each_tap, but for several taps along the last axis at a time: calls run(t, count, at) for taps from t on that
// read adjacent positions, and miss(t, count).
template <class Run, class Miss>
void each_run(const Window& w, int64_t position, const Run& run, const Miss& miss) {
  if (w.dilation[2] != 1)
    return each_tap(
        w, position, [&](int64_t t, int64_t at) { run(t, 1, at); }, [&](int64_t t) { miss(t, 1); });
  const int64_t z0 = position / (w.out[1] * w.out[2]) * w.stride[0] - w.begin[0];
  const int64_t y0 = position / w.out[2] % w.out[1] * w.stride[1] - w.begin[1];
  const int64_t x0 = position % w.out[2] * w.stride[2] - w.begin[2], taps = w.kernel[2];
  const int64_t first = std::clamp<int64_t>(-x0, 0, taps), last = std::clamp(w.in[2] - x0, first, taps);
  int64_t t = 0;
  for (int64_t kz = 0; kz < w.kernel[0]; ++kz) {
    const int64_t z = z0 + kz * w.dilation[0];
    for (int64_t ky = 0; ky < w.kernel[1]; ++ky, t += taps) {
      const int64_t y = y0 + ky * w.dilation[1];
      const bool inside = z >= 0 && z < w.in[0] && y >= 0 && y < w.in[1] && first < last;
      if (!inside) {
        miss(t, taps);
        continue;
      }
      if (first > 0) miss(t, first);
      run(t + first, last - first, (z * w.in[1] + y) * w.in[2] + x0 + first);
      if (last < taps) miss(t + last, taps - last);
    }
  }
}

}  // namespace backplane::cpu
