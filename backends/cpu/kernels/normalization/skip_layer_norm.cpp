// SPDX-License-Identifier: Apache-2.0
// com.microsoft SkipLayerNormalization and SkipSimplifiedLayerNormalization normalize the sum of two inputs and an
// optional bias over its last dimension. SimplifiedLayerNormalization normalizes a single input.
#include "kernels/common/function_kernel.h"
#include "kernels/float16/compute_type.h"
#include "kernels/normalization/normalized_row.h"
#include "kernels/simd/clones.h"
#include "runtime/parallel.h"

namespace backplane::cpu {

namespace {

// The indices of inputs, -1 if the operator has no such input.
struct Inputs {
  int skip, gamma, beta, bias;
  bool centred;
};
constexpr Inputs kSkip{1, 2, 3, 4, true};
constexpr Inputs kSkipSimplified{1, 2, -1, 3, false};
constexpr Inputs kSimplified{-1, 1, -1, -1, false};

Tensor pick(Tensors tensors, int slot) {
  return slot < 0 ? Tensor{} : at(tensors, static_cast<size_t>(slot));
}

// Whether a tensor has one number for each of the `n` elements of a row: [n], [1, n] …
bool is_row(const Shape& shape, int64_t n) {
  return shape.elements() == n && (shape.rank() == 0 || shape[shape.rank() - 1] == n);
}

CLONED void add_row(const float* x, const float* y, float* sum, int64_t n) {
  for (int64_t i = 0; i < n; ++i) sum[i] = x[i] + y[i];
}

void run(const Inputs& slots, float epsilon, bool plain, int64_t n, Tensors in, Tensors out) {
  std::vector<float> stores[5], y_store, sum_store;
  const auto floats = [&](int slot, size_t store) -> const float* {
    const Tensor tensor = pick(in, slot);
    return tensor.present() ? as_compute(tensor, stores[store]) : nullptr;
  };
  const float *x = floats(0, 0), *skip = floats(slots.skip, 1), *gamma = floats(slots.gamma, 2),
              *beta = floats(slots.beta, 3), *bias = floats(slots.bias, 4);
  const int64_t skip_elements = pick(in, slots.skip).shape.elements();  // `skip` may be broadcast over the batch
  const Tensor mean = at(out, 1), inverse = at(out, 2), sums = at(out, 3);
  float* y = result_buffer(out[0], y_store);
  float* kept = sums.present() ? result_buffer(sums, sum_store) : nullptr;
  parallel(n == 0 ? 0 : in[0].shape.elements() / n, 1 + kCheapGrain / (1 + n), [&](int64_t begin, int64_t end) {
    std::vector<float> sum(static_cast<size_t>(skip == nullptr && bias == nullptr ? 0 : n));
    for (int64_t r = begin; r < end; ++r) {
      const float* row = x + r * n;
      for (const float* addend : {skip == nullptr ? nullptr : skip + r * n % skip_elements, bias}) {
        if (addend == nullptr) continue;
        clone_of<add_row>(row, addend, sum.data(), n);
        row = sum.data();
      }
      if (kept != nullptr) std::copy_n(row, n, kept + r * n);
      const RowStatistics s = normalized_row(plain, row, gamma, beta, epsilon, slots.centred, y + r * n, n);
      // SimplifiedLayerNormalization has no output for the mean; its output 1 is the inverse deviation.
      const Tensor& deviation = slots.skip < 0 ? mean : inverse;
      if (slots.skip >= 0 && mean.present()) mean.as<float>()[r] = s.mean;
      if (deviation.present()) deviation.as<float>()[r] = s.inverse;
    }
  });
  store_result(out[0], y_store);
  if (sums.present()) store_result(sums, sum_store);
}

template <const Inputs& kSlots>
Verdict supports(const Node& node) {
  constexpr bp_dtype_set_t kReals = just(BP_DTYPE_FLOAT) | just(BP_DTYPE_FLOAT16) | just(BP_DTYPE_BFLOAT16);
  if (Verdict v = accepts(node, static_cast<uint32_t>(kSlots.gamma) + 1, {kReals, kReals, kReals, kReals, kReals}); !v)
    return v;
  const int64_t axis = node.attr("axis", int64_t{-1}), rank = node.input_type(0).rank;
  if (axis != -1 && axis != rank - 1)
    return no(BP_REASON_ATTRIBUTE, "axis is " + std::to_string(axis) + " for an input of rank " + std::to_string(rank) +
                                       "; only the last axis is supported");
  return yes();
}

template <const Inputs& kSlots>
std::unique_ptr<Kernel> create(const Node& node) {
  return make_kernel([epsilon = node.attr("epsilon", kSlots.skip < 0 ? 1e-5f : 1e-12f)](const PlanContext& context,
                                                                                        Tensors in) -> Plan {
    const Shape& x = in[0].shape;
    const int64_t n = x.rank() == 0 ? 1 : x[x.rank() - 1];
    for (int slot : {kSlots.gamma, kSlots.beta, kSlots.bias})
      if (Tensor t = pick(in, slot); t.present() && !is_row(t.shape, n))
        return fail("input " + std::to_string(slot) + " " + to_string(t.shape) + " does not fit " + to_string(x));
    Shape rows = x;
    if (x.rank() > 0) rows[x.rank() - 1] = 1;
    if (kSlots.skip >= 0) {
      // `skip` has the input's extents, except that its first extent may be missing or 1.
      const Shape& skip = in[1].shape;
      bool fits = skip.rank() <= x.rank() && skip.rank() > 0;
      const int off = x.rank() - skip.rank();
      for (int d = 0; fits && d < skip.rank(); ++d) fits = skip[d] == x[d + off] || (d + off == 0 && skip[d] == 1);
      if (!fits || off > 1) return fail("skip " + to_string(skip) + " does not fit " + to_string(x));
    }
    return make_plan({x, rows, rows, x}, [epsilon, n, plain = context.reference](Tensors inputs, Tensors outputs) {
      run(kSlots, epsilon, plain, n, inputs, outputs);
    });
  });
}

}  // namespace

[[gnu::cold]] std::span<const Row> skip_layer_norm_rows() {
  static constexpr Row kRows[] = {
      Row{kMicrosoft, "SkipLayerNormalization", 1, supports<kSkip>, create<kSkip>}.in_fp32(),
      Row{kMicrosoft, "SkipSimplifiedLayerNormalization", 1, supports<kSkipSimplified>, create<kSkipSimplified>}
          .in_fp32(),
      Row{kMicrosoft, "SimplifiedLayerNormalization", 1, supports<kSimplified>, create<kSimplified>}.in_fp32(),
      Row{"", "SimplifiedLayerNormalization", 1, supports<kSimplified>, create<kSimplified>}.in_fp32(),
  };
  return kRows;
}

}  // namespace backplane::cpu
