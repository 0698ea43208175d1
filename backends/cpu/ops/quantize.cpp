// SPDX-License-Identifier: Apache-2.0
// QuantizeLinear, DequantizeLinear (for the tensor, along an axis, or in blocks of an axis) and DynamicQuantizeLinear.
#include "ops/quantize.h"

#include <cmath>
#include <limits>

#include "ops/function_kernel.h"
#include "ops/rows.h"
#include "ops/support.h"

namespace backplane::cpu {

namespace {

using Reals = TypeList<float, double, Half, BFloat16, int32_t>;
using Scales = TypeList<float, double, Half, BFloat16>;

constexpr bp_dtype_set_t kQuantized = just(BP_DTYPE_INT8) | just(BP_DTYPE_UINT8) | just(BP_DTYPE_INT16) |
                                      just(BP_DTYPE_UINT16) | just(BP_DTYPE_INT4) | just(BP_DTYPE_UINT4);

// Which scale belongs to an element of a tensor that is [outer, axis, inner].
struct Grid {
  int64_t outer = 1, axis = 1, inner = 1;
  int64_t block = 0;   // elements of the axis that share a scale; 0: all, of all rows
  int64_t blocks = 1;  // along the axis
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
  g.blocks = (g.axis + g.block - 1) / g.block;
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
    default:
      return {0, 15};  // UINT4
  }
}

int32_t load(const Tensor& tensor, int64_t i) {
  switch (tensor.dtype) {
    case BP_DTYPE_UNDEFINED:
      return 0;  // no zero point
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
    default: {
      int32_t nibble = tensor.as<uint8_t>()[i / 2] >> (i % 2 * 4) & 15;
      return tensor.dtype == BP_DTYPE_INT4 && nibble > 7 ? nibble - 16 : nibble;
    }
  }
}

void store(const Tensor& tensor, int64_t i, int32_t value) {
  switch (tensor.dtype) {
    case BP_DTYPE_INT8:
    case BP_DTYPE_UINT8:
      tensor.as<uint8_t>()[i] = static_cast<uint8_t>(value);
      return;
    case BP_DTYPE_INT16:
    case BP_DTYPE_UINT16:
      tensor.as<uint16_t>()[i] = static_cast<uint16_t>(value);
      return;
    default: {
      uint8_t& byte = tensor.as<uint8_t>()[i / 2];
      auto nibble = static_cast<uint8_t>(value & 15);
      byte = static_cast<uint8_t>(i % 2 == 0 ? nibble : (byte & 15) | nibble << 4);
    }
  }
}

// Pieces begin at even elements, so that no byte of a packed tensor is shared.
template <class F>
void each_element(int64_t count, const F& f) {
  parallel((count + 1) / 2, kMathGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin * 2; i < std::min(count, end * 2); ++i) f(i);
  });
}

void run_quantize(const Grid& g, Tensors in, Tensors out) {
  Range range = range_of(out[0].dtype);
  dispatch<Reals>(in[0].dtype, [&](auto x_tag) {
    dispatch<Reals>(in[1].dtype, [&](auto scale_tag) {
      using T = typename decltype(x_tag)::type;
      using S = typename decltype(scale_tag)::type;
      each_element(g.elements(), [&, x = in[0].as<T>(), scale = in[1].as<S>(), zero = at(in, 2)](int64_t i) {
        int64_t s = g.scale_of(i);
        float q =
            std::nearbyint(static_cast<float>(x[i]) / static_cast<float>(scale[s])) + static_cast<float>(load(zero, s));
        store(out[0], i, static_cast<int32_t>(std::isnan(q) ? 0 : std::clamp(q, range.low, range.high)));
      });
    });
  });
}

void run_dequantize(const Grid& g, Tensors in, Tensors out) {
  dispatch<Scales>(in[1].dtype, [&](auto scale_tag) {
    dispatch<Scales>(out[0].dtype, [&](auto y_tag) {
      using S = typename decltype(scale_tag)::type;
      using T = typename decltype(y_tag)::type;
      each_element(g.elements(), [&, scale = in[1].as<S>(), y = out[0].as<T>(), zero = at(in, 2)](int64_t i) {
        int64_t s = g.scale_of(i);
        y[i] = static_cast<T>(static_cast<float>(load(in[0], i) - load(zero, s)) * static_cast<float>(scale[s]));
      });
    });
  });
}

template <bool quantizes>
std::unique_ptr<Kernel> create(const Node& node) {
  GridAttributes attributes{node.attr("axis", int64_t{1}), node.attr("block_size", int64_t{0})};
  return make_kernel([attributes](Tensors inputs) -> Plan {
    std::string error;
    std::optional<Grid> grid = make_grid(attributes, inputs[0], inputs[1], &error);
    if (!grid) return fail(error);
    if (Tensor zero = at(inputs, 2); zero.present() && zero.shape.elements() != inputs[1].shape.elements()) {
      return fail("zero points " + to_string(zero.shape) + " do not fit scales " + to_string(inputs[1].shape));
    }
    return make_plan({inputs[0].shape}, [g = *grid](Tensors in, Tensors out) {
      if constexpr (quantizes)
        run_quantize(g, in, out);
      else
        run_dequantize(g, in, out);
    });
  });
}

Verdict supports_quantize(const Node& node) {
  constexpr bp_dtype_set_t reals = set_of(Reals{});
  if (Verdict v = accepts(node, 2, {reals, reals, kQuantized}); !v) return v;
  bp_dtype_t y = node.output_type(0).dtype;
  if ((kQuantized >> y & 1) == 0) return no(BP_REASON_DTYPE, std::string("the output is ") + dtype_name(y));
  return node.attr("block_size", int64_t{0}) < 0 ? no(BP_REASON_ATTRIBUTE, "block_size is negative") : yes();
}

Verdict supports_dequantize(const Node& node) {
  constexpr bp_dtype_set_t quantized = kQuantized | just(BP_DTYPE_INT32);
  if (Verdict v = accepts(node, 2, {quantized, set_of(Scales{}), quantized}); !v) return v;
  bp_dtype_t y = node.output_type(0).dtype;
  if ((set_of(Scales{}) >> y & 1) == 0) return no(BP_REASON_DTYPE, std::string("the output is ") + dtype_name(y));
  return node.attr("block_size", int64_t{0}) < 0 ? no(BP_REASON_ATTRIBUTE, "block_size is negative") : yes();
}

Verdict supports_dynamic(const Node& node) {
  return accepts(node, 1, {just(BP_DTYPE_FLOAT)});
}

std::unique_ptr<Kernel> create_dynamic(const Node&) {
  return make_kernel([](Tensors inputs) {
    return make_plan({inputs[0].shape, Shape{}, Shape{}}, [](Tensors in, Tensors out) {
      int64_t count = in[0].shape.elements();
      const float* x = in[0].as<float>();
      float low = 0;
      float high = 0;
      for (int64_t i = 0; i < count; ++i) {
        low = std::min(low, x[i]);
        high = std::max(high, x[i]);
      }
      float scale = high == low ? 1.0f : (high - low) / 255;
      float zero = std::nearbyint(std::clamp(-low / scale, 0.0f, 255.0f));
      if (out[0].present()) {
        uint8_t* y = out[0].as<uint8_t>();
        each_element(count, [&](int64_t i) { y[i] = saturate<uint8_t>(std::nearbyint(x[i] / scale) + zero); });
      }
      if (at(out, 1).present()) *out[1].as<float>() = scale;
      if (at(out, 2).present()) *out[2].as<uint8_t>() = static_cast<uint8_t>(zero);
    });
  });
}

constexpr Row kRows[] = {
    {"", "QuantizeLinear", 10, supports_quantize, create<true>},
    {"", "DequantizeLinear", 10, supports_dequantize, create<false>},
    {"", "DynamicQuantizeLinear", 11, supports_dynamic, create_dynamic},
};

}  // namespace

std::span<const Row> quantize_rows() {
  return kRows;
}

}  // namespace backplane::cpu
