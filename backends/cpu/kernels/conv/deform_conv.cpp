// SPDX-License-Identifier: Apache-2.0
// DeformConv: a two-dimensional convolution whose taps (the positions of its window) are displaced by offsets from
// another tensor. Inputs are interpolated bilinearly and are 0 outside the image.
#include <cmath>

#include "kernels/common/direct_conv.h"
#include "kernels/common/function_kernel.h"
#include "kernels/common/support.h"
#include "runtime/watch.h"

namespace backplane::cpu {

namespace {

enum Slot : size_t { kX, kW, kOffset, kBias, kMask };

template <class T>
double sample(const T* plane, int64_t height, int64_t width, double y, double x) {
  if (!(y > -1 && x > -1 && y < static_cast<double>(height) && x < static_cast<double>(width))) return 0;
  const double y_floor = std::floor(y), x_floor = std::floor(x);
  const auto top = static_cast<int64_t>(y_floor), left = static_cast<int64_t>(x_floor);
  const auto pixel = [&](int64_t row, int64_t column) {
    const bool inside = row >= 0 && row < height && column >= 0 && column < width;
    return inside ? static_cast<double>(plane[row * width + column]) : 0.0;
  };
  const double v = y - y_floor, u = x - x_floor;
  return (1 - v) * ((1 - u) * pixel(top, left) + u * pixel(top, left + 1)) +
         v * ((1 - u) * pixel(top + 1, left) + u * pixel(top + 1, left + 1));
}

template <class T>
void run(const ConvSize& size, const Window& w, int64_t offset_groups, Tensors in, Tensors out) {
  const int64_t height = w.in[1], width = w.in[2], pixels = w.out[1] * w.out[2], taps = w.kernel_size();
  const int64_t in_group = size.in_channels / size.groups, out_group = size.out_channels / size.groups;
  const int64_t per_offset = size.in_channels / offset_groups;
  const T *x = in[kX].as<T>(), *weights = in[kW].as<T>(), *offsets = in[kOffset].as<T>();
  const T *bias = at(in, kBias).as<T>(), *mask = at(in, kMask).as<T>();
  T* y = out[0].as<T>();
  // A job is one output pixel of one image: it computes the displaced samples of all input channels, then all output
  // channels.
  parallel(size.batch * pixels, 1, [&](int64_t begin, int64_t end) {
    Pace pace;
    std::vector<double> samples(static_cast<size_t>(size.in_channels * taps));
    for (int64_t job = begin; job < end; ++job) {
      const int64_t n = job / pixels, p = job % pixels, row = p / w.out[2], column = p % w.out[2];
      for (int64_t c = 0; c < size.in_channels; ++c) {
        const int64_t group = n * offset_groups + c / per_offset;
        for (int64_t k = 0; k < taps; ++k) {
          const T* offset = offsets + (group * taps + k) * 2 * pixels + p;
          const double at_y = static_cast<double>(row * w.stride[1] - w.begin[1] + k / w.kernel[2] * w.dilation[1]) +
                              static_cast<double>(offset[0]);
          const double at_x = static_cast<double>(column * w.stride[2] - w.begin[2] + k % w.kernel[2] * w.dilation[2]) +
                              static_cast<double>(offset[pixels]);
          double value = sample(x + (n * size.in_channels + c) * height * width, height, width, at_y, at_x);
          if (mask != nullptr) value *= static_cast<double>(mask[(group * taps + k) * pixels + p]);
          samples[static_cast<size_t>(c * taps + k)] = value;
        }
      }
      pace.spend(8 * size.in_channels * taps);
      for (int64_t oc = 0; oc < size.out_channels; ++oc) {
        pace.spend(in_group * taps);
        const double* from = samples.data() + oc / out_group * in_group * taps;
        double sum = bias == nullptr ? 0 : static_cast<double>(bias[oc]);
        for (int64_t i = 0; i < in_group * taps; ++i)
          sum += from[i] * static_cast<double>(weights[oc * in_group * taps + i]);
        y[(n * size.out_channels + oc) * pixels + p] = static_cast<T>(static_cast<compute_t<T>>(sum));
      }
    }
  });
}

Verdict supports(const Node& node) {
  if (Verdict v = accepts(node, 3, {kFloatTypes, kFloatTypes, kFloatTypes, kFloatTypes, kFloatTypes}); !v) return v;
  for (uint32_t slot = 1; slot < 5; ++slot)
    if (node.has_input(slot))
      if (Verdict v = same_type(node, 0, slot); !v) return v;
  const bp_type_t x = node.input_type(0);
  if (x.rank >= 0 && x.rank != 4)
    return no(BP_REASON_SHAPE, "X has rank " + std::to_string(x.rank) + ", but only rank 4 is supported");
  return check_window(node);
}

std::unique_ptr<Kernel> create(const Node& node) {
  return make_kernel([attributes = WindowAttributes(node), groups = node.attr("group", int64_t{1}),
                      offset_groups = node.attr("offset_group", int64_t{1})](Tensors in) -> Plan {
    std::string error;
    const Shape &x = in[kX].shape, &w = in[kW].shape;
    if (x.rank() != 4) return fail("X " + to_string(x) + " must have rank 4");
    const std::optional<ConvSize> size = conv_size(x, w, groups, &error);
    if (!size) return fail(error);
    const std::optional<Window> window = make_window(attributes, x, w.span().subspan(2), &error);
    if (!window) return fail(error);
    const int64_t taps = window->kernel_size(), rows = window->out[1], columns = window->out[2];
    const Tensor bias = at(in, kBias), mask = at(in, kMask);
    if (offset_groups < 1 || size->in_channels % offset_groups != 0)
      return fail("offset_group is " + std::to_string(offset_groups) +
                  "; it must divide the number of input channels, " + std::to_string(size->in_channels));
    const auto wrong = [](const char* name, const Tensor& tensor, const Shape& wanted) {
      return std::string(name) + " has shape " + to_string(tensor.shape) + "; it must have " + to_string(wanted);
    };
    const Shape offsets{size->batch, 2 * offset_groups * taps, rows, columns};
    const Shape factors{size->batch, offset_groups * taps, rows, columns}, biases{size->out_channels};
    if (!(in[kOffset].shape == offsets)) return fail(wrong("offset", in[kOffset], offsets));
    if (mask.present() && !(mask.shape == factors)) return fail(wrong("mask", mask, factors));
    if (bias.present() && !(bias.shape == biases)) return fail(wrong("B", bias, biases));
    return make_plan({window->output_shape(size->batch, size->out_channels)},
                     [s = *size, win = *window, offset_groups](Tensors inputs, Tensors outputs) {
                       dispatch<Floats>(inputs[0].dtype, [&](auto tag) {
                         run<typename decltype(tag)::type>(s, win, offset_groups, inputs, outputs);
                       });
                     });
  });
}

}  // namespace

[[gnu::cold]] std::span<const Row> deform_conv_rows() {
  static constexpr Row kRows[] = {
      Row{"", "DeformConv", 19, supports, create}.in_fp32(0b010),
  };
  return kRows;
}

}  // namespace backplane::cpu
