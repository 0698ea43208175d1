// SPDX-License-Identifier: Apache-2.0
// com.microsoft's operators on tensors of 8-bit quantized values, each with a scale and a zero point: QLinearAdd,
// QLinearMul, QLinearConcat, QLinearGlobalAveragePool, QLinearAveragePool, QLinearSigmoid and QLinearLeakyRelu.
#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/common/broadcast.h"
#include "kernels/common/function_kernel.h"
#include "kernels/common/support.h"
#include "kernels/common/window.h"
#include "kernels/quantized/quantize.h"

namespace backplane::cpu {

namespace {

constexpr bp_dtype_set_t kBytes = just(BP_DTYPE_INT8) | just(BP_DTYPE_UINT8);
constexpr bp_dtype_set_t kFloat = just(BP_DTYPE_FLOAT);

// Converts between the quantized values of a tensor and real numbers.
class Scale {
 public:
  Scale(bp_dtype_t dtype, const Tensor& scale, const Tensor& zero)
      : is_signed_(dtype == BP_DTYPE_INT8), scale_(*scale.as<float>()), zero_(zero.present() ? widened(zero, 0) : 0) {}

  float scale() const { return scale_; }
  float real(const Tensor& x, int64_t i) const { return static_cast<float>(widened(x, i) - zero_) * scale_; }
  int32_t above_zero(const Tensor& x, int64_t i) const { return widened(x, i) - zero_; }
  // Quantizes as QuantizeLinear does.
  uint8_t quantized(float value) const { return rounded(value / scale_); }
  uint8_t rounded(float steps) const { return stored(std::nearbyint(steps) + static_cast<float>(zero_)); }
  // Adds the zero point before rounding, as ONNX Runtime does in sums, products and averages of windows. If the zero
  // point is odd, this rounds a value halfway between two integers to the other of the two than quantized() does.
  uint8_t quantized_from_zero(float value) const {
    return stored(std::nearbyint(value / scale_ + static_cast<float>(zero_)));
  }

 private:
  uint8_t stored(float q) const {
    return is_signed_ ? static_cast<uint8_t>(saturate<int8_t>(q)) : saturate<uint8_t>(q);
  }
  static int32_t widened(const Tensor& x, int64_t i) {
    return x.dtype == BP_DTYPE_INT8 ? int32_t{x.as<int8_t>()[i]} : int32_t{x.as<uint8_t>()[i]};
  }
  bool is_signed_;
  float scale_;
  int32_t zero_;
};

Scale scale_at(Tensors in, const Tensor& of, size_t slot) {
  return {of.dtype, in[slot], at(in, slot + 1)};
}

// Returns an error message if the scale in one of the input slots, or the zero point in the slot after it, is present
// and does not have exactly one element; otherwise nullopt.
std::optional<std::string> no_scalar(Tensors in, std::initializer_list<size_t> slots) {
  for (size_t first : slots)
    for (size_t slot : {first, first + 1})
      if (at(in, slot).present() && in[slot].shape.elements() != 1)
        return "input " + std::to_string(slot) + " has shape " + to_string(in[slot].shape) +
               "; it must have one element";
  return std::nullopt;
}

// ---- QLinearAdd, QLinearMul: the inputs are A and B with their scales and zero points, then those of the result

Verdict supports_binary(const Node& node) {
  if (Verdict v = accepts(node, 7, {kBytes, kFloat, kBytes, kBytes, kFloat, kBytes, kFloat, kBytes}); !v) return v;
  return same_type(node, 0, 3);
}

template <bool kAdds>
std::unique_ptr<Kernel> create_binary(const Node&) {
  return make_kernel([](Tensors in) -> Plan {
    const Shape shapes[] = {in[0].shape, in[3].shape};
    const auto shape = broadcast_shape(shapes);
    if (!shape) return fail("shapes " + to_string(shapes[0]) + " and " + to_string(shapes[1]) + " do not broadcast");
    if (auto why = no_scalar(in, {1, 4, 6})) return fail(*why);
    return make_plan({*shape}, [walk = Broadcast<2>(*shape, {shapes[0], shapes[1]})](Tensors inputs, Tensors outputs) {
      const Tensor &a = inputs[0], &b = inputs[3];
      const Scale a_scale = scale_at(inputs, a, 1), b_scale = scale_at(inputs, b, 4),
                  y_scale = scale_at(inputs, outputs[0], 6);
      auto* y = outputs[0].as<uint8_t>();
      parallel(walk.elements, kMathGrain, [&](int64_t begin, int64_t end) {
        walk.rows(begin, end, [&](int64_t to, const std::array<int64_t, 2>& from, int64_t count) {
          for (int64_t i = 0; i < count; ++i) {
            const float x = a_scale.real(a, from[0] + i * walk.inner_stride(0));
            const float z = b_scale.real(b, from[1] + i * walk.inner_stride(1));
            y[to + i] = y_scale.quantized_from_zero(kAdds ? x + z : x * z);
          }
        });
      });
    });
  });
}

// ---- QLinearConcat: the inputs are the result's scale and zero point, then each tensor, its scale and its zero point

Verdict supports_concat(const Node& node) {
  const uint32_t count = node.input_count();
  if (count < 5 || count % 3 != 2)
    return no(BP_REASON_OPSET, "it has " + std::to_string(count) + " inputs, instead of 2 plus 3 for each tensor");
  for (uint32_t slot = 0; slot < count; ++slot) {
    const bool is_scale = slot % 3 == 0;
    const bp_dtype_t dtype = node.input_type(slot).dtype;
    if (dtype >= 64 || ((is_scale ? kFloat : kBytes) >> dtype & 1) == 0)
      return no(BP_REASON_DTYPE,
                "input " + std::to_string(slot) + " has the unsupported data type " + dtype_name(dtype));
  }
  return yes();
}

std::unique_ptr<Kernel> create_concat(const Node& node) {
  return make_kernel([axis_attribute = node.attr("axis", int64_t{1})](Tensors in) -> Plan {
    Shape shape = in[2].shape;
    const int axis = axis_of(axis_attribute, shape.rank());
    if (axis < 0) return bad_axis(axis_attribute, shape.rank());
    if (auto why = no_scalar(in, {0})) return fail(*why);
    int64_t total = 0;
    for (size_t slot = 2; slot < in.size(); slot += 3) {
      Shape expected = shape;
      if (in[slot].shape.rank() == shape.rank()) expected[axis] = in[slot].shape[axis];
      if (!(in[slot].shape == expected))
        return fail("shapes " + to_string(shape) + " and " + to_string(in[slot].shape) + " cannot be concatenated");
      if (auto why = no_scalar(in, {slot + 1})) return fail(*why);
      total += expected[axis];
    }
    shape[axis] = total;
    const int64_t outer = shape.elements(0, axis), inner = shape.elements(axis + 1, shape.rank());
    return make_plan({shape}, [axis, outer, inner, total](Tensors inputs, Tensors outputs) {
      const Scale y_scale = scale_at(inputs, outputs[0], 0);
      int64_t begin = 0;
      for (size_t slot = 2; slot < inputs.size(); slot += 3) {
        const Tensor& x = inputs[slot];
        const Scale scale = scale_at(inputs, x, slot + 1);
        const int64_t row = x.shape[axis] * inner;
        auto* y = outputs[0].as<uint8_t>() + begin * inner;
        parallel(outer * row, kMathGrain, [&](int64_t first, int64_t last) {
          for (int64_t i = first; i < last; ++i)
            y[i / row * total * inner + i % row] = y_scale.quantized(scale.real(x, i));
        });
        begin += x.shape[axis];
      }
    });
  });
}

// ---- QLinearGlobalAveragePool, QLinearAveragePool

Verdict supports_pool(const Node& node) {
  return accepts(node, 4, {kBytes, kFloat, kBytes, kFloat, kBytes});
}

std::unique_ptr<Kernel> create_global_pool(const Node& node) {
  return make_kernel([last = node.attr("channels_last", int64_t{0}) != 0](Tensors in) -> Plan {
    const Shape& x = in[0].shape;
    if (x.rank() < 3) return fail("X " + to_string(x) + " has no spatial dimensions");
    if (auto why = no_scalar(in, {1, 3})) return fail(*why);
    Shape shape = x;
    for (int d = last ? 1 : 2; d < x.rank() - (last ? 1 : 0); ++d) shape[d] = 1;
    const int64_t channels = last ? x[x.rank() - 1] : x[1];
    const int64_t pixels = last ? x.elements(1, x.rank() - 1) : x.elements(2, x.rank());
    if (pixels == 0) return fail("X " + to_string(x) + " has no pixels");
    return make_plan({shape}, [=](Tensors inputs, Tensors outputs) {
      const Tensor& source = inputs[0];
      const Scale x_scale = scale_at(inputs, source, 1), y_scale = scale_at(inputs, outputs[0], 3);
      const float factor = x_scale.scale() / (y_scale.scale() * static_cast<float>(pixels));
      parallel(source.shape[0] * channels, 1 + kCheapGrain / pixels, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t first = last ? i / channels * pixels * channels + i % channels : i * pixels;
          int64_t sum = 0;
          for (int64_t p = 0; p < pixels; ++p) sum += x_scale.above_zero(source, first + p * (last ? channels : 1));
          outputs[0].as<uint8_t>()[i] = y_scale.rounded(static_cast<float>(sum) * factor);
        }
      });
    });
  });
}

Verdict supports_average_pool(const Node& node) {
  if (Verdict v = supports_pool(node); !v) return v;
  if (node.attr("channels_last", int64_t{0}) != 0)
    return no(BP_REASON_ATTRIBUTE, "channels_last is set, which is not supported");
  return check_window(node);
}

std::unique_ptr<Kernel> create_average_pool(const Node& node) {
  return make_kernel([attributes = WindowAttributes(node),
                      pads_count = node.attr("count_include_pad", int64_t{0}) != 0](Tensors in) -> Plan {
    std::string error;
    const Shape& x = in[0].shape;
    if (auto why = no_scalar(in, {1, 3})) return fail(*why);
    const std::optional<Window> window = make_window(attributes, x, attributes.kernel, &error);
    if (!window) return fail(error);
    return make_plan({window->output_shape(x[0], x[1])}, [w = *window, pads_count](Tensors inputs, Tensors outputs) {
      const Tensor& source = inputs[0];
      const Scale x_scale = scale_at(inputs, source, 1), y_scale = scale_at(inputs, outputs[0], 3);
      parallel(source.shape[0] * source.shape[1], 1, [&](int64_t begin, int64_t end) {
        for (int64_t plane = begin; plane < end; ++plane) {
          for (int64_t o = 0; o < w.out_size(); ++o) {
            const Spatial position{o / (w.out[1] * w.out[2]), o / w.out[2] % w.out[1], o % w.out[2]};
            // The taps that lie in the image, and the number of those that do not lie beyond its padding.
            Spatial corner{}, first{}, last{};
            int64_t inside = 1, counted = 1;
            for (size_t d = 0; d < kSpatial; ++d) {
              const int64_t step = w.dilation[d];
              const auto taps_below = [&](int64_t end) {
                return std::clamp<int64_t>((end - corner[d] + step - 1) / step, 0, w.kernel[d]);
              };
              corner[d] = position[d] * w.stride[d] - w.begin[d];
              first[d] = corner[d] < 0 ? taps_below(0) : 0;
              last[d] = std::max(first[d], corner[d] < w.in[d] ? taps_below(w.in[d]) : 0);
              inside *= last[d] - first[d];
              counted *= corner[d] < w.in[d] + w.end[d] ? taps_below(w.in[d] + w.end[d]) : 0;
            }
            int64_t sum = 0;
            for (int64_t z = first[0]; z < last[0]; ++z) {
              for (int64_t y = first[1]; y < last[1]; ++y) {
                const int64_t row = (corner[0] + z * w.dilation[0]) * w.in[1] + corner[1] + y * w.dilation[1];
                for (int64_t x = first[2]; x < last[2]; ++x)
                  sum +=
                      x_scale.above_zero(source, plane * w.in_size() + row * w.in[2] + corner[2] + x * w.dilation[2]);
              }
            }
            const int64_t count = pads_count ? counted : inside;
            outputs[0].as<uint8_t>()[plane * w.out_size() + o] = y_scale.quantized_from_zero(
                count == 0 ? 0 : static_cast<float>(sum) * x_scale.scale() / static_cast<float>(count));
          }
        }
      });
    });
  });
}

// ---- QLinearSigmoid, QLinearLeakyRelu: looked up in a table of 256 results

// `Formula` is constructed from the node and maps a float to a float.
template <class Formula>
std::unique_ptr<Kernel> create_function(const Node& node) {
  return make_kernel([formula = Formula(node)](Tensors in) -> Plan {
    if (auto why = no_scalar(in, {1, 3})) return fail(*why);
    return make_plan({in[0].shape}, [formula](Tensors inputs, Tensors outputs) {
      std::array<uint8_t, 256> bytes, results;
      for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i);
      const Tensor all{inputs[0].dtype, Shape{256}, bytes.data()};
      const Scale x_scale = scale_at(inputs, all, 1), y_scale = scale_at(inputs, outputs[0], 3);
      for (size_t i = 0; i < bytes.size(); ++i)
        results[i] = y_scale.quantized(formula(x_scale.real(all, static_cast<int64_t>(i))));
      const auto* x = inputs[0].as<uint8_t>();
      auto* y = outputs[0].as<uint8_t>();
      parallel(inputs[0].shape.elements(), kCheapGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) y[i] = results[x[i]];
      });
    });
  });
}

struct QuantizedSigmoid {
  explicit QuantizedSigmoid(const Node&) {}
  float operator()(float x) const { return 1 / (1 + std::exp(-x)); }
};
struct QuantizedLeakyRelu {
  explicit QuantizedLeakyRelu(const Node& node) : alpha(node.attr("alpha", 0.01f)) {}
  float operator()(float x) const { return x < 0 ? alpha * x : x; }
  float alpha;
};

}  // namespace

[[gnu::cold]] std::span<const Row> qlinear_rows() {
  static constexpr Row kRows[] = {
      {kMicrosoft, "QLinearAdd", 1, supports_binary, create_binary<true>},
      {kMicrosoft, "QLinearMul", 1, supports_binary, create_binary<false>},
      {kMicrosoft, "QLinearConcat", 1, supports_concat, create_concat},
      {kMicrosoft, "QLinearGlobalAveragePool", 1, supports_pool, create_global_pool},
      {kMicrosoft, "QLinearAveragePool", 1, supports_average_pool, create_average_pool},
      {kMicrosoft, "QLinearSigmoid", 1, supports_pool, create_function<QuantizedSigmoid>},
      {kMicrosoft, "QLinearLeakyRelu", 1, supports_pool, create_function<QuantizedLeakyRelu>},
  };
  return kRows;
}

}  // namespace backplane::cpu
