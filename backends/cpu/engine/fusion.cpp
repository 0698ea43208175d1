// SPDX-License-Identifier: Apache-2.0
#include "engine/fusion.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/channel_shuffle.h"

namespace backplane::cpu {

namespace {

// A node that can do more to its result, and how many inputs its operator has: what is added comes behind them.
struct Head {
  std::string_view op_type;
  size_t inputs;
  int channel_axis;  // of the result; negative ones count from the end
};
constexpr Head kHeads[] = {
    {"Conv", 3, 1},
    {"BatchNormalization", 5, 1},
    {"Gemm", 3, -1},
    {"MatMul", 2, -1},
};

// A head and what was joined to it so far.
struct Chain {
  const Head& head;
  Kernel* kernel;
  uint32_t first, last;  // calls
  std::vector<uint32_t> reads;
  int rank;          // of the result
  int64_t channels;  // 0 where its channels cannot be scaled: the weights are not known
  std::vector<uint32_t> joined;
};

class Fusion {
 public:
  Fusion(const bp_graph_t& graph, std::span<Call> calls, std::span<const Tensor> values, const std::vector<bool>& known)
      : graph_(graph), calls_(calls), values_(values), known_(known), taken_(calls.size()) {
    read_first_.assign(values.size() + 1, 0);
    kept_.assign(values.size(), false);
    for (uint32_t o = 0; o < graph.output_count; ++o) kept_[graph.outputs[o]] = true;
    each_read([&](uint32_t value, uint32_t) { ++read_first_[value + 1]; });
    for (size_t v = 0; v < values.size(); ++v) read_first_[v + 1] += read_first_[v];
    readers_.resize(read_first_.back());
    std::vector<uint32_t> next(read_first_.begin(), read_first_.end());
    each_read([&](uint32_t value, uint32_t call) { readers_[next[value]++] = call; });
  }

  void run() {
    for (uint32_t i = 0; i < calls_.size(); ++i) {
      if (calls_[i].folded || taken_[i]) continue;
      for (const Head& head : kHeads) {
        if (node(i).domain().empty() && node(i).op_type() == head.op_type) grow(head, i);
      }
      if (is(i, {"Reshape"})) channel_shuffle(i);
    }
  }

 private:
  using Rule = bool (Fusion::*)(Chain&);

  Node node(uint32_t call) const { return Node(graph_, call); }
  template <class F>
  void each_read(const F& f) const {
    for (uint32_t i = 0; i < calls_.size(); ++i) {
      if (calls_[i].folded) continue;
      for (uint32_t value : calls_[i].inputs) {
        if (value != BP_NONE) f(value, i);
      }
    }
  }
  std::span<const uint32_t> readers(uint32_t value) const {
    return {readers_.data() + read_first_[value], read_first_[value + 1] - read_first_[value]};
  }
  uint32_t result(const Chain& chain) const { return calls_[chain.last].outputs[0]; }

  // The call that alone reads the value, if it is of one of these operators; else BP_NONE.
  uint32_t sole_reader(uint32_t value, std::initializer_list<std::string_view> op_types) const {
    std::span<const uint32_t> all = readers(value);
    if (kept_[value] || all.size() != 1) return BP_NONE;
    return is(all[0], op_types) ? all[0] : BP_NONE;
  }
  bool is(uint32_t call, std::initializer_list<std::string_view> op_types) const {
    Node n = node(call);
    return !taken_[call] && !calls_[call].folded && n.domain().empty() &&
           std::ranges::find(op_types, n.op_type()) != op_types.end();
  }
  // The operand of a call of two that is not `value`; BP_NONE where there are not two.
  uint32_t other(uint32_t call, uint32_t value) const {
    std::span<const uint32_t> in = calls_[call].inputs;
    if (in.size() != 2 || in[0] == in[1]) return BP_NONE;
    return in[0] == value ? in[1] : in[0];
  }
  std::optional<float> known_scalar(uint32_t value) const {
    if (value == BP_NONE || !known_[value]) return std::nullopt;
    const Tensor& t = values_[value];
    if (t.dtype != BP_DTYPE_FLOAT || t.shape.elements() != 1) return std::nullopt;
    return *t.as<float>();
  }

  void grow(const Head& head, uint32_t first) {
    Call& call = calls_[first];
    uint32_t value = call.outputs[0];
    if (value == BP_NONE || values_[value].dtype != BP_DTYPE_FLOAT) return;
    for (size_t i = 1; i < call.outputs.size(); ++i) {
      if (call.outputs[i] != BP_NONE) return;
    }
    Chain chain{head, call.kernel.get(), first, first, {call.inputs.begin(), call.inputs.end()}, type(value).rank, 0,
                {}};
    chain.reads.resize(head.inputs, BP_NONE);
    chain.channels = channels(chain);
    if (head.op_type == "BatchNormalization" && !has_known_parameters(chain)) return;
    bool grown = true;
    while (grown) {
      grown = false;
      for (Rule rule : kRules) grown = grown || (this->*rule)(chain);
    }
    if (chain.last == chain.first) return;
    Call& last = calls_[chain.last];
    last.kernel = std::move(call.kernel);
    last.node = call.node;
    last.reads = std::move(chain.reads);
    last.inputs = last.reads;
    call.folded = true;
    for (uint32_t i : chain.joined) calls_[i].folded = i != chain.last;
  }

  bool has_known_parameters(const Chain& chain) const {
    return chain.rank >= 2 && std::all_of(chain.reads.begin() + 1, chain.reads.end(),
                                          [&](uint32_t value) { return value != BP_NONE && known_[value]; });
  }

  // How many channels can be scaled and shifted.
  int64_t channels(const Chain& chain) const {
    bool bias_known = chain.reads.size() < 3 || chain.reads[2] == BP_NONE || known_[chain.reads[2]];
    if (chain.head.op_type == "Gemm" || !known_[chain.reads[1]] || !bias_known) return 0;
    const Shape& weights = values_[chain.reads[1]].shape;
    if (chain.head.op_type == "Conv") return weights.rank() == chain.rank ? weights[0] : 0;
    if (chain.head.op_type == "MatMul") return weights.rank() == 2 ? weights[1] : 0;
    return weights.elements();
  }

  const bp_type_t& type(uint32_t value) const { return *bp_graph_type(&graph_, bp_graph_value(&graph_, value)->type); }

  // Whether two values have the same extents in every run.
  bool same_extents(uint32_t a, uint32_t b) const {
    const bp_type_t &ta = type(a), &tb = type(b);
    if (ta.rank < 0 || ta.rank != tb.rank) return false;
    for (int32_t d = 0; d < ta.rank; ++d) {
      if (!same_extent(ta, d, tb, d)) return false;
    }
    return true;
  }
  bool same_extent(const bp_type_t& a, int32_t a_dim, const bp_type_t& b, int32_t b_dim) const {
    const bp_dim_t& da = graph_.dims[a.first_dim + static_cast<uint32_t>(a_dim)];
    const bp_dim_t& db = graph_.dims[b.first_dim + static_cast<uint32_t>(b_dim)];
    if (da.extent >= 0) return da.extent == db.extent;
    return da.symbol != BP_NONE && da.symbol == db.symbol && db.extent < 0;
  }

  // The constant as one number for each channel of the chain's result; empty if it is anything else.
  std::vector<float> per_channel(const Chain& chain, uint32_t value) const {
    if (value == BP_NONE || !known_[value] || chain.channels == 0 || chain.rank <= 0) return {};
    const Tensor& t = values_[value];
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
    for (uint32_t i : calls) taken_[i] = true;
    chain.joined.insert(chain.joined.end(), calls.begin(), calls.end());
    chain.last = *(calls.end() - 1);
    return true;
  }
  bool join(Chain& chain, std::initializer_list<uint32_t> calls, Activation::Function function, float alpha = 0,
            float beta = 0) {
    return join(chain, calls, {.kind = PostOp::kActivation, .activation = {function, alpha, beta}});
  }

  // ---- the rules
  // -----------------------------------------------------------------------------------------------------

  bool batch_normalization(Chain& chain) {
    uint32_t next = sole_reader(result(chain), {"BatchNormalization"});
    if (next == BP_NONE || chain.channels == 0 || chain.head.channel_axis != 1) return false;
    const Call& call = calls_[next];
    if (call.inputs[0] != result(chain) || node(next).attr("training_mode", int64_t{0}) != 0) return false;
    const float* parts[4];  // scale, bias, mean, variance
    for (size_t i = 0; i < 4; ++i) {
      uint32_t value = call.inputs[i + 1];
      if (!known_[value] || values_[value].dtype != BP_DTYPE_FLOAT || values_[value].shape.elements() != chain.channels)
        return false;
      parts[i] = values_[value].as<float>();
    }
    PostOp op;
    const double epsilon = static_cast<double>(node(next).attr("epsilon", 1e-5f));
    for (int64_t c = 0; c < chain.channels; ++c) {
      double factor = static_cast<double>(parts[0][c]) / std::sqrt(static_cast<double>(parts[3][c]) + epsilon);
      op.scale.push_back(static_cast<float>(factor));
      op.shift.push_back(
          static_cast<float>(static_cast<double>(parts[1][c]) - static_cast<double>(parts[2][c]) * factor));
    }
    return join(chain, {next}, std::move(op));
  }

  bool scale_or_shift(Chain& chain) {
    uint32_t value = result(chain);
    uint32_t next = sole_reader(value, {"Add", "Sub", "Mul", "Div"});
    if (next == BP_NONE) return false;
    std::vector<float> constant = per_channel(chain, other(next, value));
    if (constant.empty()) return false;
    std::string_view op_type = node(next).op_type();
    bool reversed = calls_[next].inputs[0] != value;
    if (op_type == "Div" && reversed) return false;
    PostOp op;
    for (float c : constant) {
      op.scale.push_back(op_type == "Mul" ? c : op_type == "Div" ? 1 / c : op_type == "Sub" && reversed ? -1.0f : 1.0f);
      op.shift.push_back(op_type == "Add" || (op_type == "Sub" && reversed) ? c : op_type == "Sub" ? -c : 0.0f);
    }
    return join(chain, {next}, std::move(op));
  }

  bool residual(Chain& chain) {
    if (chain.head.op_type != "Conv" || chain.reads.size() != chain.head.inputs) return false;
    uint32_t value = result(chain);
    uint32_t next = sole_reader(value, {"Add", "Sum"});
    if (next == BP_NONE) return false;
    uint32_t summand = other(next, value);
    if (summand == BP_NONE || known_[summand] || !same_extents(value, summand)) return false;
    if (!join(chain, {next}, {.kind = PostOp::kAdd})) return false;
    chain.reads.push_back(summand);
    return true;
  }

  bool activation(Chain& chain) {
    uint32_t value = result(chain);
    uint32_t next = sole_reader(
        value, {"Relu", "LeakyRelu", "Clip", "Sigmoid", "Tanh", "Elu", "HardSigmoid", "HardSwish", "Swish"});
    if (next == BP_NONE || calls_[next].inputs[0] != value) return false;
    Node n = node(next);
    std::string_view op = n.op_type();
    if (op == "Relu") return join(chain, {next}, Activation::kRelu);
    if (op == "LeakyRelu") return join(chain, {next}, Activation::kLeakyRelu, n.attr("alpha", 0.01f));
    if (op == "Sigmoid") return join(chain, {next}, Activation::kSigmoid);
    if (op == "Tanh") return join(chain, {next}, Activation::kTanh);
    if (op == "Elu") return join(chain, {next}, Activation::kElu, n.attr("alpha", 1.0f));
    if (op == "HardSwish") return join(chain, {next}, Activation::kHardSwish);
    if (op == "Swish") return join(chain, {next}, Activation::kSwish, n.attr("alpha", 1.0f));
    if (op == "HardSigmoid")
      return join(chain, {next}, Activation::kHardSigmoid, n.attr("alpha", 0.2f), n.attr("beta", 0.5f));
    auto bound = [&](size_t slot, float none) {
      std::span<const uint32_t> in = calls_[next].inputs;
      return slot < in.size() && in[slot] != BP_NONE ? known_scalar(in[slot]) : std::optional<float>(none);
    };
    std::optional<float> low = bound(1, -std::numeric_limits<float>::infinity());
    std::optional<float> high = bound(2, std::numeric_limits<float>::infinity());
    return low && high && join(chain, {next}, Activation::kClip, *low, *high);
  }

  // x · gate(x), where the gate is Sigmoid or HardSigmoid.
  bool gate(Chain& chain) {
    uint32_t x = result(chain);
    if (kept_[x] || readers(x).size() != 2) return false;
    for (uint32_t gate : readers(x)) {
      if (!is(gate, {"Sigmoid", "HardSigmoid"})) continue;
      uint32_t product = sole_reader(calls_[gate].outputs[0], {"Mul"});
      if (product == BP_NONE || other(product, x) != calls_[gate].outputs[0]) return false;
      Node n = node(gate);
      if (n.op_type() == "Sigmoid") return join(chain, {gate, product}, Activation::kSwish, 1.0f);
      bool usual = std::fabs(n.attr("alpha", 0.2f) - 1.0f / 6) < 1e-6f && n.attr("beta", 0.5f) == 0.5f;
      return usual && join(chain, {gate, product}, Activation::kHardSwish);
    }
    return false;
  }

  // x · Clip(x + 3, 0, 6) / 6.
  bool hard_swish(Chain& chain) {
    uint32_t x = result(chain);
    if (kept_[x] || readers(x).size() != 2) return false;
    for (uint32_t add : readers(x)) {
      if (!is(add, {"Add"}) || known_scalar(other(add, x)) != 3.0f) continue;
      uint32_t clip = sole_reader(calls_[add].outputs[0], {"Clip"});
      if (clip == BP_NONE || calls_[clip].inputs.size() != 3 || known_scalar(calls_[clip].inputs[1]) != 0.0f ||
          known_scalar(calls_[clip].inputs[2]) != 6.0f)
        return false;
      uint32_t product = sole_reader(calls_[clip].outputs[0], {"Mul"});
      if (product == BP_NONE || other(product, x) != calls_[clip].outputs[0]) return false;
      uint32_t divided = sole_reader(calls_[product].outputs[0], {"Div"});
      if (divided == BP_NONE || calls_[divided].inputs[0] != calls_[product].outputs[0] ||
          known_scalar(calls_[divided].inputs[1]) != 6.0f)
        return false;
      return join(chain, {add, clip, product, divided}, Activation::kHardSwish);
    }
    return false;
  }

  // [N, groups · each, …] as [N, groups, each, …], those two swapped, and back.
  void channel_shuffle(uint32_t split) {
    const uint32_t x = calls_[split].inputs[0], parts = calls_[split].outputs[0];
    const uint32_t swap = sole_reader(parts, {"Transpose"});
    if (swap == BP_NONE || values_[x].dtype != BP_DTYPE_FLOAT) return;
    const uint32_t join = sole_reader(calls_[swap].outputs[0], {"Reshape"});
    if (join == BP_NONE || calls_[join].inputs[0] != calls_[swap].outputs[0]) return;
    std::vector<int64_t> order = node(swap).ints("perm");
    const bp_type_t &from = type(x), &between = type(parts);
    if (!same_extents(x, calls_[join].outputs[0]) || from.rank < 3 || between.rank != from.rank + 1) return;
    for (size_t d = 0; d < order.size(); ++d) {
      if (order[d] != (d == 1 ? 2 : d == 2 ? 1 : static_cast<int64_t>(d))) return;
    }
    for (int32_t d = 0; d < from.rank; ++d) {
      if (d != 1 && !same_extent(from, d, between, d == 0 ? 0 : d + 1)) return;
    }
    const int64_t groups = graph_.dims[between.first_dim + 1].extent, each = graph_.dims[between.first_dim + 2].extent;
    if (order.size() != static_cast<size_t>(between.rank) || groups < 1 || each < 1 ||
        groups * each != graph_.dims[from.first_dim + 1].extent)
      return;
    calls_[join].kernel = make_channel_shuffle(groups);
    calls_[join].reads = {x};
    calls_[join].inputs = calls_[join].reads;
    for (uint32_t call : {split, swap, join}) taken_[call] = true;
    calls_[split].folded = calls_[swap].folded = true;
  }

  // Tried in this order until none fits.
  static constexpr Rule kRules[] = {&Fusion::batch_normalization, &Fusion::scale_or_shift, &Fusion::residual,
                                    &Fusion::activation,          &Fusion::gate,           &Fusion::hard_swish};

  const bp_graph_t& graph_;
  std::span<Call> calls_;
  std::span<const Tensor> values_;
  const std::vector<bool>& known_;
  std::vector<bool> taken_;           // by call: joined to a chain
  std::vector<bool> kept_;            // by value: a graph output
  std::vector<uint32_t> read_first_;  // by value: its first entry in readers_
  std::vector<uint32_t> readers_;
};

}  // namespace

void fuse(const bp_graph_t& graph, std::span<Call> calls, std::span<const Tensor> values,
          const std::vector<bool>& known) {
  Fusion(graph, calls, values, known).run();
}

}  // namespace backplane::cpu
