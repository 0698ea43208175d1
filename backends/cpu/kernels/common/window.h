// SPDX-License-Identifier: Apache-2.0
// A window that slides over the spatial dimensions of a tensor [N, C, D1 … Dn]: convolutions and pools, up to three
// dimensions. Windows of fewer dimensions get leading ones of extent 1, so that loops are written once, for three.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "runtime/row.h"

namespace backplane::cpu {

inline constexpr int kSpatial = 3;
using Spatial = std::array<int64_t, kSpatial>;

// Attributes as the node has them.
struct WindowAttributes {
  explicit WindowAttributes(const Node& node);

  std::vector<int64_t> kernel;
  std::vector<int64_t> strides;
  std::vector<int64_t> dilations;
  std::vector<int64_t> pads;
  std::string auto_pad;
  bool ceil_mode;
};

// Whether the attributes' lengths and values suit the rank of input `slot`, which has one to three spatial
// dimensions.
Verdict check_window(const Node& node, uint32_t slot = 0);

// A window with known extents, in three dimensions.
struct Window {
  int dims = 0;  // spatial dimensions of the tensor itself
  Spatial in{1, 1, 1};
  Spatial out{1, 1, 1};
  Spatial kernel{1, 1, 1};
  Spatial stride{1, 1, 1};
  Spatial dilation{1, 1, 1};
  Spatial begin{0, 0, 0};  // padding before
  Spatial end{0, 0, 0};    // and after

  int64_t in_size() const { return product(in); }
  int64_t out_size() const { return product(out); }
  int64_t kernel_size() const { return product(kernel); }
  // [batch, channels, spatial output extents].
  Shape output_shape(int64_t batch, int64_t channels) const;
};

// Returns the window over `input`; `kernel` are its extents (those of the weights if the attribute is absent). If they
// do not fit together, sets `error` and returns nullopt.
std::optional<Window> make_window(const WindowAttributes& attributes, const Shape& input,
                                  std::span<const int64_t> kernel, std::string* error);

}  // namespace backplane::cpu
