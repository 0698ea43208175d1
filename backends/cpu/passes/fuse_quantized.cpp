// SPDX-License-Identifier: Apache-2.0
#include "passes/fuse_quantized.h"

#include <cmath>
#include <limits>
#include <map>

#include "kernels/post_op/post_op.h"
#include "kernels/q8/q8_conv.h"
#include "kernels/q8/q8_pool.h"
#include "kernels/q8/q8_sum.h"
#include "passes/fusion_graph.h"

namespace backplane::cpu {

namespace {

bool is_byte(bp_dtype_t dtype) {
  return dtype == BP_DTYPE_INT8 || dtype == BP_DTYPE_UINT8;
}

bool names(const Call& call, std::string_view op_type) {
  return call.row->op_type == op_type && call.row->domain.empty();
}

class QuantizedFusion {
 public:
  explicit QuantizedFusion(FusionGraph& graph) : g_(graph) {}

  void run() {
    for (uint32_t i = 0; i < g_.calls().size(); ++i) {
      if (g_.is(i, {"QuantizeLinear"})) find(i);
      if (g_.is(i, {"QLinearConv", "QLinearMatMul"})) linear(i);
    }
    drop_unread();
  }

 private:
  // Calls that follow each other: `head`, an optional activation, and the QuantizeLinear of the result.
  struct Chain {
    uint32_t head;
    std::vector<uint32_t> calls;  // in order; the first is `head`
    std::optional<Activation> activation;
    Quantization result;
  };
  // The input of a DequantizeLinear.
  struct QuantizedValue {
    uint32_t value;  // index of the value
    Quantization quantization;
  };
  // Known weights in quantized form, with one zero point, and with one scale or one per output channel.
  struct Weights {
    uint32_t value;
    int32_t zero;
    std::vector<float> scales;
  };
  using Rule = bool (QuantizedFusion::*)(const Chain&);
  struct Head {
    std::string_view op_type;
    Rule rule;
  };

  void find(uint32_t quantize) {
    const std::optional<Quantization> result = quantization(quantize, g_.result(quantize));
    if (!result) return;
    Chain chain{BP_NONE, {quantize}, {}, *result};
    uint32_t value = g_.call(quantize).inputs[0];
    for (;;) {
      if (value == BP_NONE || g_.value(value).dtype != BP_DTYPE_FLOAT || g_.is_output(value) ||
          g_.readers(value).size() != 1)
        return;
      const uint32_t act = chain.activation ? BP_NONE : g_.producer(value, {"Relu", "Clip"});
      if (act == BP_NONE) break;
      chain.activation = activation(act);
      if (!chain.activation) return;
      chain.calls.insert(chain.calls.begin(), act);
      value = g_.call(act).inputs[0];
    }
    for (const Head& head : kHeads) {
      chain.head = g_.producer(value, {head.op_type});
      if (chain.head == BP_NONE) continue;
      chain.calls.insert(chain.calls.begin(), chain.head);
      (this->*head.rule)(chain);
      return;
    }
  }

  // ---- Known properties of the operands

  // Returns the quantization of an 8-bit `value` if its scale and zero point are single known numbers, else nullopt.
  std::optional<Quantization> parameters(uint32_t value, uint32_t scale_value, uint32_t zero_value) const {
    const std::optional<float> scale = g_.known_scalar(scale_value);
    if (!is_byte(g_.value(value).dtype) || !scale || !std::isnormal(*scale) || *scale < 0) return std::nullopt;
    Quantization q{g_.value(value).dtype, *scale, 0};
    if (zero_value == BP_NONE) return q;
    const Tensor& zero = g_.value(zero_value);
    if (!g_.known(zero_value) || zero.shape.elements() != 1 || zero.dtype != q.dtype) return std::nullopt;
    q.zero = q8_at(zero.data, q.is_signed(), 0);
    return q;
  }
  // Returns the quantization of the quantized `value` that a DequantizeLinear reads or a QuantizeLinear computes, else
  // nullopt.
  std::optional<Quantization> quantization(uint32_t call, uint32_t value) const {
    if (g_.node(call).attr("block_size", int64_t{0}) != 0) return std::nullopt;
    return parameters(value, input(call, 1), input(call, 2));
  }

  std::optional<QuantizedValue> quantized(uint32_t real) const {
    const uint32_t call = g_.producer(real, {"DequantizeLinear"});
    if (call == BP_NONE) return std::nullopt;
    const uint32_t value = g_.call(call).inputs[0];
    const std::optional<Quantization> q = quantization(call, value);
    if (!q || g_.known(value)) return std::nullopt;
    return QuantizedValue{value, *q};
  }

  // Returns the weights whose dequantized form is `real`, else nullopt. `axis` is the axis of the output channels.
  std::optional<Weights> weights(uint32_t real, int axis) const {
    const uint32_t call = g_.producer(real, {"DequantizeLinear"});
    if (call == BP_NONE || g_.node(call).attr("block_size", int64_t{0}) != 0) return std::nullopt;
    const int rank = g_.value(input(call, 0)).shape.rank();
    int64_t along = g_.node(call).attr("axis", int64_t{1});
    if (along < 0) along += rank;
    const bool is_one = g_.known(input(call, 1)) && g_.value(input(call, 1)).shape.elements() == 1;
    if (along != axis && !is_one) return std::nullopt;
    return weights(input(call, 0), input(call, 1), input(call, 2), axis);
  }
  std::optional<Weights> weights(uint32_t value, uint32_t scale_value, uint32_t zero_value, int axis) const {
    const Tensor &w = g_.value(value), &scale = g_.value(scale_value);
    if (!g_.known(value) || !g_.known(scale_value) || !is_byte(w.dtype) || scale.dtype != BP_DTYPE_FLOAT)
      return std::nullopt;
    const int64_t count = scale.shape.elements();
    if (w.shape.rank() <= axis || (count != 1 && count != w.shape[axis])) return std::nullopt;
    Weights result{value, 0, {scale.as<float>(), scale.as<float>() + count}};
    for (float s : result.scales) {
      if (!std::isnormal(s) || s < 0) return std::nullopt;
    }
    if (zero_value != BP_NONE) {
      const Tensor& zero = g_.value(zero_value);
      if (!g_.known(zero_value) || zero.dtype != w.dtype || zero.shape.elements() == 0) return std::nullopt;
      for (int64_t i = 0; i < zero.shape.elements(); ++i) {
        const int32_t z = q8_at(zero.data, w.dtype == BP_DTYPE_INT8, i);
        if (i != 0 && z != result.zero) return std::nullopt;
        result.zero = z;
      }
    }
    // Only with this zero point do all differences of weights from it fit in int8.
    if (result.zero != (w.dtype == BP_DTYPE_INT8 ? 0 : 128)) return std::nullopt;
    return result;
  }

  // Returns a known vector of real numbers, else nullopt. It may be the result of a DequantizeLinear of int32 values.
  std::optional<std::vector<double>> reals(uint32_t value) const {
    if (g_.known(value)) {
      const Tensor& t = g_.value(value);
      if (t.dtype != BP_DTYPE_FLOAT || t.data == nullptr) return std::nullopt;
      return std::vector<double>(t.as<float>(), t.as<float>() + t.shape.elements());
    }
    const uint32_t call = g_.producer(value, {"DequantizeLinear"});
    if (call == BP_NONE || g_.node(call).attr("block_size", int64_t{0}) != 0) return std::nullopt;
    std::span<const uint32_t> in = g_.call(call).inputs;
    const Tensor &q = g_.value(in[0]), &scale = g_.value(in[1]);
    if (!g_.known(in[0]) || !g_.known(in[1]) || q.dtype != BP_DTYPE_INT32 || scale.dtype != BP_DTYPE_FLOAT ||
        q.shape.rank() != 1)
      return std::nullopt;
    const int64_t count = q.shape.elements(), scales = scale.shape.elements();
    if (scales != 1 && scales != count) return std::nullopt;
    if (in.size() > 2 && in[2] != BP_NONE) {
      const Tensor& zero = g_.value(in[2]);
      if (!g_.known(in[2]) || zero.dtype != BP_DTYPE_INT32) return std::nullopt;
      for (int64_t i = 0; i < zero.shape.elements(); ++i) {
        if (zero.as<int32_t>()[i] != 0) return std::nullopt;
      }
    }
    std::vector<double> result;
    for (int64_t i = 0; i < count; ++i)
      result.push_back(static_cast<double>(q.as<int32_t>()[i]) *
                       static_cast<double>(scale.as<float>()[scales == 1 ? 0 : i]));
    return result;
  }

  std::optional<Activation> activation(uint32_t call) const {
    if (g_.node(call).op_type() == "Relu") return Activation{Activation::kRelu, 0, 0};
    std::span<const uint32_t> in = g_.call(call).inputs;
    Activation clip{Activation::kClip, -std::numeric_limits<float>::max(), std::numeric_limits<float>::max()};
    for (size_t slot = 1; slot < in.size(); ++slot) {
      if (in[slot] == BP_NONE) continue;
      const std::optional<float> bound = g_.known_scalar(in[slot]);
      if (!bound || !std::isfinite(*bound)) return std::nullopt;
      (slot == 1 ? clip.alpha : clip.beta) = *bound;
    }
    if (clip.alpha > clip.beta) return std::nullopt;
    return clip;
  }

  // ---- The rules

  bool product(const Chain& chain, int axis, uint32_t bias, auto&& make) {
    std::span<const uint32_t> in = g_.call(chain.head).inputs;
    const std::optional<QuantizedValue> x = quantized(in[0]);
    const std::optional<Weights> w = weights(in[1], axis);
    if (!x || !w || !is_fast(g_.node(chain.head), g_.value(w->value).shape)) return false;
    const int64_t channels = g_.value(w->value).shape[axis];
    Q8Product p{x->quantization, chain.result, w->zero, w->scales, {}, chain.activation};
    if (bias != BP_NONE) {
      std::optional<std::vector<double>> shift = reals(bias);
      if (!shift || (shift->size() != 1 && static_cast<int64_t>(shift->size()) != channels)) return false;
      if (shift->size() == 1) shift->resize(static_cast<size_t>(channels), shift->front());
      p.bias = std::move(*shift);
    }
    replace(chain, make(std::move(p)), {x->value, w->value});
    return true;
  }

  uint32_t input(uint32_t call, size_t slot) const {
    std::span<const uint32_t> in = g_.call(call).inputs;
    return slot < in.size() ? in[slot] : BP_NONE;
  }

  bool conv(const Chain& chain) {
    return product(chain, 0, input(chain.head, 2), [&](Q8Product p) {
      convs_[g_.result(chain.calls.back())] = {chain.head, chain.calls.back(), p};
      return make_q8_conv(g_.node(chain.head), std::move(p));
    });
  }

  bool gemm(const Chain& chain) {
    const Node node = g_.node(chain.head);
    if (node.attr("transA", int64_t{0}) != 0 || node.attr("alpha", 1.0f) != 1 || node.attr("beta", 1.0f) != 1)
      return false;
    const bool transposed = node.attr("transB", int64_t{0}) != 0;
    const uint32_t c = input(chain.head, 2);
    if (c != BP_NONE && g_.type(c).rank > 1) return false;
    return product(chain, transposed ? 0 : 1, c, [&](Q8Product p) { return make_q8_matmul(std::move(p), transposed); });
  }

  bool matmul(const Chain& chain) {
    const uint32_t b = input(chain.head, 1);
    if (g_.type(b).rank != 2) return false;
    return product(chain, 1, BP_NONE, [&](Q8Product p) { return make_q8_matmul(std::move(p), false); });
  }

  bool sum(const Chain& chain) {
    const uint32_t left = input(chain.head, 0), right = input(chain.head, 1);
    const std::optional<QuantizedValue> a = quantized(left), b = quantized(right);
    const bool rectifies = chain.activation.has_value();
    if (!a || !b || !g_.same_extents(left, right)) return false;
    if (rectifies && chain.activation->function != Activation::kRelu) return false;
    if (a->quantization.dtype != chain.result.dtype || b->quantization.dtype != chain.result.dtype) return false;
    const bool multiplies = g_.node(chain.head).op_type() == "Mul";
    if (!multiplies && (conv_adds(chain, left, *a, *b) || conv_adds(chain, right, *b, *a))) return true;
    replace(chain, make_q8_sum({a->quantization, b->quantization, chain.result, multiplies, rectifies}),
            {a->value, b->value});
    return true;
  }

  // Fuses the sum into the convolution that computes the operand `a`, whose dequantized form is `real`. Returns false
  // if anything but this sum uses `a` or `real`, or if the convolution cannot add `b`.
  bool conv_adds(const Chain& chain, uint32_t real, const QuantizedValue& a, const QuantizedValue& b) {
    const auto conv = convs_.find(a.value);
    if (conv == convs_.end() || g_.is_output(a.value) || g_.readers(a.value).size() != 1 || g_.is_output(real) ||
        g_.readers(real).size() != 1)
      return false;
    Q8Product p = conv->second.product;
    p.sum = {a.quantization, b.quantization, chain.result, false, chain.activation.has_value()};
    const Node node = g_.node(conv->second.head);
    Call& call = g_.call(conv->second.call);
    if (!takes_sum(node, p, g_.value(call.inputs[1]).shape)) return false;
    std::vector<uint32_t> operands = {call.inputs[0], call.inputs[1], b.value};
    Chain all = chain;
    all.head = conv->second.head;
    all.calls.insert(all.calls.begin(), conv->second.call);
    replace(all, make_q8_conv(node, std::move(p)), std::move(operands));
    return true;
  }

  bool max_pool(const Chain& chain) {
    const Call& call = g_.call(chain.head);
    const std::optional<QuantizedValue> x = quantized(call.inputs[0]);
    if (!x || chain.activation || !(x->quantization == chain.result) || call.outputs.size() > 1 ||
        !is_image(call.inputs[0]))
      return false;
    replace(chain, make_q8_max_pool(g_.node(chain.head), chain.result), {x->value});
    return true;
  }

  bool average_pool(const Chain& chain) {
    const Call& call = g_.call(chain.head);
    const std::optional<QuantizedValue> x = quantized(call.inputs[0]);
    if (!x || chain.activation || !is_image(call.inputs[0])) return false;
    replace(chain, make_q8_average_pool(g_.node(chain.head), x->quantization, chain.result), {x->value});
    return true;
  }

  // An operator that only moves elements can move quantized values, if its input and output have the same quantization.
  bool move(const Chain& chain) {
    Call& call = g_.call(chain.head);
    const std::optional<QuantizedValue> x = quantized(call.inputs[0]);
    if (!x || chain.activation || !(x->quantization == chain.result)) return false;
    std::vector<uint32_t> operands(call.inputs.begin(), call.inputs.end());
    operands[0] = x->value;
    replace(chain, std::move(call.kernel), std::move(operands));
    return true;
  }

  bool concat(const Chain& chain) {
    Call& call = g_.call(chain.head);
    if (chain.activation) return false;
    std::vector<uint32_t> operands;
    for (uint32_t value : call.inputs) {
      const std::optional<QuantizedValue> x = quantized(value);
      if (!x || !(x->quantization == chain.result)) return false;
      operands.push_back(x->value);
    }
    replace(chain, std::move(call.kernel), std::move(operands));
    return true;
  }

  // Replaces a QLinearConv or QLinearMatMul, which have scales and zero points as inputs.
  void linear(uint32_t call) {
    const Node node = g_.node(call);
    const bool is_conv = node.op_type() == "QLinearConv";
    const std::optional<Quantization> x = parameters(input(call, 0), input(call, 1), input(call, 2));
    const std::optional<Quantization> y = parameters(g_.result(call), input(call, 6), input(call, 7));
    const std::optional<Weights> w = weights(input(call, 3), input(call, 4), input(call, 5), is_conv ? 0 : 1);
    if (!x || !y || !w || g_.known(input(call, 0))) return;
    const Tensor& t = g_.value(w->value);
    if (!is_fast(node, t.shape)) return;
    if (!is_conv && t.shape.rank() != 2) return;
    Q8Product p{*x, *y, w->zero, w->scales, {}, {}};
    if (const uint32_t bias = input(call, 8); bias != BP_NONE) {
      const Tensor& b = g_.value(bias);
      if (!g_.known(bias) || b.dtype != BP_DTYPE_INT32 || b.shape.elements() != t.shape[0]) return;
      for (int64_t c = 0; c < t.shape[0]; ++c) {
        const float scale = w->scales[w->scales.size() == 1 ? 0 : static_cast<size_t>(c)];
        p.bias.push_back(static_cast<double>(b.as<int32_t>()[c]) * static_cast<double>(x->scale) *
                         static_cast<double>(scale));
      }
    }
    const uint32_t joined[] = {call};
    const uint32_t source = input(call, 0);
    g_.replace(joined, is_conv ? make_q8_conv(node, std::move(p)) : make_q8_matmul(std::move(p), false),
               {source, w->value});
  }

  static bool is_fast(const Node& node, const Shape& weights) {
    const bool is_conv = node.op_type() == "Conv" || node.op_type() == "QLinearConv";
    return is_conv ? has_fast_q8_conv(node, weights) : has_fast_q8_matmul();
  }

  bool is_image(uint32_t value) const {
    const int32_t rank = g_.type(value).rank;
    return rank >= 3 && rank <= 5;
  }

  void replace(const Chain& chain, std::unique_ptr<Kernel> kernel, std::vector<uint32_t> operands) {
    g_.replace(chain.calls, std::move(kernel), std::move(operands));
    g_.call(chain.calls.back()).row = g_.call(chain.head).row;
    g_.call(chain.calls.back()).node = g_.call(chain.head).node;
  }

  // Drops the DequantizeLinear calls without readers: those whose readers were replaced by fused calls, which read the
  // quantized values.
  void drop_unread() {
    std::vector<bool> read;
    auto mark = [&](uint32_t value) {
      if (value == BP_NONE) return;
      if (read.size() <= value) read.resize(value + 1);
      read[value] = true;
    };
    for (const Call& call : g_.calls()) {
      if (call.skipped) continue;
      for (uint32_t value : call.inputs) mark(value);
    }
    for (Call& call : g_.calls()) {
      if (call.skipped || !names(call, "DequantizeLinear")) continue;
      const uint32_t value = call.outputs[0];
      call.skipped = !g_.is_output(value) && (value >= read.size() || !read[value]);
    }
  }

  static constexpr Head kHeads[] = {
      {"Conv", &QuantizedFusion::conv},
      {"Gemm", &QuantizedFusion::gemm},
      {"MatMul", &QuantizedFusion::matmul},
      {"Add", &QuantizedFusion::sum},
      {"Mul", &QuantizedFusion::sum},
      {"MaxPool", &QuantizedFusion::max_pool},
      {"AveragePool", &QuantizedFusion::average_pool},
      {"GlobalAveragePool", &QuantizedFusion::average_pool},
      {"Concat", &QuantizedFusion::concat},
      {"Reshape", &QuantizedFusion::move},
      {"Flatten", &QuantizedFusion::move},
      {"Squeeze", &QuantizedFusion::move},
      {"Unsqueeze", &QuantizedFusion::move},
      {"Transpose", &QuantizedFusion::move},
      {"Slice", &QuantizedFusion::move},
      {"Gather", &QuantizedFusion::move},
      {"Identity", &QuantizedFusion::move},
  };

  // A fused convolution.
  struct Q8Conv {
    uint32_t head;  // the call of the convolution's node
    uint32_t call;  // the call that computes the convolution after fusion
    Q8Product product;
  };

  FusionGraph& g_;
  std::map<uint32_t, Q8Conv> convs_;  // by the value that the convolution computes
};

}  // namespace

void fuse_quantized(const bp_graph_t& graph, std::span<Call> calls, std::span<const Tensor> values,
                    const std::vector<bool>& known) {
  FusionGraph view(graph, calls, values, known);
  QuantizedFusion(view).run();
}

}  // namespace backplane::cpu
