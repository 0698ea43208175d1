// SPDX-License-Identifier: Apache-2.0
// Convolution computed as it is defined: the reference, which runs where no faster implementation accepts the problem.
#pragma once

#include "kernels/common/window.h"
#include "runtime/parallel.h"
#include "runtime/watch.h"

namespace backplane::cpu {

struct ConvSize {
  int64_t batch;
  int64_t groups;
  int64_t in_channels;   // in all groups
  int64_t out_channels;  // in all groups
};

// x(i) and w(channel, i) return an element as `Sum`; y(channel, i, sum) stores a result. `channel` is the output
// channel, and i an element's index in its dense tensor.
template <class Sum, class X, class W, class Y>
void direct_conv(const ConvSize& size, const Window& win, const X& x, const W& w, const Y& y) {
  int64_t in_group = size.in_channels / size.groups;
  int64_t out_group = size.out_channels / size.groups;
  parallel(size.batch * size.out_channels, 1, [&](int64_t first, int64_t last) {
    Pace pace;
    for (int64_t nc = first; nc < last; ++nc) {
      int64_t n = nc / size.out_channels;
      int64_t oc = nc % size.out_channels;
      int64_t ic0 = oc / out_group * in_group;
      for (int64_t o = 0; o < win.out_size(); ++o) {
        int64_t z0 = o / (win.out[1] * win.out[2]) * win.stride[0] - win.begin[0];
        int64_t y0 = o / win.out[2] % win.out[1] * win.stride[1] - win.begin[1];
        int64_t x0 = o % win.out[2] * win.stride[2] - win.begin[2];
        Sum sum{};
        for (int64_t c = 0; c < in_group; ++c) {
          pace.spend(win.kernel_size());
          int64_t source = (n * size.in_channels + ic0 + c) * win.in_size();
          int64_t weight = (oc * in_group + c) * win.kernel_size();
          for (int64_t k = 0; k < win.kernel_size(); ++k) {
            int64_t iz = z0 + k / (win.kernel[1] * win.kernel[2]) * win.dilation[0];
            int64_t iy = y0 + k / win.kernel[2] % win.kernel[1] * win.dilation[1];
            int64_t ix = x0 + k % win.kernel[2] * win.dilation[2];
            if (iz < 0 || iz >= win.in[0] || iy < 0 || iy >= win.in[1] || ix < 0 || ix >= win.in[2]) continue;
            sum += x(source + (iz * win.in[1] + iy) * win.in[2] + ix) * w(oc, weight + k);
          }
        }
        y(oc, nc * win.out_size() + o, sum);
      }
    }
  });
}

// Returns the sizes of a convolution. If the shapes do not fit each other, returns nullopt and sets `error`.
inline std::optional<ConvSize> conv_size(const Shape& x, const Shape& w, int64_t groups, std::string* error) {
  if (x.rank() < 3 || w.rank() != x.rank() || groups < 1 || w[0] % groups != 0 || x[1] % groups != 0 ||
      x[1] / groups != w[1]) {
    *error =
        "input and weights do not fit " + std::to_string(groups) +
        " groups: " + (x.rank() > 1 ? std::to_string(x[1]) : "no") + " input channels, weights for " +
        (w.rank() > 1 ? std::to_string(w[1]) + " channels per group and " + std::to_string(w[0]) + " output channels"
                      : "none");
    return std::nullopt;
  }
  return ConvSize{x[0], groups, x[1], w[0]};
}

}  // namespace backplane::cpu
