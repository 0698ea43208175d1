// SPDX-License-Identifier: Apache-2.0
#include "windows.h"

#include <algorithm>

namespace onnxifi_backend {
namespace {

using Ints = std::vector<int64_t>;

// Element `i` of an attribute; `otherwise` if the attribute is absent.
int64_t at(OnnxNode& node, std::string_view attribute, size_t i, int64_t otherwise) {
  const Attribute* const found = node.find(attribute);
  return found == nullptr || found->ints.empty() ? otherwise : found->ints.at(i);
}

}  // namespace

std::string conv_transpose_11(Rewrite& r) {
  const std::string how = r.node.text("auto_pad", "NOTSET");
  const bool is_same = how == "SAME_UPPER" || how == "SAME_LOWER";
  if (!is_same && r.node.find("output_shape") == nullptr) return {};
  const Ints in = r.extents(0), kernel = r.extents(1), out = r.node.outputs[0].value.extents();
  const size_t dims = in.size() - 2;
  Ints pads(2 * dims);
  for (size_t i = 0; i < dims; ++i) {
    const int64_t reach = (kernel[i + 2] - 1) * at(r.node, "dilations", i, 1) + 1;
    const int64_t whole = at(r.node, "strides", i, 1) * (in[i + 2] - 1) + at(r.node, "output_padding", i, 0) + reach;
    const int64_t cut = whole - out[i + 2];
    if (cut < 0)
      return r.refuse("which has no output beyond the last window, and here there are " + std::to_string(-cut) +
                      " elements in spatial dimension " + std::to_string(i));
    pads[i] = how == "SAME_UPPER" ? cut / 2 : cut - cut / 2;
    pads[dims + i] = cut - pads[i];
  }
  r.node.erase("output_shape");
  r.node.set("auto_pad", std::string("NOTSET"));
  r.node.set("pads", pads);
  return {};
}

std::string pool_22(Rewrite& r) {
  const std::string how = r.node.text("auto_pad", "NOTSET");
  if (how == "VALID") r.node.set("auto_pad", std::string("NOTSET"));
  if (r.node.number("ceil_mode", 0) == 0) return {};
  const Ints in = r.extents(0), out = r.node.outputs[0].value.extents();
  const size_t dims = in.size() - 2;
  bool is_floor = true, is_ceil = true;
  for (size_t i = 0; i < dims; ++i) {
    const int64_t reach = (at(r.node, "kernel_shape", i, 1) - 1) * at(r.node, "dilations", i, 1) + 1;
    const int64_t room = in[i + 2] + at(r.node, "pads", i, 0) + at(r.node, "pads", dims + i, 0) - reach;
    const int64_t stride = at(r.node, "strides", i, 1);
    is_floor = is_floor && room >= 0 && room / stride + 1 == out[i + 2];
    is_ceil = is_ceil && (room + stride - 1) / stride + 1 == out[i + 2];
  }
  const bool is_same = how == "SAME_UPPER" || how == "SAME_LOWER";  // as many windows with and without ceil_mode
  if (is_same || is_floor) {
    r.node.set("ceil_mode", int64_t{0});
    return {};
  }
  return is_ceil ? std::string()
                 : r.refuse("which has windows that begin in the padding, unlike this node with ceil_mode");
}

void drop_overridden_pads(OnnxNode& node) {
  if (node.text("auto_pad", "NOTSET") != "NOTSET") node.erase("pads");
}

}  // namespace onnxifi_backend
