// SPDX-License-Identifier: Apache-2.0
// com.microsoft DynamicQuantizeLSTM: an LSTM with 8-bit weights. X and the hidden states are quantized as
// DynamicQuantizeLinear does: X once, over all time steps up to the end of the longest sequence; the states of all
// sequences together, in every step. The last state of a sequence still counts in the range of the step after it, as in
// ONNX Runtime, and is then set to 0. The products of X are computed for several time steps at once; those of the
// states follow step by step.
#include <algorithm>
#include <array>

#include "kernels/common/function_kernel.h"
#include "kernels/common/parts.h"
#include "kernels/common/support.h"
#include "kernels/quantized/quantize.h"
#include "kernels/recurrent/gate_product.h"
#include "kernels/recurrent/lstm_cell.h"
#include "kernels/recurrent/rnn_gemm.h"
#include "kernels/simd/clones.h"
#include "runtime/processor.h"
#include "runtime/watch.h"

namespace backplane::cpu {

namespace {

enum Slot : size_t {
  kX,
  kW,
  kR,
  kBias,
  kLengths,
  kFirstState,
  kFirstCell,
  kPeephole,
  kWScale,
  kWZero,
  kRScale,
  kRZero
};

constexpr double kTaskTime = 1;  // minimum work of a task in microseconds
constexpr int64_t kFaster = 4;   // about how many 8-bit multiply-adds take as long as one in fp32

CLONED void scale_gates(const int32_t* sums, const float* scales, float factor, const float* bias, float* y,
                        int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(sums[i]) * (factor * scales[i]) + bias[i];
}
CLONED void add_gates(const int32_t* sums, const float* scales, float factor, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] += static_cast<float>(sums[i]) * (factor * scales[i]);
}

class LstmStep final : public Step {
 public:
  LstmStep(const PlanContext& context, const Layer& layer, RecurrentExtents e, Tensors in, PackedWeights& packed)
      : layer_(layer),
        e_(e),
        units_(unit_blocks(layer.hidden) * kUnitBlock),
        ahead_(std::clamp<int64_t>(kGateFloats / std::max<int64_t>(1, e.batch * kLstmGates * units_), 1,
                                   std::max<int64_t>(1, e.times))),
        apart_(layer.directions > 1 && context.threads > 1),
        w_(context, ahead_ * e.batch, in[kW], packed),
        r_(context, e.batch, in[kR], packed) {
    Parts parts(nullptr);
    parts.take<uint8_t>(quantized_x());
    for (int64_t d = 0; d < layer.directions; ++d) memory_in(parts);
    scratch_bytes_ = parts.bytes();
  }

  int64_t scratch_bytes() const override { return scratch_bytes_; }

  std::optional<std::string> run(Tensors in, Tensors out, void* scratch) const override {
    if (auto wrong = wrong_length(at(in, kLengths), e_)) return wrong;
    const int32_t* lengths = at(in, kLengths).as<int32_t>();
    Run run{in,      out, lengths, lengths == nullptr ? e_.times : *std::max_element(lengths, lengths + e_.batch),
            nullptr, {}};
    Parts parts(scratch);
    auto* x = parts.take<uint8_t>(quantized_x());
    run.x = x;
    run.quantization = quantize_dynamically(in[kX].as<float>(), x, run.longest * e_.batch * e_.input);
    if (const Tensor y = at(out, 0); y.data != nullptr && lengths != nullptr)
      std::fill_n(y.as<float>(), y.shape.elements(), 0.0f);
    std::array<Memory, 2> memory;
    for (int64_t d = 0; d < layer_.directions; ++d) memory[static_cast<size_t>(d)] = memory_in(parts);
    parallel(layer_.directions, apart_ ? 1 : layer_.directions, [&](int64_t begin, int64_t end) {
      for (int64_t d = begin; d < end; ++d) follow(run, d, memory[static_cast<size_t>(d)]);
    });
    return std::nullopt;
  }

 private:
  struct Run {
    Tensors in, out;
    const int32_t* lengths;
    int64_t longest;
    const uint8_t* x;
    Quantization quantization;  // of x

    int64_t length(int64_t b) const { return lengths == nullptr ? longest : lengths[b]; }
  };

  // The buffers of a direction. In shapes, `units` is the number of units, padding included.
  struct Memory {
    float *w_scales, *r_scales, *bias, *peephole;  // [4][units]; peephole: [3][units], null if there is none
    int32_t *w_zeros, *r_zeros;                    // [4][units]
    float* gates;                                  // [time step][sequence][4][units]
    int32_t* sums;                                 // of the same shape
    float *c, *h;                                  // [sequence][units]
    float* state;                                  // [sequence][hidden]: h without padding
    uint8_t* quantized;                            // `state`, quantized
    const uint8_t** rows;
    std::byte *w_scratch, *r_scratch;
  };

  int64_t quantized_x() const { return product({e_.times, e_.batch, e_.input}); }

  Memory memory_in(Parts& parts) const {
    const int64_t columns = kLstmGates * units_, b = e_.batch;
    Memory m;
    for (float** floats : {&m.w_scales, &m.r_scales, &m.bias, &m.peephole}) *floats = parts.take<float>(columns);
    for (int32_t** zeros : {&m.w_zeros, &m.r_zeros}) *zeros = parts.take<int32_t>(columns);
    m.gates = parts.take<float>(product({ahead_, b, columns}));
    m.sums = parts.take<int32_t>(product({ahead_, b, columns}));
    m.c = parts.take<float>(product({b, units_}));
    m.h = parts.take<float>(product({b, units_}));
    m.state = parts.take<float>(product({b, layer_.hidden}));
    m.quantized = parts.take<uint8_t>(product({b, layer_.hidden}));
    m.rows = parts.take<const uint8_t*>(product({ahead_, b}));
    m.w_scratch = parts.take<std::byte>(w_.scratch_bytes());
    m.r_scratch = parts.take<std::byte>(r_.scratch_bytes());
    return m;
  }

  // Spreads the numbers of direction `d` to padded units: a single one (if `one`), or one for each gate and unit.
  // Padding becomes 0.
  template <class T, class Read>
  void spread(int64_t d, bool one, const Read& read, T* to) const {
    const int64_t columns = kLstmGates * layer_.hidden;
    for (int64_t g = 0; g < kLstmGates; ++g, to += units_) {
      for (int64_t u = 0; u < layer_.hidden; ++u) to[u] = read(one ? d : d * columns + g * layer_.hidden + u);
      std::fill_n(to + layer_.hidden, units_ - layer_.hidden, T{});
    }
  }

  // Fills the buffers that all time steps read. Returns the zero points of W and R, a single one where the direction
  // has only one.
  std::array<std::span<const int32_t>, 2> fill(const Run& run, int64_t d, Memory& m) const {
    const auto numbers = [&](size_t slot, float* to) {
      const Tensor& t = run.in[slot];
      spread(
          d, t.shape.rank() < 2, [&](int64_t i) { return t.as<float>()[i]; }, to);
    };
    numbers(kWScale, m.w_scales);
    numbers(kRScale, m.r_scales);
    const auto zeros = [&](size_t slot, int32_t* to) -> std::span<const int32_t> {
      const Tensor& t = run.in[slot];
      if (t.shape.rank() < 2) {
        *to = q8_at(t.data, t.dtype == BP_DTYPE_INT8, d);
        return {to, 1};
      }
      spread(
          d, false, [&](int64_t i) { return q8_at(t.data, t.dtype == BP_DTYPE_INT8, i); }, to);
      return {to, static_cast<size_t>(kLstmGates * units_)};
    };
    const int64_t columns = kLstmGates * layer_.hidden;
    const float* bias = at(run.in, kBias).as<float>();
    spread(
        0, false,
        [&](int64_t i) { return bias == nullptr ? 0 : bias[d * 2 * columns + i] + bias[(d * 2 + 1) * columns + i]; },
        m.bias);
    const float* peephole = at(run.in, kPeephole).as<float>();
    if (peephole != nullptr) {
      std::fill_n(m.peephole, 3 * units_, 0.0f);
      for (int64_t p = 0; p < 3; ++p)
        std::copy_n(peephole + (d * 3 + p) * layer_.hidden, layer_.hidden, m.peephole + p * units_);
    } else {
      m.peephole = nullptr;
    }
    return {zeros(kWZero, m.w_zeros), zeros(kRZero, m.r_zeros)};
  }

  // Sets the initial states of all sequences, and the final states of empty ones.
  void begin(const Run& run, int64_t d, const Memory& m) const {
    const int64_t n = layer_.hidden;
    std::fill_n(m.c, e_.batch * units_, 0.0f);
    for (int64_t b = 0; b < e_.batch; ++b) {
      const int64_t from = (d * e_.batch + b) * n;
      const float *h = at(run.in, kFirstState).as<float>(), *c = at(run.in, kFirstCell).as<float>();
      if (h == nullptr)
        std::fill_n(m.state + b * n, n, 0.0f);
      else
        std::copy_n(h + from, n, m.state + b * n);
      if (c != nullptr) std::copy_n(c + from, n, m.c + b * units_);
      if (run.length(b) == 0) end_sequence(run, d, b, nullptr, nullptr);
    }
  }

  // Writes the final states of a sequence to the outputs Y_h and Y_c, or zeros if h and c are null.
  void end_sequence(const Run& run, int64_t d, int64_t b, const float* h, const float* c) const {
    const int64_t n = layer_.hidden, to = (d * e_.batch + b) * n;
    size_t slot = 1;
    for (const float* from : {h, c}) {
      float* last = at(run.out, slot++).as<float>();
      if (last == nullptr) continue;
      if (from == nullptr)
        std::fill_n(last + to, n, 0.0f);
      else
        std::copy_n(from, n, last + to);
    }
  }

  // Calls body(first, last) for ranges of blocks of units, in parallel. Each block takes `work` multiply-adds.
  template <class Body>
  void for_blocks(int64_t work, const Body& body) const {
    const int64_t blocks = units_ / kUnitBlock;
    const int64_t least = 1 + kFaster * processor().multiply_adds(kTaskTime) / std::max<int64_t>(1, work);
    parallel(blocks, apart_ ? blocks : least, body);
  }

  // The time step of X that step `step` of sequence `b` reads, and to which its result belongs.
  int64_t time(const Run& run, int64_t d, int64_t b, int64_t step) const {
    return d == 1 || layer_.reverse_first ? run.length(b) - 1 - step : step;
  }

  void follow(const Run& run, int64_t d, Memory m) const {
    const auto [w_zeros, r_zeros] = fill(run, d, m);
    begin(run, d, m);
    Pace pace;
    for (int64_t first = 0; first < run.longest; first += ahead_) {
      const int64_t last = std::min(run.longest, first + ahead_);
      multiply_x(run, d, m, w_zeros, first, last);
      for (int64_t step = first; step < last; ++step) {
        pace.spend(e_.batch * units_ * (1 + e_.input + units_));
        advance(run, d, m, r_zeros, step, m.gates + (step - first) * e_.batch * kLstmGates * units_);
      }
    }
  }

  // Computes the gates' parts that depend on X for the steps [first, last).
  void multiply_x(const Run& run, int64_t d, const Memory& m, std::span<const int32_t> zeros, int64_t first,
                  int64_t last) const {
    size_t count = 0;
    for (int64_t step = first; step < last; ++step) {
      for (int64_t b = 0; b < e_.batch; ++b) {
        const int64_t t = std::max<int64_t>(0, time(run, d, b, std::min(step, run.length(b) - 1)));
        m.rows[count++] = run.x + (t * e_.batch + b) * e_.input;
      }
    }
    const GateRows rows{{m.rows, count}, run.quantization.zero, d, zeros};
    w_.prepare(rows, m.w_scratch);
    const int64_t columns = kLstmGates * units_;
    for_blocks(kLstmGates * kUnitBlock * e_.input * static_cast<int64_t>(count), [&](int64_t begin, int64_t end) {
      w_.multiply(rows, m.sums, m.w_scratch, begin, end);
      const int64_t n = (end - begin) * kUnitBlock;
      for (size_t row = 0; row < count; ++row) {
        for (int64_t g = 0; g < kLstmGates; ++g) {
          const int64_t column = g * units_ + begin * kUnitBlock, at = static_cast<int64_t>(row) * columns + column;
          clone_of<scale_gates>(m.sums + at, m.w_scales + column, run.quantization.scale, m.bias + column, m.gates + at,
                                n);
        }
      }
    });
  }

  // Computes one time step of all sequences that have not ended.
  void advance(const Run& run, int64_t d, const Memory& m, std::span<const int32_t> zeros, int64_t step,
               float* gates) const {
    const int64_t hidden = layer_.hidden, columns = kLstmGates * units_;
    const Quantization q = quantize_dynamically(m.state, m.quantized, e_.batch * hidden);
    for (int64_t b = 0; b < e_.batch; ++b) m.rows[b] = m.quantized + b * hidden;
    const GateRows rows{{m.rows, static_cast<size_t>(e_.batch)}, q.zero, d, zeros};
    r_.prepare(rows, m.r_scratch);
    const GateFunction* functions = layer_.functions_of(d);
    const RecurrentOffsets offsets{layer_, e_};
    float* y = at(run.out, 0).as<float>();
    for_blocks(kLstmGates * kUnitBlock * hidden * e_.batch, [&](int64_t begin, int64_t end) {
      r_.multiply(rows, m.sums, m.r_scratch, begin, end);
      const int64_t first = begin * kUnitBlock, n = (end - begin) * kUnitBlock, real = std::min(n, hidden - first);
      for (int64_t b = 0; b < e_.batch; ++b) {
        if (step >= run.length(b)) continue;
        float* own = gates + b * columns + first;
        for (int64_t g = 0; g < kLstmGates; ++g)
          clone_of<add_gates>(m.sums + b * columns + g * units_ + first, m.r_scales + g * units_ + first, q.scale,
                              own + g * units_, n);
        float *c = m.c + b * units_ + first, *h = m.h + b * units_ + first;
        lstm_cell(layer_, functions, {own, m.peephole == nullptr ? nullptr : m.peephole + first, c, h, units_, n});
        std::copy_n(h, real, m.state + b * hidden + first);
        if (y != nullptr) std::copy_n(h, real, y + offsets.y(time(run, d, b, step), b, d) + first);
      }
    });
    for (int64_t b = 0; b < e_.batch; ++b) {
      if (step + 1 == run.length(b)) end_sequence(run, d, b, m.state + b * hidden, m.c + b * units_);
      if (step >= run.length(b)) std::fill_n(m.state + b * hidden, hidden, 0.0f);
    }
  }

  Layer layer_;
  RecurrentExtents e_;
  int64_t units_;  // padded to whole blocks
  int64_t ahead_;  // time steps whose products with W are computed at once
  bool apart_;     // directions run in parallel; otherwise blocks of units do
  GateProduct w_, r_;
  int64_t scratch_bytes_ = 0;
};

class DynamicQuantizeLstm final : public Kernel {
 public:
  explicit DynamicQuantizeLstm(Layer layer) : layer_(std::move(layer)) {}

  Plan plan(const PlanContext& context, Tensors in) const override {
    const Shape &x = in[kX].shape, &r = in[kR].shape;
    if (x.rank() != 3 || r.rank() != 3)
      return cpu::fail("X and R must have three dimensions, but have shapes " + to_string(x) + " and " + to_string(r));
    Layer layer = layer_;
    if (layer.hidden < 0) layer.hidden = r[1];
    const int64_t d = layer.directions, columns = product({kLstmGates, layer.hidden});
    const RecurrentExtents e{x[0], x[1], x[2]};
    const Shape state{d, e.batch, layer.hidden};
    const Shape expected[] = {
        x,     {d, e.input, columns}, {d, layer.hidden, columns}, {d, 2 * columns}, {e.batch}, state,
        state, {d, 3 * layer.hidden}};
    for (size_t slot = 0; slot < in.size(); ++slot) {
      const Shape& shape = in[slot].shape;
      const bool fits = slot >= kWScale ? shape == Shape{d} || shape == Shape{d, columns} : shape == expected[slot];
      if (!in[slot].present() || fits) continue;
      const std::string wanted =
          slot >= kWScale ? to_string(Shape{d}) + " or " + to_string(Shape{d, columns}) : to_string(expected[slot]);
      return cpu::fail("input " + std::to_string(slot) + " has shape " + to_string(shape) + ", but needs " + wanted);
    }
    if (!known(in[kW]) || !known(in[kR])) return deferred();  // their packed form is part of the plan
    Plan plan;
    plan.shapes = {Shape{e.times, d, e.batch, layer.hidden}, state, state};
    for (const Shape& shape : plan.shapes)
      if (!countable(shape)) return cpu::fail("an output of extents " + to_string(shape) + " is too large for memory");
    plan.step = std::make_unique<LstmStep>(context, layer, e, in, packed_);
    if (!context.reference) plan.packed = kW;
    return plan;
  }

  bool packs(size_t input) const override { return input == kW; }
  bool reads_bytes(size_t input) const override { return input == kW || input == kR; }

 private:
  Layer layer_;  // `hidden` is negative if only R's shape determines it
  mutable PackedWeights packed_;
};

Verdict supports(const Node& node) {
  constexpr bp_dtype_set_t kReal = just(BP_DTYPE_FLOAT), kCount = just(BP_DTYPE_INT32),
                           kBytes = just(BP_DTYPE_INT8) | just(BP_DTYPE_UINT8);
  if (Verdict v = check_layer(node, Cell::kLstm); !v) return v;
  if (Verdict v =
          accepts(node, 3, {kReal, kBytes, kBytes, kReal, kCount, kReal, kReal, kReal, kReal, kBytes, kReal, kBytes});
      !v)
    return v;
  for (uint32_t slot : {kWScale, kWZero, kRScale, kRZero})
    if (!node.has_input(slot)) return no(BP_REASON_OPSET, "input " + std::to_string(slot) + " is missing");
  if (Verdict v = same_type(node, kW, kWZero); !v) return v;
  return same_type(node, kR, kRZero);
}

std::unique_ptr<Kernel> create(const Node& node) {
  return std::make_unique<DynamicQuantizeLstm>(read_layer(node, Cell::kLstm));
}

}  // namespace

[[gnu::cold]] std::span<const Row> dynamic_quantize_lstm_rows() {
  static constexpr Row kRows[] = {
      Row{kMicrosoft, "DynamicQuantizeLSTM", 1, supports, create}.with(kOmitsOutput0),
  };
  return kRows;
}

}  // namespace backplane::cpu
