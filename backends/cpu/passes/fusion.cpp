// SPDX-License-Identifier: Apache-2.0
#include "passes/fusion.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "kernels/conv/conv.h"
#include "kernels/post_op/post_op.h"
#include "passes/pattern_attention.h"
#include "passes/pattern_channel_shuffle.h"
#include "passes/pattern_layer_norm.h"
#include "passes/pattern_nhwc_conv.h"
#include "passes/pattern_scaled_product.h"

namespace backplane::cpu {

namespace {

// An operator whose kernel accepts post-operations. `inputs` is the number of its inputs; a tensor to be added follows
// them.
struct Head {
  std::string_view op_type;
  size_t inputs;
  int channel_axis;  // in the result; negative axes count from the end
};
constexpr Head kHeads[] = {
    {"Conv", 3, 1},
    {"BatchNormalization", 5, 1},
    {"Gemm", 3, -1},
    {"MatMul", 2, -1},
};
// Heads for integer products that find_scaled_product fused with their scale.
constexpr Head kScaledProducts[] = {
    {"MatMulInteger", 5, -1},
    {"ConvInteger", 6, 1},
};

// Heads for NhwcConv: first for a result with channels first, where find_nhwc_conv removed the transpose after the
// NhwcConv, then for a result with channels last.
constexpr Head kNhwcConvs[] = {{"NhwcConv", 3, 1}, {"NhwcConv", 3, -1}};

// An operator, and the function that looks for a pattern which contains it.
struct Pattern {
  std::string_view op_type;
  void (*find)(FusionGraph& graph, uint32_t call);
};
constexpr Pattern kPatterns[] = {
    {"Reshape", find_channel_shuffle},
    {"ReduceMean", find_layer_norm},
    {"Softmax", find_attention},
};

// A head and the calls that are fused with it so far.
struct Chain {
  const Head& head;
  Kernel* kernel;
  uint32_t first, last;  // indices of the first and the last call of the chain
  std::vector<uint32_t> reads;
  int rank;          // rank of the result
  int64_t channels;  // 0: no scale per channel is possible, for example because the weights are not known
  std::vector<uint32_t> joined;
};

class Fusion {
 public:
  explicit Fusion(FusionGraph& graph) : g_(graph), calls_(graph.calls()) {}

  void run() {
    for (uint32_t i = 0; i < calls_.size(); ++i) {
      const std::string_view op_type = g_.op_type(i);  // no two entries of the tables below name the same operator
      for (const Head& head : kHeads) {
        if (head.op_type == op_type) grow(head, i);
      }
      for (const Pattern& pattern : kPatterns) {
        if (pattern.op_type == op_type) pattern.find(g_, i);
      }
      for (const Head& head : kScaledProducts) {
        const uint32_t scaled = head.op_type == op_type ? find_scaled_product(g_, i) : BP_NONE;
        if (scaled != BP_NONE) grow(head, scaled);
      }
      if (const NhwcConvCall conv = find_nhwc_conv(g_, i); conv.call != BP_NONE)
        grow(kNhwcConvs[conv.channels_first ? 0 : 1], conv.call);
    }
  }

 private:
  using Rule = bool (Fusion::*)(Chain&);

  uint32_t result(const Chain& chain) const { return calls_[chain.last].outputs[0]; }

  void grow(const Head& head, uint32_t first) {
    Call& call = calls_[first];
    uint32_t value = call.outputs[0];
    if (value == BP_NONE || g_.value(value).dtype != BP_DTYPE_FLOAT) return;
    for (size_t i = 1; i < call.outputs.size(); ++i) {
      if (call.outputs[i] != BP_NONE) return;
    }
    Chain chain{head, call.kernel.get(), first, first, {call.inputs.begin(), call.inputs.end()}, g_.type(value).rank, 0,
                {}};
    chain.reads.resize(head.inputs, BP_NONE);
    chain.channels = channels(chain);
    if (head.op_type == "BatchNormalization" && !has_known_parameters(chain)) return;
    if (head.op_type == "MatMul" && chain.channels == 0) return;
    bool grown = true;
    while (grown) {
      grown = false;
      for (Rule rule : kRules) grown = grown || (this->*rule)(chain);
    }
    if (!pass_shuffle(chain) && chain.last == chain.first) return;
    Call& last = calls_[chain.last];
    last.kernel = std::move(call.kernel);
    last.row = call.row;
    last.node = call.node;
    last.reads = std::move(chain.reads);
    last.inputs = last.reads;
    call.skipped = chain.last != chain.first;
    for (uint32_t i : chain.joined) calls_[i].skipped = i != chain.last;
  }

  // A depthwise convolution may process channels in any order. If a channel shuffle precedes the depthwise convolution,
  // the convolution that reads the depthwise result can therefore do the shuffle instead.
  bool pass_shuffle(Chain& chain) {
    const FusionGraph::Shuffle* shuffle = g_.shuffle_of(chain.reads[0]);
    if (shuffle == nullptr || g_.is_output(chain.reads[0]) || g_.readers(chain.reads[0]).size() != 1) return false;
    if (chain.head.op_type != "Conv" || chain.channels == 0 || chain.reads.size() != chain.head.inputs) return false;
    if (g_.value(chain.reads[1]).shape[1] != 1 || g_.node(chain.first).attr("group", int64_t{1}) != chain.channels)
      return false;
    const uint32_t next = g_.sole_reader(result(chain), {"Conv"});
    if (next == BP_NONE || calls_[next].inputs[0] != result(chain) || !g_.known(calls_[next].inputs[1]) ||
        g_.value(calls_[next].outputs[0]).dtype != BP_DTYPE_FLOAT)
      return false;
    Kernel& reader = *calls_[next].kernel;
    if (!skip_shuffle(reader, shuffle->groups, false)) return false;
    if (!skip_shuffle(*chain.kernel, shuffle->groups, true)) {
      skip_shuffle(reader, 1, false);
      return false;
    }
    chain.reads[0] = shuffle->source;
    calls_[shuffle->call].skipped = true;
    return true;
  }

  bool has_known_parameters(const Chain& chain) const {
    return chain.rank >= 2 && std::all_of(chain.reads.begin() + 1, chain.reads.end(),
                                          [&](uint32_t value) { return value != BP_NONE && g_.known(value); });
  }

  // Returns the number of channels, or 0 if they cannot be scaled and shifted.
  int64_t channels(const Chain& chain) const {
    if (!g_.known(chain.reads[1])) return 0;
    const Shape& weights = g_.value(chain.reads[1]).shape;
    if (chain.head.op_type == "MatMulInteger") return weights.rank() == 2 ? weights[1] : 0;
    if (chain.head.op_type == "ConvInteger") return weights[0];
    bool bias_known = chain.reads.size() < 3 || chain.reads[2] == BP_NONE || g_.known(chain.reads[2]);
    if (chain.head.op_type == "Gemm" || !bias_known) return 0;
    if (chain.head.op_type == "Conv" || chain.head.op_type == "NhwcConv")
      return weights.rank() == chain.rank ? weights[0] : 0;
    if (chain.head.op_type == "MatMul") return weights.rank() == 2 ? weights[1] : 0;
    return weights.elements();
  }

  // Returns a constant as one number per channel of the chain's result. Returns an empty vector if the value is not
  // known or does not fit.
  std::vector<float> per_channel(const Chain& chain, uint32_t value) const {
    if (value == BP_NONE || !g_.known(value) || chain.channels == 0 || chain.rank <= 0) return {};
    const Tensor& t = g_.value(value);
    if (t.dtype != BP_DTYPE_FLOAT || t.data == nullptr || t.shape.rank() > chain.rank) return {};
    const int64_t elements = t.shape.elements();
    if (elements == 1) return std::vector<float>(static_cast<size_t>(chain.channels), *t.as<float>());
    const int from_end = chain.head.channel_axis < 0 ? -chain.head.channel_axis : chain.rank - chain.head.channel_axis;
    if (elements != chain.channels || t.shape.rank() < from_end || t.shape[t.shape.rank() - from_end] != elements)
      return {};
    return {t.as<float>(), t.as<float>() + elements};
  }

  bool join(Chain& chain, std::initializer_list<uint32_t> calls, PostOp op) {
    if (!chain.kernel->append(std::move(op))) return false;
    take(chain, calls);
    return true;
  }
  // Adds calls to the chain; the last of them computes the chain's result.
  void take(Chain& chain, const std::vector<uint32_t>& calls) {
    for (uint32_t i : calls) g_.take(i);
    chain.joined.insert(chain.joined.end(), calls.begin(), calls.end());
    chain.last = calls.back();
  }
  bool join(Chain& chain, std::initializer_list<uint32_t> calls, Activation::Function function, float alpha = 0,
            float beta = 0) {
    return join(chain, calls, {.kind = PostOp::kActivation, .activation = {function, alpha, beta}});
  }

  // Whether the calls leave the rank of the chain's result unchanged. A constant of extents [1,…,1] may increase it.
  bool keep_rank(const Chain& chain, std::span<const uint32_t> calls) const {
    return std::ranges::all_of(calls, [&](uint32_t call) {
      return std::ranges::all_of(calls_[call].inputs, [&](uint32_t value) {
        return value == BP_NONE || !g_.known(value) || g_.value(value).shape.rank() <= std::max(1, chain.rank);
      });
    });
  }

  // ---- The rules

  bool batch_normalization(Chain& chain) {
    uint32_t next = g_.sole_reader(result(chain), {"BatchNormalization"});
    if (next == BP_NONE || chain.channels == 0 || chain.head.channel_axis != 1) return false;
    const Call& call = calls_[next];
    if (call.inputs[0] != result(chain) || g_.node(next).attr("training_mode", int64_t{0}) != 0) return false;
    const float* parts[4];  // scale, bias, mean, variance
    for (size_t i = 0; i < 4; ++i) {
      uint32_t value = call.inputs[i + 1];
      if (!g_.known(value) || g_.value(value).dtype != BP_DTYPE_FLOAT ||
          g_.value(value).shape.elements() != chain.channels)
        return false;
      parts[i] = g_.value(value).as<float>();
    }
    PostOp op;
    const double epsilon = static_cast<double>(g_.node(next).attr("epsilon", 1e-5f));
    for (int64_t c = 0; c < chain.channels; ++c) {
      double factor = static_cast<double>(parts[0][c]) / std::sqrt(static_cast<double>(parts[3][c]) + epsilon);
      if (!std::isfinite(static_cast<float>(factor))) return false;  // infinity times 0 would be NaN
      op.scale.push_back(static_cast<float>(factor));
      op.shift.push_back(
          static_cast<float>(static_cast<double>(parts[1][c]) - static_cast<double>(parts[2][c]) * factor));
    }
    return join(chain, {next}, std::move(op));
  }

  bool scale_or_shift(Chain& chain) {
    uint32_t value = result(chain);
    uint32_t next = g_.sole_reader(value, {"Add", "Sub", "Mul", "Div"});
    if (next == BP_NONE) return false;
    std::vector<float> constant = per_channel(chain, g_.other(next, value));
    if (constant.empty()) return false;
    std::string_view op_type = g_.node(next).op_type();
    bool reversed = calls_[next].inputs[0] != value;
    if (op_type == "Div" && reversed) return false;
    PostOp op;
    for (float c : constant) {
      op.scale.push_back(op_type == "Mul" ? c : op_type == "Div" ? 1 / c : op_type == "Sub" && reversed ? -1.0f : 1.0f);
      if (!std::isfinite(op.scale.back())) return false;  // infinity times a shift of 0 would be NaN
      op.shift.push_back(op_type == "Add" || (op_type == "Sub" && reversed) ? c : op_type == "Sub" ? -c : 0.0f);
    }
    return join(chain, {next}, std::move(op));
  }

  bool residual(Chain& chain) {
    const bool adds = chain.head.op_type == "Conv" || chain.head.op_type == "NhwcConv" ||
                      chain.head.op_type == "MatMul" || chain.head.op_type == "MatMulInteger";
    if (!adds || chain.reads.size() != chain.head.inputs) return false;
    uint32_t value = result(chain);
    uint32_t next = g_.sole_reader(value, {"Add", "Sum"});
    if (next == BP_NONE) return false;
    uint32_t summand = g_.other(next, value);
    if (summand == BP_NONE || g_.known(summand) || !g_.same_extents(value, summand)) return false;
    if (!join(chain, {next}, {.kind = PostOp::kAdd})) return false;
    chain.reads.push_back(summand);
    return true;
  }

  bool activation(Chain& chain) {
    uint32_t value = result(chain);
    uint32_t next = g_.sole_reader(
        value, {"Relu", "LeakyRelu", "Clip", "Sigmoid", "Tanh", "Elu", "HardSigmoid", "HardSwish", "Swish", "Gelu"});
    if (next == BP_NONE || calls_[next].inputs[0] != value) return false;
    Node n = g_.node(next);
    std::string_view op = n.op_type();
    if (op == "Relu") return join(chain, {next}, Activation::kRelu);
    if (op == "LeakyRelu") return join(chain, {next}, Activation::kLeakyRelu, n.attr("alpha", 0.01f));
    if (op == "Sigmoid") return join(chain, {next}, Activation::kSigmoid);
    if (op == "Tanh") return join(chain, {next}, Activation::kTanh);
    if (op == "Elu") return join(chain, {next}, Activation::kElu, n.attr("alpha", 1.0f));
    if (op == "HardSwish") return join(chain, {next}, Activation::kHardSwish);
    if (op == "Swish") return join(chain, {next}, Activation::kSwish, n.attr("alpha", 1.0f));
    if (op == "Gelu") {
      const bool exact = n.attr("approximate", "none") == "none";
      return join(chain, {next}, exact ? Activation::kGelu : Activation::kGeluTanh);
    }
    if (op == "HardSigmoid")
      return join(chain, {next}, Activation::kHardSigmoid, n.attr("alpha", 0.2f), n.attr("beta", 0.5f));
    auto bound = [&](size_t slot, float none) {
      std::span<const uint32_t> in = calls_[next].inputs;
      return slot < in.size() && in[slot] != BP_NONE ? g_.known_scalar(in[slot]) : std::optional<float>(none);
    };
    std::optional<float> low = bound(1, -std::numeric_limits<float>::infinity());
    std::optional<float> high = bound(2, std::numeric_limits<float>::infinity());
    return low && high && !std::isnan(*low) && !std::isnan(*high) &&
           join(chain, {next}, Activation::kClip, *low, *high);
  }

  // x · gate(x), where the gate is Sigmoid or HardSigmoid.
  bool gate(Chain& chain) {
    uint32_t x = result(chain);
    if (g_.is_output(x) || g_.readers(x).size() != 2) return false;
    for (uint32_t gate : g_.readers(x)) {
      if (!g_.is(gate, {"Sigmoid", "HardSigmoid"})) continue;
      uint32_t product = g_.sole_reader(calls_[gate].outputs[0], {"Mul"});
      if (product == BP_NONE || !g_.reads(product, x) || g_.other(product, x) != calls_[gate].outputs[0]) return false;
      Node n = g_.node(gate);
      if (n.op_type() == "Sigmoid") return join(chain, {gate, product}, Activation::kSwish, 1.0f);
      bool usual = std::fabs(n.attr("alpha", 0.2f) - 1.0f / 6) < 1e-6f && n.attr("beta", 0.5f) == 0.5f;
      return usual && join(chain, {gate, product}, Activation::kHardSwish);
    }
    return false;
  }

  // x · Clip(x + 3, 0, 6) / 6.
  bool hard_swish(Chain& chain) {
    uint32_t x = result(chain);
    if (g_.is_output(x) || g_.readers(x).size() != 2) return false;
    for (uint32_t add : g_.readers(x)) {
      if (!g_.is(add, {"Add"}) || g_.known_scalar(g_.other(add, x)) != 3.0f) continue;
      uint32_t clip = g_.sole_reader(calls_[add].outputs[0], {"Clip"});
      if (clip == BP_NONE || calls_[clip].inputs.size() != 3 || g_.known_scalar(calls_[clip].inputs[1]) != 0.0f ||
          g_.known_scalar(calls_[clip].inputs[2]) != 6.0f)
        return false;
      uint32_t product = g_.sole_reader(calls_[clip].outputs[0], {"Mul"});
      if (product == BP_NONE || !g_.reads(product, x) || g_.other(product, x) != calls_[clip].outputs[0]) return false;
      uint32_t divided = g_.sole_reader(calls_[product].outputs[0], {"Div"});
      if (divided == BP_NONE || calls_[divided].inputs[0] != calls_[product].outputs[0] ||
          g_.known_scalar(calls_[divided].inputs[1]) != 6.0f)
        return false;
      const uint32_t calls[] = {add, clip, product, divided};
      return keep_rank(chain, calls) && join(chain, {add, clip, product, divided}, Activation::kHardSwish);
    }
    return false;
  }

  // x · (1 + erf(x / √2)) / 2 as exporters write it, or its approximation with tanh(√(2/π) · (x + 0.044715 · x³)) in
  // place of erf(x / √2).
  bool gelu(Chain& chain) {
    const uint32_t x = result(chain);
    if (g_.is_output(x) || g_.readers(x).size() < 2) return false;
    std::vector<uint32_t> joined;
    auto follow = [&](uint32_t value, std::initializer_list<std::string_view> op_types) {
      joined.push_back(value == BP_NONE ? BP_NONE : g_.sole_reader(value, op_types));
      return joined.back() == BP_NONE ? BP_NONE : calls_[joined.back()].outputs[0];
    };
    auto with = [&](double constant) {  // whether the last call has this constant as an operand
      const uint32_t call = joined.back();
      if (call == BP_NONE) return false;
      for (uint32_t value : calls_[call].inputs) {
        if (g_.is_scalar(value, constant)) return calls_[call].inputs.size() == 2;
      }
      return false;
    };
    for (uint32_t first : g_.readers(x)) {
      joined = {first};
      uint32_t value = calls_[first].outputs[0];
      Activation::Function function = Activation::kGelu;
      if ((g_.is(first, {"Div"}) && calls_[first].inputs[0] == x && with(std::numbers::sqrt2)) ||
          (g_.is(first, {"Mul"}) && with(1 / std::numbers::sqrt2))) {
        value = follow(value, {"Erf"});
        if (g_.readers(x).size() != 2) continue;
      } else if (g_.is(first, {"Pow"}) && calls_[first].inputs[0] == x && g_.is_scalar(calls_[first].inputs[1], 3)) {
        function = Activation::kGeluTanh;
        value = follow(value, {"Mul"});
        if (!with(0.044715)) continue;
        value = follow(value, {"Add"});
        if (value == BP_NONE || !g_.reads(joined.back(), x)) continue;
        value = follow(value, {"Mul"});
        if (!with(std::sqrt(2 / std::numbers::pi))) continue;
        value = follow(value, {"Tanh"});
        if (g_.readers(x).size() != 3) continue;
      } else {
        continue;
      }
      value = follow(value, {"Add"});
      if (value == BP_NONE || !with(1)) continue;
      // Multiplications by 0.5 and by x, in any order.
      value = follow(value, {"Mul"});
      if (value == BP_NONE) continue;
      if (g_.reads(joined.back(), x) || with(0.5)) {
        const bool halves = !g_.reads(joined.back(), x);
        value = follow(value, {"Mul"});
        if (value == BP_NONE || !(halves ? g_.reads(joined.back(), x) : with(0.5))) continue;
      } else {
        const uint32_t last = joined.back();
        const uint32_t half = g_.producer(g_.other(last, calls_[joined[joined.size() - 2]].outputs[0]), {"Mul"});
        if (half == BP_NONE || !g_.reads(half, x) || !g_.is_scalar(g_.other(half, x), 0.5) ||
            g_.sole_reader(calls_[half].outputs[0], {"Mul"}) != last)
          continue;
        joined.insert(joined.end() - 1, half);
      }
      if (!keep_rank(chain, joined) || !chain.kernel->append({.kind = PostOp::kActivation, .activation = {function}}))
        return false;
      take(chain, joined);
      return true;
    }
    return false;
  }
  // Tried in this order, repeatedly, until none applies.
  static constexpr Rule kRules[] = {&Fusion::batch_normalization,
                                    &Fusion::scale_or_shift,
                                    &Fusion::residual,
                                    &Fusion::activation,
                                    &Fusion::gate,
                                    &Fusion::hard_swish,
                                    &Fusion::gelu};

  FusionGraph& g_;
  std::span<Call> calls_;
};

}  // namespace

void fuse(const bp_graph_t& graph, std::span<Call> calls, std::span<const Tensor> values,
          const std::vector<bool>& known) {
  FusionGraph view(graph, calls, values, known);
  Fusion(view).run();
}

}  // namespace backplane::cpu
