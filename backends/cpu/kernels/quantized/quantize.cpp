// SPDX-License-Identifier: Apache-2.0
// QuantizeLinear, DequantizeLinear (with a scale for the whole tensor, each index of an axis, or each block of an axis)
// and DynamicQuantizeLinear.
#include "kernels/quantized/quantize.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>

#include "kernels/common/function_kernel.h"
#include "kernels/common/quantization.h"
#include "kernels/common/small_types.h"
#include "kernels/common/support.h"
#include "kernels/simd/clones.h"

namespace backplane::cpu {

namespace {

using Reals = TypeList<float, double, Half, BFloat16, int32_t>;
using Scales = TypeList<float, double, Half, BFloat16>;

constexpr bp_dtype_set_t kSmallFloats = just(BP_DTYPE_FLOAT8E4M3FN) | just(BP_DTYPE_FLOAT8E4M3FNUZ) |
                                        just(BP_DTYPE_FLOAT8E5M2) | just(BP_DTYPE_FLOAT8E5M2FNUZ) |
                                        just(BP_DTYPE_FLOAT4E2M1);
constexpr bp_dtype_set_t kQuantized = just(BP_DTYPE_INT8) | just(BP_DTYPE_UINT8) | just(BP_DTYPE_INT16) |
                                      just(BP_DTYPE_UINT16) | just(BP_DTYPE_INT4) | just(BP_DTYPE_UINT4) |
                                      just(BP_DTYPE_INT2) | just(BP_DTYPE_UINT2) | kSmallFloats;
constexpr bp_dtype_set_t kScales = set_of(Scales{}) | just(BP_DTYPE_FLOAT8E8M0);

// Maps the elements of a tensor [outer, axis, inner] to their scales.
struct Grid {
  int64_t outer = 1, axis = 1, inner = 1;
  int64_t block = 0;   // elements of the axis that share a scale; 0: one scale for the tensor
  int64_t blocks = 1;  // number of blocks along the axis
  bool blocked = false;

  int64_t elements() const { return outer * axis * inner; }
  int64_t scale_of(int64_t i) const {
    if (block == 0) return 0;
    int64_t along = i / inner % axis / block;
    return blocked ? (i / (inner * axis) * blocks + along) * inner + i % inner : along;
  }
};

struct GridAttributes {
  int64_t axis, block_size;
};

std::optional<Grid> make_grid(const GridAttributes& attributes, const Tensor& x, const Tensor& scale,
                              std::string* error) {
  Grid g;
  g.inner = x.shape.elements();
  if (scale.shape.elements() == 1 && attributes.block_size == 0) return g;
  int axis = axis_of(attributes.axis, x.shape.rank());
  auto fails = [&] {
    *error = "scales " + to_string(scale.shape) + " do not fit a tensor " + to_string(x.shape) + " along axis " +
             std::to_string(attributes.axis);
    return std::nullopt;
  };
  if (axis < 0) return fails();
  g.outer = x.shape.elements(0, axis);
  g.axis = x.shape[axis];
  g.inner = x.shape.elements(axis + 1, x.shape.rank());
  if (attributes.block_size == 0) {
    if (scale.shape.rank() != 1 || scale.shape[0] != g.axis) return fails();
    g.block = 1;
    return g;
  }
  g.blocked = true;
  g.block = attributes.block_size;
  g.blocks = g.axis / g.block + (g.axis % g.block != 0 ? 1 : 0);  // the block may be larger than any extent
  Shape expected = x.shape;
  expected[axis] = g.blocks;
  if (!(scale.shape == expected)) return fails();
  return g;
}

struct Range {
  float low, high;
};
Range range_of(bp_dtype_t dtype) {
  switch (dtype) {
    case BP_DTYPE_INT8:
      return {-128, 127};
    case BP_DTYPE_UINT8:
      return {0, 255};
    case BP_DTYPE_INT16:
      return {-32768, 32767};
    case BP_DTYPE_UINT16:
      return {0, 65535};
    case BP_DTYPE_INT4:
      return {-8, 7};
    case BP_DTYPE_UINT4:
      return {0, 15};
    case BP_DTYPE_INT2:
      return {-2, 1};
    default:
      return {0, 3};  // UINT2
  }
}

// Returns element i of a quantized tensor or of its zero points; 0 if the tensor is absent.
double load(const Tensor& tensor, int64_t i) {
  switch (tensor.dtype) {
    case BP_DTYPE_UNDEFINED:
      return 0;
    case BP_DTYPE_INT8:
      return tensor.as<int8_t>()[i];
    case BP_DTYPE_UINT8:
      return tensor.as<uint8_t>()[i];
    case BP_DTYPE_INT16:
      return tensor.as<int16_t>()[i];
    case BP_DTYPE_UINT16:
      return tensor.as<uint16_t>()[i];
    case BP_DTYPE_INT32:
      return tensor.as<int32_t>()[i];
    default:
      return decode_bits(tensor.dtype, load_bits(tensor.data, bits_of(tensor.dtype), i));
  }
}

std::vector<double> scales_of(const Tensor& tensor) {
  std::vector<double> scales(static_cast<size_t>(tensor.shape.elements()));
  if (tensor.dtype == BP_DTYPE_FLOAT8E8M0) {
    for (size_t i = 0; i < scales.size(); ++i) scales[i] = decode_e8m0(tensor.as<uint8_t>()[i]);
    return scales;
  }
  dispatch<Reals>(tensor.dtype, [&](auto tag) {
    const auto* data = tensor.as<typename decltype(tag)::type>();
    for (size_t i = 0; i < scales.size(); ++i) scales[i] = static_cast<double>(data[i]);
  });
  return scales;
}

// Calls f(first, last) for pieces of the elements, in parallel. Pieces end at whole bytes, even if elements are smaller
// than a byte.
template <class F>
void each_piece(int64_t count, const F& f) {
  constexpr int64_t kPiece = 256;
  parallel((count + kPiece - 1) / kPiece, kMathGrain / kPiece, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) f(i * kPiece, std::min(count, (i + 1) * kPiece));
  });
}

// Returns x / scale, divided in fp32 (in double if `precision` is DOUBLE) and rounded to the type `precision`.
double divide(double x, double scale, bp_dtype_t precision) {
  switch (precision) {
    case BP_DTYPE_DOUBLE:
      return x / scale;
    case BP_DTYPE_FLOAT16:
      return Half(static_cast<float>(x) / static_cast<float>(scale));
    case BP_DTYPE_BFLOAT16:
      return BFloat16(static_cast<float>(x) / static_cast<float>(scale));
    default:
      return static_cast<float>(x) / static_cast<float>(scale);
  }
}

// The fast path of run_quantize from floats to bytes, for a row with one scale and one zero point.
CLONED void quantize_row(const float* x, uint8_t* y, int64_t n, float scale, float zero, float low, float high) {
  for (int64_t i = 0; i < n; ++i) {
    float value = x[i] / scale;
    const bool is_number = value == value;
    value = value > low - zero ? value : low - zero;
    value = value < high - zero ? value : high - zero;
    const auto quantized = static_cast<int32_t>(nearest(value) + zero);
    y[i] = static_cast<uint8_t>(is_number ? quantized : 0);
  }
}

// Like quantize_row, but every element has its own scale and zero point.
CLONED void quantize_each(const float* x, uint8_t* y, int64_t n, const float* scales, const float* zeros, float low,
                          float high) {
  for (int64_t i = 0; i < n; ++i) {
    float value = x[i] / scales[i];
    const bool is_number = value == value;
    value = value > low - zeros[i] ? value : low - zeros[i];
    value = value < high - zeros[i] ? value : high - zeros[i];
    const auto quantized = static_cast<int32_t>(nearest(value) + zeros[i]);
    y[i] = static_cast<uint8_t>(is_number ? quantized : 0);
  }
}

// The smallest range that includes 0 and the values seen so far.
struct Bounds {
  float low = 0, high = 0;
};
CLONED void widen(Bounds& bounds, const float* x, int64_t n) {
  float low = bounds.low, high = bounds.high;
#pragma omp simd reduction(min : low) reduction(max : high)
  for (int64_t i = 0; i < n; ++i) {
    low = x[i] < low ? x[i] : low;
    high = x[i] > high ? x[i] : high;
  }
  bounds = {low, high};
}

CLONED void dequantize_unsigned(const void* quantized, float* y, int64_t n, float scale, float zero) {
  const auto* x = static_cast<const uint8_t*>(quantized);
  for (int64_t i = 0; i < n; ++i) y[i] = (static_cast<float>(x[i]) - zero) * scale;
}
CLONED void dequantize_signed(const void* quantized, float* y, int64_t n, float scale, float zero) {
  const auto* x = static_cast<const int8_t*>(quantized);
  for (int64_t i = 0; i < n; ++i) y[i] = (static_cast<float>(x[i]) - zero) * scale;
}

CLONED void dequantize_each_unsigned(const void* quantized, float* y, int64_t n, const float* scales,
                                     const float* zeros) {
  const auto* x = static_cast<const uint8_t*>(quantized);
  for (int64_t i = 0; i < n; ++i) y[i] = (static_cast<float>(x[i]) - zeros[i]) * scales[i];
}
CLONED void dequantize_each_signed(const void* quantized, float* y, int64_t n, const float* scales,
                                   const float* zeros) {
  const auto* x = static_cast<const int8_t*>(quantized);
  for (int64_t i = 0; i < n; ++i) y[i] = (static_cast<float>(x[i]) - zeros[i]) * scales[i];
}

bool is_byte(bp_dtype_t dtype) {
  return dtype == BP_DTYPE_INT8 || dtype == BP_DTYPE_UINT8;
}

// For tensors of bytes without blocks. If the axis is the innermost dimension, calls each(first element, count) for
// rows along it. Otherwise calls row(first element, count, index of the scale) for pieces that share a scale.
template <class Row, class Each>
void each_row(const Grid& g, const Row& row, const Each& each) {
  const bool innermost = g.block != 0 && g.inner == 1;
  const int64_t length = std::max<int64_t>(1, g.block == 0 ? kCheapGrain
                                              : innermost  ? g.axis
                                                           : g.inner),
                rows = (g.elements() + length - 1) / length;
  parallel(rows, 1 + kCheapGrain / (1 + length), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t first = r * length;
      if (innermost)
        each(first, length);
      else
        row(first, std::min(length, g.elements() - first), g.block == 0 ? 0 : r % g.axis);
    }
  });
}

// Returns the zero point for each of `scales` scales.
std::vector<float> zeros_of(const Tensor& zero, int64_t scales) {
  std::vector<float> zeros(static_cast<size_t>(scales));
  for (size_t i = 0; i < zeros.size(); ++i) zeros[i] = static_cast<float>(load(zero, static_cast<int64_t>(i)));
  return zeros;
}

struct QuantizeRules {
  bp_dtype_t precision;  // the type that the quotient is rounded to
  bool saturate;         // for results of 8-bit float types
};

void run_quantize(const Grid& g, const QuantizeRules& rules, Tensors in, Tensors out) {
  const bp_dtype_t dtype = out[0].dtype;
  const bool whole = (kSmallFloats >> dtype & 1) == 0;
  const Range range = range_of(dtype);
  const Tensor zero = at(in, 2);
  if (!g.blocked && is_byte(dtype) && in[0].dtype == BP_DTYPE_FLOAT && in[1].dtype == BP_DTYPE_FLOAT &&
      rules.precision == BP_DTYPE_FLOAT) {
    const std::vector<float> zeros = zeros_of(zero, in[1].shape.elements());
    const float *x = in[0].as<float>(), *scales = in[1].as<float>();
    uint8_t* y = out[0].as<uint8_t>();
    each_row(
        g,
        [&](int64_t first, int64_t n, int64_t s) {
          clone_of<quantize_row>(x + first, y + first, n, scales[s], zeros[static_cast<size_t>(s)], range.low,
                                 range.high);
        },
        [&](int64_t first, int64_t n) {
          clone_of<quantize_each>(x + first, y + first, n, scales, zeros.data(), range.low, range.high);
        });
    return;
  }
  const std::vector<double> scales = scales_of(in[1]);
  dispatch<Reals>(in[0].dtype, [&](auto tag) {
    const auto* x = in[0].as<typename decltype(tag)::type>();
    each_piece(g.elements(), [&](int64_t begin, int64_t end) {
      float values[256];
      for (int64_t i = begin; i < end; ++i) {
        const int64_t s = g.scale_of(i);
        double q = divide(static_cast<double>(x[i]), scales[static_cast<size_t>(s)], rules.precision);
        if (whole) {
          q = std::nearbyint(q) + load(zero, s);
          q = std::isnan(q) ? 0 : std::clamp<double>(q, range.low, range.high);
        } else {
          q += load(zero, s);
        }
        values[i - begin] = static_cast<float>(q);
      }
      if (bits_of(dtype) == 16) {
        for (int64_t i = begin; i < end; ++i)
          out[0].as<uint16_t>()[i] = static_cast<uint16_t>(static_cast<int32_t>(values[i - begin]));
      } else {
        store_floats(dtype, out[0].data, begin, values, end - begin, {rules.saturate});
      }
    });
  });
}

void run_dequantize(const Grid& g, Tensors in, Tensors out) {
  const Tensor zero = at(in, 2);
  if (is_byte(in[0].dtype) && in[1].dtype == BP_DTYPE_FLOAT && out[0].dtype == BP_DTYPE_FLOAT && !g.blocked) {
    const bool is_signed = in[0].dtype == BP_DTYPE_INT8;
    const std::vector<float> zeros = zeros_of(zero, in[1].shape.elements());
    const uint8_t* x = in[0].as<uint8_t>();
    const float* scales = in[1].as<float>();
    float* y = out[0].as<float>();
    each_row(
        g,
        [&](int64_t first, int64_t n, int64_t s) {
          (is_signed ? clone_of<dequantize_signed> : clone_of<dequantize_unsigned>)(x + first, y + first, n, scales[s],
                                                                                    zeros[static_cast<size_t>(s)]);
        },
        [&](int64_t first, int64_t n) {
          (is_signed ? clone_of<dequantize_each_signed> : clone_of<dequantize_each_unsigned>)(x + first, y + first, n,
                                                                                              scales, zeros.data());
        });
    return;
  }
  const std::vector<double> scales = scales_of(in[1]);
  dispatch<Scales>(out[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    each_piece(g.elements(), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t s = g.scale_of(i);
        const auto difference = static_cast<compute_t<T>>(load(in[0], i) - load(zero, s));
        out[0].as<T>()[i] = static_cast<T>(difference * static_cast<compute_t<T>>(scales[static_cast<size_t>(s)]));
      }
    });
  });
}

template <class Run>
std::unique_ptr<Kernel> make_grid_kernel(const Node& node, Run run) {
  GridAttributes attributes{node.attr("axis", int64_t{1}), node.attr("block_size", int64_t{0})};
  return make_kernel([attributes, run](Tensors inputs) -> Plan {
    std::string error;
    std::optional<Grid> grid = make_grid(attributes, inputs[0], inputs[1], &error);
    if (!grid) return fail(error);
    if (Tensor zero = at(inputs, 2); zero.present() && zero.shape.elements() != inputs[1].shape.elements()) {
      return fail("zero points " + to_string(zero.shape) + " do not fit scales " + to_string(inputs[1].shape));
    }
    return make_plan({inputs[0].shape}, [g = *grid, run](Tensors in, Tensors out) { run(g, in, out); });
  });
}

std::unique_ptr<Kernel> create_quantize(const Node& node) {
  // Without the attribute `precision`, the division is computed in the type of x and the scale if both have the same
  // float type, otherwise in FLOAT.
  auto precision = static_cast<bp_dtype_t>(node.attr("precision", int64_t{BP_DTYPE_UNDEFINED}));
  if (precision == BP_DTYPE_UNDEFINED) {
    const bp_dtype_t x = node.input_type(0).dtype;
    precision = x == node.input_type(1).dtype && x != BP_DTYPE_INT32 ? x : bp_dtype_t{BP_DTYPE_FLOAT};
  }
  const QuantizeRules rules{precision, node.attr("saturate", int64_t{1}) != 0};
  return make_grid_kernel(node, [rules](const Grid& g, Tensors in, Tensors out) { run_quantize(g, rules, in, out); });
}

std::unique_ptr<Kernel> create_dequantize(const Node& node) {
  return make_grid_kernel(node, run_dequantize);
}

Verdict supports_grid(const Node& node, bp_dtype_set_t x, bp_dtype_set_t scales, bp_dtype_set_t zeros,
                      bp_dtype_set_t results) {
  if (Verdict v = accepts(node, 2, {x, scales, zeros}); !v) return v;
  const bp_dtype_t y = node.output_type(0).dtype;
  if (y >= 64 || (results >> y & 1) == 0)
    return no(BP_REASON_DTYPE, std::string("the output has the unsupported data type ") + dtype_name(y));
  if (const int64_t size = node.attr("block_size", int64_t{0}); size < 0)
    return no(BP_REASON_ATTRIBUTE, "block_size is " + std::to_string(size) + "; it must not be negative");
  return yes();
}

Verdict supports_quantize(const Node& node) {
  const int64_t precision = node.attr("precision", int64_t{0});
  if (precision != 0 && (precision < 0 || precision >= 64 || (kFloatTypes >> precision & 1) == 0))
    return no(BP_REASON_ATTRIBUTE, "precision " + std::to_string(precision) + " is not a float type");
  constexpr bp_dtype_set_t kReals = set_of(Reals{});
  return supports_grid(node, kReals, kReals | just(BP_DTYPE_FLOAT8E8M0), kQuantized, kQuantized);
}

Verdict supports_dequantize(const Node& node) {
  constexpr bp_dtype_set_t kQuantizedOrInt32 = kQuantized | just(BP_DTYPE_INT32);
  return supports_grid(node, kQuantizedOrInt32, kScales, kQuantizedOrInt32, set_of(Scales{}));
}

Verdict supports_dynamic(const Node& node) {
  return accepts(node, 1, {just(BP_DTYPE_FLOAT)});
}

// Returns the scale and zero point that ONNX defines for DynamicQuantizeLinear. The range of x includes 0 anyway, so
// the zeros that pad a blocked tensor change nothing.
Quantization dynamic_quantization(const float* x, int64_t count) {
  Bounds all;
  std::mutex mutex;
  parallel(count, kCheapGrain, [&](int64_t begin, int64_t end) {
    Bounds bounds;
    clone_of<widen>(bounds, x + begin, end - begin);
    const std::lock_guard lock(mutex);
    all = {std::min(all.low, bounds.low), std::max(all.high, bounds.high)};
  });
  const float scale = all.high == all.low ? 1.0f : (all.high - all.low) / 255;
  return {BP_DTYPE_UINT8, scale, saturate<uint8_t>(std::nearbyint(-all.low / scale))};
}

// Quantizes blocked floats to bytes in channels-last order, which is how convolutions of integers read them.
void quantize_blocks(const float* x, uint8_t* y, const Shape& shape, const Quantization& q) {
  constexpr int64_t kStrip = 64;  // positions of a block of channels at a time
  const int64_t block = channel_block(), channels = shape[1], blocks = (channels + block - 1) / block;
  const int64_t positions = shape.elements(2, shape.rank()), strips = (positions + kStrip - 1) / kStrip;
  parallel(shape[0] * strips, 1 + kCheapGrain / (kStrip * channels), [&](int64_t begin, int64_t end) {
    uint8_t bytes[kStrip * 16];
    for (int64_t task = begin; task < end; ++task) {
      const int64_t image = task / strips, first = task % strips * kStrip, count = std::min(kStrip, positions - first);
      for (int64_t b = 0; b < blocks; ++b) {
        const float* from = x + ((image * blocks + b) * positions + first) * block;
        clone_of<quantize_row>(from, bytes, count * block, q.scale, static_cast<float>(q.zero), 0, 255);
        uint8_t* to = y + (image * positions + first) * channels + b * block;
        const int64_t whole = std::min(block, channels - b * block);
        for (int64_t i = 0; i < count; ++i) {
          if (whole == 16)
            std::memcpy(to + i * channels, bytes + i * 16, 16);
          else
            std::copy_n(bytes + i * block, whole, to + i * channels);
        }
      }
    }
  });
}

std::unique_ptr<Kernel> create_dynamic(const Node&) {
  return make_kernel([](Tensors inputs) {
    const bool blocked = inputs[0].format == Format::kBlocked;
    Plan plan = make_plan({inputs[0].shape, Shape{}, Shape{}}, [blocked](Tensors in, Tensors out) {
      const auto* x = in[0].as<float>();
      auto* y = out[0].as<uint8_t>();
      const Quantization q =
          blocked ? dynamic_quantization(x, in[0].stored()) : quantize_dynamically(x, y, in[0].shape.elements());
      if (blocked) quantize_blocks(x, y, in[0].shape, q);
      if (at(out, 1).present()) *out[1].as<float>() = q.scale;
      if (at(out, 2).present()) *out[2].as<uint8_t>() = static_cast<uint8_t>(q.zero);
    });
    if (blocked) {
      plan.input_formats = {Format::kBlocked};
      plan.output_format = Format::kChannelsLast;
    }
    return plan;
  });
}

}  // namespace

Quantization quantize_dynamically(const float* x, uint8_t* y, int64_t count) {
  const Quantization q = dynamic_quantization(x, count);
  if (y != nullptr) {
    parallel(count, kCheapGrain, [&](int64_t begin, int64_t end) {
      clone_of<quantize_row>(x + begin, y + begin, end - begin, q.scale, static_cast<float>(q.zero), 0, 255);
    });
  }
  return q;
}

[[gnu::cold]] std::span<const Row> quantize_rows() {
  static constexpr Row kRows[] = {
      {"", "QuantizeLinear", 10, supports_quantize, create_quantize},
      Row{"", "DequantizeLinear", 10, supports_dequantize, create_dequantize}.with(kFoldsLate),
      {"", "DynamicQuantizeLinear", 11, supports_dynamic, create_dynamic},
  };
  return kRows;
}

}  // namespace backplane::cpu
