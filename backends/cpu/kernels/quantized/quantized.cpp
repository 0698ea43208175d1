// SPDX-License-Identifier: Apache-2.0
// Products of 8-bit numbers. MatMulInteger and ConvInteger return the 32-bit sums; QLinearMatMul and QLinearConv
// quantize them again. Products of 8-bit floats are summed as floats.
#include <cmath>

#include "kernels/common/direct_conv.h"
#include "kernels/common/function_kernel.h"
#include "kernels/common/operations.h"
#include "kernels/common/small_types.h"
#include "kernels/common/support.h"
#include "kernels/integer/conv_integer.h"
#include "kernels/integer/integer_gemm.h"
#include "kernels/integer/matmul_integer.h"
#include "kernels/matmul/matmul.h"
#include "kernels/quantized/quantize.h"
#include "runtime/memory.h"
#include "runtime/parallel.h"

namespace backplane::cpu {

namespace {

using Bytes = TypeList<int8_t, uint8_t>;
constexpr bp_dtype_set_t kBytes = set_of(Bytes{});
constexpr bp_dtype_set_t kFloat = just(BP_DTYPE_FLOAT);
constexpr bp_dtype_set_t kScales = kFloat | just(BP_DTYPE_FLOAT16) | just(BP_DTYPE_BFLOAT16);
constexpr bp_dtype_set_t kFactors = kBytes | just(BP_DTYPE_FLOAT8E4M3FN) | just(BP_DTYPE_FLOAT8E4M3FNUZ) |
                                    just(BP_DTYPE_FLOAT8E5M2) | just(BP_DTYPE_FLOAT8E5M2FNUZ);

// A zero point or scale: one value for all, or one for each row, column or channel; `fallback` if the tensor is absent.
template <class T>
class PerChannel {
 public:
  PerChannel(const Tensor& tensor, T fallback)
      : values_(tensor.present() ? static_cast<size_t>(tensor.shape.elements()) : 1, fallback) {
    if (!tensor.present()) return;
    if ((kFactors >> tensor.dtype & 1) != 0) {
      for (size_t i = 0; i < values_.size(); ++i)
        values_[i] = static_cast<T>(decode_bits(tensor.dtype, tensor.as<uint8_t>()[i]));
      return;
    }
    dispatch<TypeList<float, Half, BFloat16>>(tensor.dtype, [&](auto tag) {
      const auto* data = tensor.as<typename decltype(tag)::type>();
      for (size_t i = 0; i < values_.size(); ++i) values_[i] = static_cast<T>(data[i]);
    });
  }
  T operator[](int64_t channel) const {
    return values_[values_.size() == 1 ? 0 : static_cast<size_t>(channel) % values_.size()];
  }

 private:
  std::vector<T> values_;
};

// The input slots of the operands; -1 if the operator has no such input.
struct Slots {
  int x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias;
};
constexpr Slots kInteger{0, -1, 2, 1, -1, 3, -1, -1, -1};
constexpr Slots kLinear{0, 1, 2, 3, 4, 5, 6, 7, 8};

Tensor pick(Tensors tensors, int slot) {
  return slot < 0 ? Tensor{} : at(tensors, static_cast<size_t>(slot));
}

// For an element of the result: the indices of the scales and zero points of x, w and y.
struct Indices {
  int64_t x, w, y;
};

// Stores sums in the result, unchanged or quantized.
class Output {
 public:
  Output(const Slots& slots, Tensors in, const Tensor& y)
      : scaled_(slots.y_scale >= 0),
        y_(y),
        x_scale_(pick(in, slots.x_scale), 1),
        w_scale_(pick(in, slots.w_scale), 1),
        y_scale_(pick(in, slots.y_scale), 1),
        zero_(pick(in, slots.y_zero), 0) {}

  template <class Sum>
  void put(const Indices& indices, int64_t i, Sum sum) const {
    if (!scaled_) {
      y_.as<int32_t>()[i] = static_cast<int32_t>(sum);
      return;
    }
    float value = static_cast<float>(sum) * (x_scale_[indices.x] * w_scale_[indices.w] / y_scale_[indices.y]);
    if ((kBytes >> y_.dtype & 1) == 0) {
      y_.as<uint8_t>()[i] = encode_bits(y_.dtype, value + zero_[indices.y], {});
      return;
    }
    value = std::nearbyint(value) + zero_[indices.y];
    if (y_.dtype == BP_DTYPE_INT8)
      y_.as<int8_t>()[i] = saturate<int8_t>(value);
    else
      y_.as<uint8_t>()[i] = saturate<uint8_t>(value);
  }

 private:
  bool scaled_;
  Tensor y_;
  PerChannel<float> x_scale_, w_scale_, y_scale_, zero_;
};

std::vector<float> as_floats(const Tensor& tensor) {
  require_memory(tensor.shape.elements(), sizeof(float));
  std::vector<float> values(static_cast<size_t>(tensor.shape.elements()));
  load_floats(tensor.dtype, tensor.data, 0, values.data(), tensor.shape.elements());
  return values;
}

// Calls f(x, w, zero) with typed pointers to both operands and a zero of the sums' type. Converts both operands to
// float unless both are integers.
template <class F>
void with_types(const Tensor& x, const Tensor& w, const F& f) {
  if ((kBytes >> x.dtype & 1) == 0 || (kBytes >> w.dtype & 1) == 0) {
    const std::vector<float> x_values = as_floats(x), w_values = as_floats(w);
    f(x_values.data(), w_values.data(), 0.0f);
    return;
  }
  dispatch<Bytes>(x.dtype, [&](auto x_tag) {
    dispatch<Bytes>(w.dtype, [&](auto w_tag) {
      f(x.as<typename decltype(x_tag)::type>(), w.as<typename decltype(w_tag)::type>(), int32_t{0});
    });
  });
}

// Returns an error message if a zero point or scale has the wrong number of elements, otherwise nullopt.
std::optional<std::string> check_quantization(Tensors inputs, std::initializer_list<int> slots, int64_t channels,
                                              int64_t batches = 1) {
  for (int slot : slots) {
    if (auto why = check_zero_point(pick(inputs, slot), "input " + std::to_string(slot), channels, batches)) return why;
  }
  return std::nullopt;
}

// Plans a product of 8-bit integers, computed in tiles by IntegerGemm. Output::put stores each sum in the result.
template <const Slots& kSlots>
Plan plan_integer_gemm(const PlanContext& context, const MatMulSize& size, const Tensor& b, PackedWeights& packed) {
  IntegerGemm products(context.threads, size);
  products.pack(packed, b);
  const bool is_packed = products.is_packed();
  const int64_t sums_bytes = align_up(4 * size.shape.elements()), scratch = sums_bytes + products.scratch_bytes();
  Plan plan =
      make_plan({size.shape},
                [products = std::move(products), sums_bytes](Tensors in, Tensors out, void* memory) {
                  const MatMulSize& s = products.size();
                  const Output output(kSlots, in, out[0]);
                  const ZeroPointVector a_zeros(pick(in, kSlots.x_zero)), b_zeros(pick(in, kSlots.w_zero));
                  auto* sums = static_cast<int32_t*>(memory);
                  products.run(in[kSlots.x], in[kSlots.w], {a_zeros.values(), b_zeros.values()}, sums,
                               static_cast<std::byte*>(memory) + sums_bytes, [&](const SumsPart& part) {
                                 const int64_t batch = part.batch;
                                 const int64_t first = part.batch * s.m, a_row = s.a_offsets[batch] * s.m,
                                               b_column = s.b_offsets[batch] * s.n;
                                 for (int64_t row = part.first_row; row < part.last_row; ++row) {
                                   for (int64_t column = part.first_column; column < part.last_column; ++column) {
                                     const int64_t at = (first + row) * s.n + column;
                                     output.put({a_row + row, b_column + column, first + row}, at, sums[at]);
                                   }
                                 }
                               });
                },
                {.scratch_bytes = scratch});
  if (is_packed) plan.packed = kSlots.w;
  return plan;
}

template <const Slots& kSlots>
std::unique_ptr<Kernel> create_matmul(const Node&) {
  return make_kernel([packed = std::make_shared<PackedWeights>()](const PlanContext& context, Tensors inputs) -> Plan {
    const Shape& a = inputs[kSlots.x].shape;
    std::string error;
    std::optional<MatMulSize> size = matmul_size(a, inputs[kSlots.w].shape, &error);
    if (!size) return fail(error);
    const Shape& b = inputs[kSlots.w].shape;
    const int64_t rows = a.rank() > 1 ? a[a.rank() - 2] : 1;
    const int64_t a_batches = a.elements(0, std::max(0, a.rank() - 2)),
                  b_batches = b.elements(0, std::max(0, b.rank() - 2));
    const int64_t y_batches = size->shape.elements() / std::max<int64_t>(1, rows * size->n);
    if (auto why = check_quantization(inputs, {kSlots.x_scale, kSlots.x_zero}, rows, a_batches)) return fail(*why);
    if (auto why = check_quantization(inputs, {kSlots.w_scale, kSlots.w_zero}, size->n, b_batches)) return fail(*why);
    if (auto why = check_quantization(inputs, {kSlots.y_scale, kSlots.y_zero}, rows, y_batches)) return fail(*why);
    const bool are_bytes = (kBytes >> inputs[kSlots.x].dtype & kBytes >> inputs[kSlots.w].dtype & 1) != 0;
    if (are_bytes && !context.reference) return plan_integer_gemm<kSlots>(context, *size, inputs[kSlots.w], *packed);
    Shape shape = size->shape;
    return make_plan({shape}, [s = *size](Tensors in, Tensors out) {
      Output output(kSlots, in, out[0]);
      with_types(in[kSlots.x], in[kSlots.w], [&](auto* a_data, auto* b_data, auto nothing) {
        using Sum = decltype(nothing);
        PerChannel<Sum> a_zero(pick(in, kSlots.x_zero), 0);
        PerChannel<Sum> b_zero(pick(in, kSlots.w_zero), 0);
        for (int64_t i = 0; i < s.a_offsets.size(); ++i) {
          // Zero points and scales are indexed by rows and columns that are counted over all matrices of the batch.
          const int64_t a_row = s.a_offsets[i] * s.m, b_column = s.b_offsets[i] * s.n;
          const int64_t y_row = i * s.m;
          multiply<Sum>(
              s.m, s.n, s.k,
              [&, p = a_data + a_row * s.k](int64_t row, int64_t at) { return p[at] - a_zero[a_row + row]; },
              [&, p = b_data + b_column * s.k](int64_t column, int64_t at) {
                return p[at] - b_zero[b_column + column];
              },
              [&](int64_t row, int64_t column, int64_t at, Sum sum) {
                output.put({a_row + row, b_column + column, y_row + row}, y_row * s.n + at, sum);
              });
        }
      });
    });
  });
}

template <const Slots& kSlots>
std::unique_ptr<Kernel> create_conv(const Node& node) {
  return make_kernel([attributes = WindowAttributes(node),
                      groups = node.attr("group", int64_t{1})](Tensors inputs) -> Plan {
    std::string error;
    const Shape& x = inputs[kSlots.x].shape;
    const Shape& w = inputs[kSlots.w].shape;
    std::optional<ConvSize> size = conv_size(x, w, groups, &error);
    if (!size) return fail(error);
    std::optional<Window> window = make_window(attributes, x, w.span().subspan(2), &error);
    if (!window) return fail(error);
    if (auto why = check_quantization(inputs, {kSlots.w_scale, kSlots.w_zero}, size->out_channels)) return fail(*why);
    if (auto why = check_quantization(inputs, {kSlots.x_scale, kSlots.x_zero, kSlots.y_scale, kSlots.y_zero}, 1))
      return fail(*why);
    if (Tensor bias = pick(inputs, kSlots.bias); bias.present() && bias.shape.elements() != size->out_channels)
      return fail("the bias " + to_string(bias.shape) + " does not fit " + std::to_string(size->out_channels) +
                  " channels");
    return make_plan({window->output_shape(size->batch, size->out_channels)},
                     [s = *size, win = *window](Tensors in, Tensors out) {
                       PerChannel<int32_t> x_zero(pick(in, kSlots.x_zero), 0);
                       PerChannel<int32_t> w_zero(pick(in, kSlots.w_zero), 0);
                       Output output(kSlots, in, out[0]);
                       Tensor bias = pick(in, kSlots.bias);
                       with_types(in[kSlots.x], in[kSlots.w], [&](auto* x_data, auto* w_data, auto) {
                         direct_conv<int32_t>(
                             s, win, [&](int64_t i) { return x_data[i] - x_zero[0]; },
                             [&](int64_t channel, int64_t i) { return w_data[i] - w_zero[channel]; },
                             [&](int64_t channel, int64_t i, int32_t sum) {
                               output.put({0, channel, 0}, i, bias.present() ? sum + bias.as<int32_t>()[channel] : sum);
                             });
                       });
                     });
  });
}

std::unique_ptr<Kernel> create_integer_matmul(const Node& node) {
  return make_matmul_integer(create_matmul<kInteger>(node));
}

std::unique_ptr<Kernel> create_integer_conv(const Node& node) {
  return make_conv_integer(node, create_conv<kInteger>(node));
}

Verdict supports_integer_matmul(const Node& node) {
  return accepts(node, 2, {kBytes, kBytes, kBytes, kBytes});
}

Verdict supports_integer_conv(const Node& node) {
  Verdict v = supports_integer_matmul(node);
  return v ? check_window(node) : v;
}

Verdict supports_linear_matmul(const Node& node) {
  return accepts(node, 8, {kFactors, kScales, kFactors, kFactors, kScales, kFactors, kScales, kFactors});
}

Verdict supports_linear_conv(const Node& node) {
  Verdict v = accepts(node, 8, {kBytes, kFloat, kBytes, kBytes, kFloat, kBytes, kFloat, kBytes, just(BP_DTYPE_INT32)});
  return v ? check_window(node) : v;
}

}  // namespace

[[gnu::cold]] std::span<const Row> quantized_rows() {
  static constexpr Row kRows[] = {
      Row{"", "MatMulInteger", 10, supports_integer_matmul, create_integer_matmul}.costing(product_operations),
      Row{"", "ConvInteger", 10, supports_integer_conv, create_integer_conv}.costing(conv_operations<1>),
      Row{"", "QLinearMatMul", 10, supports_linear_matmul, create_matmul<kLinear>}.costing(product_operations),
      Row{"", "QLinearConv", 10, supports_linear_conv, create_conv<kLinear>}.costing(conv_operations<3>),
  };
  return kRows;
}

}  // namespace backplane::cpu
