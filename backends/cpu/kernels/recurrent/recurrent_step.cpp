// SPDX-License-Identifier: Apache-2.0
// Recurrent layers. The products of the gates with X are computed for several time steps at once; those with the
// previous state follow step by step. Sequences and directions are independent and run in parallel. If there are too
// few of them for the threads, blocks of units run in parallel instead. A unit is an element of the hidden state.
#include "kernels/recurrent/recurrent_step.h"

#include <algorithm>
#include <array>

#include "kernels/common/function_kernel.h"
#include "kernels/common/parts.h"
#include "kernels/common/support.h"
#include "kernels/recurrent/lstm_cell.h"
#include "kernels/recurrent/rnn_gemm.h"
#include "kernels/simd/clones.h"
#include "runtime/memory.h"
#include "runtime/parallel.h"
#include "runtime/processor.h"
#include "runtime/watch.h"

namespace backplane::cpu {

namespace {

constexpr double kTaskTime = 0.256;  // minimum work of a task in microseconds

CLONED void add_products(float* y, const float* a, const float* b, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] += a[i] * b[i];
}
CLONED void multiply(const float* a, const float* b, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = a[i] * b[i];
}
// Computes y = (1 - share) · a + share · b.
CLONED void mix(const float* share, const float* a, const float* b, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = (1 - share[i]) * a[i] + share[i] * b[i];
}

void load(const Tensor& from, int64_t offset, float* to, int64_t n) {
  if (from.data == nullptr)
    std::fill_n(to, n, 0.0f);
  else
    std::copy_n(from.as<float>() + offset, n, to);
}
void store(const float* from, const Tensor& to, int64_t offset, int64_t n) {
  if (to.data != nullptr) std::copy_n(from, n, to.as<float>() + offset);
}

// Sequences of one direction that are computed together.
struct Job {
  int64_t direction, first, count;
};

// The buffers of a job. A row has the units of one sequence and their padding; in `gates`, those of all its gates.
struct State {
  float *h, *next, *c;
  float* candidate;  // for GRU: the contribution of the previous state, or that state after the reset
  float* gates;      // [time step][sequence][gate][padded unit]
  GateRow* rows;     // one per row of `gates`
};

// The data that all jobs of a direction read.
struct Direction {
  std::array<const float*, 2> w, r;         // panels of w_ and r_
  float *bias, *candidate_bias, *peephole;  // [gate][padded unit]; `candidate_bias` has a single gate
};

class RecurrentStep final : public Step {
 public:
  RecurrentStep(int64_t threads, const Layer& layer, RecurrentExtents e, Tensors inputs, PackedWeights& packed)
      : layer_(layer), e_(e), units_(unit_blocks(layer.hidden) * kUnitBlock), has_peephole_(at(inputs, 7).present()) {
    // The candidate of a GRU may need the reset gate first, so its weights are packed separately from those of the
    // gates.
    const int64_t first = layer.cell == Cell::kGru ? 2 : layer.gates;
    for (int64_t gates : {first, layer.gates - first}) {
      if (gates == 0) continue;
      w_.emplace_back(gates, layer.hidden, e.input);
      r_.emplace_back(gates, layer.hidden, layer.hidden);
    }
    w_pack_ = pack_known(w_, inputs[1], packed);
    r_pack_ = pack_known(r_, inputs[2], packed);
    share_out(threads);
    Parts parts(nullptr);
    lay_out(parts, nullptr);
    scratch_bytes_ = parts.bytes();
  }

  int64_t scratch_bytes() const override { return scratch_bytes_; }

  std::optional<std::string> run(Tensors in, Tensors out, void* scratch) const override {
    Parts parts(scratch);
    Run run{in, out, at(in, 4).as<int32_t>(), {}, nullptr};
    lay_out(parts, &run);
    if (run.lengths != nullptr && out[0].data != nullptr)
      std::fill_n(out[0].as<float>(), out[0].shape.elements(), 0.0f);
    const auto jobs = static_cast<int64_t>(jobs_.size());
    parallel(jobs, apart_ ? 1 : jobs, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) follow(run, jobs_[static_cast<size_t>(i)], run.states[i]);
    });
    return std::nullopt;
  }

 private:
  struct Run {
    Tensors in, out;
    const int32_t* lengths;
    std::array<Direction, 2> directions;
    State* states;
  };

  PackedWeights::Pack pack_known(const std::vector<GatePanels>& panels, const Tensor& weights, PackedWeights& packed) {
    if (weights.data == nullptr) return nullptr;
    return packed.get(weights, {}, [&] {
      std::shared_ptr<std::byte> pack(
          allocate_pages(count_of(panels) * layer_.directions * static_cast<int64_t>(sizeof(float))));
      pack_all(panels, weights, reinterpret_cast<float*>(pack.get()));
      return pack;
    });
  }
  static int64_t count_of(const std::vector<GatePanels>& panels) {
    int64_t count = 0;
    for (const GatePanels& p : panels) count += p.count();
    return count;
  }
  void pack_all(const std::vector<GatePanels>& panels, const Tensor& weights, float* to) const {
    const auto* from = weights.as<std::byte>();
    for (int64_t d = 0; d < layer_.directions; ++d) {
      for (const GatePanels& p : panels) {
        p.pack(from, to);
        from += p.weights() * static_cast<int64_t>(sizeof(float));
        to += p.count();
      }
    }
  }

  // Divides the work among the threads: each computes some sequences of one direction. If that leaves half of the
  // threads idle and a time step has enough work, all threads share each time step instead. They also do so if each of
  // them would otherwise read the same large weights in each time step.
  void share_out(int64_t threads) {
    const int64_t work = layer_.gates * layer_.hidden * layer_.hidden;
    int64_t parts = 1;
    if (work * 4 <= processor().l2_bytes)
      parts = std::clamp<int64_t>(threads / layer_.directions, 1, std::max<int64_t>(1, e_.batch));
    apart_ = parts * layer_.directions * 2 > threads || work * e_.batch < 2 * processor().multiply_adds(kTaskTime);
    if (!apart_) parts = 1;
    for (int64_t d = 0; d < layer_.directions && e_.batch > 0; ++d) {
      for (int64_t p = 0; p < parts; ++p) {
        const int64_t first = p * e_.batch / parts;
        jobs_.push_back({d, first, (p + 1) * e_.batch / parts - first});
      }
    }
    const int64_t rows = (e_.batch + parts - 1) / parts;
    ahead_ = std::clamp<int64_t>(kGateFloats / std::max<int64_t>(1, rows * layer_.gates * units_), 1,
                                 std::max<int64_t>(1, e_.times));
  }

  // Divides the scratch memory. For a run, also fills in the data that all time steps read.
  void lay_out(Parts& parts, Run* run) const {
    const auto weights = [&](const std::vector<GatePanels>& panels, const PackedWeights::Pack& pack, size_t input) {
      if (pack != nullptr) return reinterpret_cast<const float*>(pack.get());
      auto* here = parts.take<float>(count_of(panels) * layer_.directions);
      if (run != nullptr) pack_all(panels, run->in[input], here);
      return static_cast<const float*>(here);
    };
    const float *w = weights(w_, w_pack_, 1), *r = weights(r_, r_pack_, 2);
    for (int64_t d = 0; d < layer_.directions; ++d) {
      Direction direction{{}, {}, parts.take<float>(layer_.gates * units_), parts.take<float>(units_), nullptr};
      if (has_peephole_) direction.peephole = parts.take<float>(3 * units_);
      if (run == nullptr) continue;
      for (size_t p = 0; p < w_.size(); w += w_[p].count(), r += r_[p].count(), ++p) {
        direction.w[p] = w;
        direction.r[p] = r;
      }
      fill(direction, d, *run);
      run->directions[static_cast<size_t>(d)] = direction;
    }
    auto* states = parts.take<State>(static_cast<int64_t>(jobs_.size()));
    if (run != nullptr) run->states = states;
    for (const Job& job : jobs_) {
      const int64_t n = job.count * units_;
      const State state{parts.take<float>(n),
                        parts.take<float>(n),
                        parts.take<float>(n),
                        parts.take<float>(n),
                        parts.take<float>(ahead_ * n * layer_.gates),
                        parts.take<GateRow>(ahead_ * job.count)};
      if (run != nullptr) *states++ = state;
    }
  }

  bool candidate_waits() const { return layer_.cell == Cell::kGru && !layer_.linear_before_reset; }
  bool candidate_apart() const { return layer_.cell == Cell::kGru && layer_.linear_before_reset; }

  // Adds the two biases of each gate, except those of a GRU's candidate with linear_before_reset: the reset gate
  // multiplies the second one, which stays in `candidate_bias`.
  void fill(const Direction& to, int64_t d, const Run& run) const {
    const int64_t hidden = layer_.hidden;
    const Tensor bias = at(run.in, 3), peephole = at(run.in, 7);
    std::fill_n(to.bias, layer_.gates * units_, 0.0f);
    std::fill_n(to.candidate_bias, units_, 0.0f);
    for (int64_t g = 0; g < layer_.gates && bias.data != nullptr; ++g) {
      float* own = to.bias + g * units_;
      load(bias, (d * 2 * layer_.gates + g) * hidden, own, hidden);
      load(bias, ((d * 2 + 1) * layer_.gates + g) * hidden, to.candidate_bias, hidden);
      if (!candidate_apart() || g < 2)
        for (int64_t i = 0; i < hidden; ++i) own[i] += to.candidate_bias[i];
    }
    if (to.peephole == nullptr) return;
    std::fill_n(to.peephole, 3 * units_, 0.0f);
    for (int64_t p = 0; p < 3; ++p) load(peephole, (d * 3 + p) * hidden, to.peephole + p * units_, hidden);
  }

  // Calls body(first, last) for ranges of blocks of units, in parallel. Each block takes `work` multiply-adds.
  template <class Body>
  void for_blocks(int64_t work, const Body& body) const {
    const int64_t blocks = units_ / kUnitBlock;
    parallel(blocks, apart_ ? blocks : 1 + processor().multiply_adds(kTaskTime) / std::max<int64_t>(1, work), body);
  }

  void follow(const Run& run, const Job& job, State s) const {
    const RecurrentOffsets offsets{layer_, e_};
    const Direction& direction = run.directions[static_cast<size_t>(job.direction)];
    const bool reverse = job.direction == 1 || layer_.reverse_first;
    const auto length = [&](int64_t b) { return run.lengths == nullptr ? e_.times : run.lengths[job.first + b]; };
    int64_t longest = 0;
    for (int64_t b = 0; b < job.count; ++b) {
      longest = std::max<int64_t>(longest, length(b));
      float *h = s.h + b * units_, *c = s.c + b * units_;
      std::fill_n(h, units_, 0.0f);
      std::fill_n(c, units_, 0.0f);
      load(at(run.in, 5), offsets.state(job.first + b, job.direction), h, layer_.hidden);
      load(at(run.in, 6), offsets.state(job.first + b, job.direction), c, layer_.hidden);
    }
    Pace pace;
    for (int64_t begin = 0; begin < longest; begin += ahead_) {
      const int64_t end = std::min(longest, begin + ahead_);
      size_t count = 0;
      for (int64_t step = begin; step < end; ++step) {
        for (int64_t b = 0; b < job.count; ++b) {
          if (step >= length(b)) continue;
          const int64_t t = reverse ? length(b) - 1 - step : step;
          s.rows[count++] = {run.in[0].as<float>() + offsets.x(t, job.first + b), direction.bias,
                             gates_of(s, job, step - begin, b)};
        }
      }
      for_blocks(layer_.gates * kUnitBlock * e_.input * static_cast<int64_t>(count), [&](int64_t first, int64_t last) {
        int64_t offset = 0;
        for (size_t p = 0; p < w_.size(); offset += w_[p].gates() * units_, ++p)
          w_[p].multiply(direction.w[p], {s.rows, count}, offset, first, last);
      });
      for (int64_t step = begin; step < end; ++step) {
        pace.spend(job.count * layer_.gates * units_ * (1 + e_.input + units_));
        advance(run, job, direction, s, step - begin, [&](int64_t b) -> int64_t {
          if (step >= length(b)) return -1;
          return offsets.y(reverse ? length(b) - 1 - step : step, job.first + b, job.direction);
        });
        std::swap(s.h, s.next);
      }
    }
    for (int64_t b = 0; b < job.count; ++b) {
      const int64_t offset = offsets.state(job.first + b, job.direction);
      store(s.h + b * units_, at(run.out, 1), offset, layer_.hidden);
      store(s.c + b * units_, at(run.out, 2), offset, layer_.hidden);
    }
  }

  float* gates_of(const State& s, const Job& job, int64_t step, int64_t b) const {
    return s.gates + (step * job.count + b) * layer_.gates * units_;
  }

  // Computes one time step of a job. `offset_of` returns the offset of a sequence's result in Y, or -1 if the sequence
  // has ended.
  template <class OffsetOf>
  void advance(const Run& run, const Job& job, const Direction& direction, const State& s, int64_t step,
               const OffsetOf& offset_of) const {
    const bool gru = layer_.cell == Cell::kGru;
    size_t count = 0;
    for (int64_t b = 0; b < job.count; ++b) {
      float* gates = gates_of(s, job, step, b);
      if (offset_of(b) >= 0) s.rows[count++] = {s.h + b * units_, gates, gates};
    }
    const std::span<GateRow> rows(s.rows, count);
    const GateFunction* f = layer_.functions_of(job.direction);
    const int64_t work = kUnitBlock * layer_.hidden * static_cast<int64_t>(count);
    const auto finish = [&](int64_t first, int64_t last) {
      for (int64_t b = 0; b < job.count; ++b) {
        const int64_t at = first * kUnitBlock, n = (last - first) * kUnitBlock, own = b * units_ + at,
                      to = offset_of(b);
        float* gates = gates_of(s, job, step, b) + at;
        if (to < 0) {
          std::copy_n(s.h + own, n, s.next + own);
          continue;
        }
        switch (layer_.cell) {
          case Cell::kRnn:
            apply_gate(layer_, f[0], gates, n);
            std::copy_n(gates, n, s.next + own);
            break;
          case Cell::kGru:
            if (candidate_apart()) clone_of<add_products>(gates + 2 * units_, gates + units_, s.candidate + own, n);
            apply_gate(layer_, f[1], gates + 2 * units_, n);
            clone_of<mix>(gates, gates + 2 * units_, s.h + own, s.next + own, n);
            break;
          case Cell::kLstm:
            lstm_cell(layer_, f,
                      {gates, direction.peephole == nullptr ? nullptr : direction.peephole + at, s.c + own,
                       s.next + own, units_, n});
            break;
        }
        store(s.next + own, run.out[0], to + at, std::min(n, layer_.hidden - at));
      }
    };
    for_blocks(r_[0].gates() * work, [&](int64_t first, int64_t last) {
      r_[0].multiply(direction.r[0], rows, 0, first, last);
      if (gru) reset(f, s, rows, first, last);
      if (!gru) finish(first, last);
    });
    if (!gru) return;
    for (GateRow& row : rows) {
      float* candidate = s.candidate + (row.x - s.h);
      row = candidate_waits() ? GateRow{candidate, row.y + 2 * units_, row.y + 2 * units_}
                              : GateRow{row.x, direction.candidate_bias, candidate};
    }
    for_blocks(work, [&](int64_t first, int64_t last) {
      r_[1].multiply(direction.r[1], rows, 0, first, last);
      finish(first, last);
    });
  }

  // Computes the update and reset gates of a GRU, and the state after the reset if the candidate depends on it.
  void reset(const GateFunction* f, const State& s, std::span<const GateRow> rows, int64_t first, int64_t last) const {
    const int64_t at = first * kUnitBlock, n = (last - first) * kUnitBlock;
    for (const GateRow& row : rows) {
      apply_gate(layer_, f[0], row.y + at, n);
      apply_gate(layer_, f[0], row.y + units_ + at, n);
      if (candidate_waits()) clone_of<multiply>(row.y + units_ + at, row.x + at, s.candidate + (row.x - s.h) + at, n);
    }
  }

  Layer layer_;
  RecurrentExtents e_;
  int64_t units_;  // padded to whole blocks
  std::vector<GatePanels> w_, r_;
  PackedWeights::Pack w_pack_, r_pack_;  // null: packed in each run
  std::vector<Job> jobs_;
  bool has_peephole_;
  bool apart_ = true;  // true: jobs run in parallel; false: one after another, each on all threads
  int64_t ahead_ = 1;
  int64_t scratch_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Step> make_recurrent(const PlanContext& context, const Layer& layer, RecurrentExtents extents,
                                     Tensors inputs, PackedWeights& packed) {
  return std::make_unique<RecurrentStep>(context.threads, layer, extents, inputs, packed);
}

}  // namespace backplane::cpu
