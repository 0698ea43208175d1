// SPDX-License-Identifier: Apache-2.0
// TopK: the k largest or smallest elements along an axis. Of equal elements, the one with the lower index comes first.
#include <array>
#include <functional>
#include <numeric>

#include "kernels/common/function_kernel.h"
#include "kernels/common/support.h"
#include "kernels/movement/order.h"
#include "kernels/simd/clones.h"
#include "runtime/implementations.h"
#include "runtime/memory.h"
#include "runtime/parallel.h"
#include "runtime/watch.h"

namespace backplane::cpu {
namespace {

Verdict supports(const Node& node) {
  return accepts(node, 2, {set_of(Numbers{}), just(BP_DTYPE_INT64)});
}

template <class T>
void top_k(const T* x, T* values, int64_t* indices, int64_t outer, int64_t n, int64_t inner, int64_t k, bool largest) {
  using C = compute_t<T>;
  parallel(outer * inner, std::max<int64_t>(1, kMathGrain / std::max<int64_t>(1, n)), [&](int64_t begin, int64_t end) {
    std::vector<int64_t> order(static_cast<size_t>(n));
    Pace pace;
    for (int64_t i = begin; i < end; ++i) {
      const T* line = x + i / inner * n * inner + i % inner;
      std::iota(order.begin(), order.end(), 0);
      const auto first = [&](int64_t a, int64_t b) {
        pace.spend(1);
        const C p = static_cast<C>(line[a * inner]), q = static_cast<C>(line[b * inner]);
        const bool before = largest ? ordered_before(q, p) : ordered_before(p, q);
        const bool after = largest ? ordered_before(p, q) : ordered_before(q, p);
        return before || (!after && a < b);
      };
      std::partial_sort(order.begin(), order.begin() + k, order.end(), first);
      const int64_t base = i / inner * k * inner + i % inner;
      for (int64_t r = 0; r < k; ++r) {
        if (values != nullptr) values[base + r * inner] = line[order[static_cast<size_t>(r)] * inner];
        if (indices != nullptr) indices[base + r * inner] = order[static_cast<size_t>(r)];
      }
    }
  });
}

// ---- Contiguous floats ---------------------------------------------------------------------------------------------

// Computes keys that are larger for elements that come earlier in the result. NaN is larger than all numbers; -0 equals
// 0.
CLONED void order_keys(const float* x, int32_t* keys, int64_t n, bool largest) {
  for (int64_t i = 0; i < n; ++i) {
    const float value = x[i] + 0.0f;
    const auto bits = __builtin_bit_cast(int32_t, value);
    int32_t key = bits < 0 ? bits ^ INT32_MAX : bits;
    key = value == value ? key : INT32_MAX;
    keys[i] = largest ? key : ~key;
  }
}
CLONED bool any_above(const int32_t* keys, int64_t n, int32_t threshold) {
  int32_t above = 0;
  for (int64_t i = 0; i < n; ++i) above |= keys[i] > threshold ? 1 : 0;
  return above != 0;
}

// Returns a rank for element i that is larger the earlier the element comes in the result: the key in the upper 32
// bits, and the complement of the index in the lower 32.
uint64_t ranked(int32_t key, int64_t i) {
  const uint32_t ordered = static_cast<uint32_t>(key) ^ 0x80000000u;
  return uint64_t{ordered} << 32 | (UINT32_MAX - static_cast<uint32_t>(i));
}

// Writes the k highest ranks of a row to `best`, in descending order. Skips pieces of the row that have no
// key above the k-th highest key of an earlier part.
void choose(const int32_t* keys, int64_t n, int64_t k, std::vector<uint64_t>& best) {
  constexpr int64_t kPiece = 64;
  const auto room = static_cast<size_t>(2 * k + 16), wanted = static_cast<size_t>(k);
  const auto reduce = [&] {
    std::ranges::nth_element(best, best.begin() + k - 1, std::greater());
    best.resize(wanted);
  };
  best.clear();
  int32_t threshold = INT32_MIN;
  bool full = false;  // whether the threshold is the smallest of k earlier keys
  for (int64_t from = 0; from < n; from += kPiece) {
    const int64_t end = std::min(n, from + kPiece);
    if (full && !clone_of<any_above>(keys + from, end - from, threshold)) continue;
    // The loop has no branches, because it is unpredictable which elements are selected.
    std::array<int64_t, kPiece> found;
    size_t count = 0;
    for (int64_t i = from; i < end; ++i) {
      found[count] = i;
      count += !full || keys[i] > threshold ? 1 : 0;
    }
    for (size_t i = 0; i < count; ++i) best.push_back(ranked(keys[found[i]], found[i]));
    if (best.size() < (full ? room : wanted)) continue;
    reduce();
    full = true;
    threshold = static_cast<int32_t>(static_cast<uint32_t>(best.back() >> 32) ^ 0x80000000u);
  }
  if (best.size() > wanted) reduce();
  std::ranges::sort(best, std::greater());
}

void top_k_floats(const float* x, float* values, int64_t* indices, int64_t rows, int64_t n, int64_t k, bool largest) {
  parallel(rows, std::max<int64_t>(1, kCheapGrain / n), [&](int64_t begin, int64_t end) {
    std::vector<int32_t> keys(static_cast<size_t>(n));
    std::vector<uint64_t> best;
    for (int64_t row = begin; row < end; ++row) {
      clone_of<order_keys>(x + row * n, keys.data(), n, largest);
      choose(keys.data(), n, k, best);
      for (int64_t r = 0; r < k; ++r) {
        const auto i = static_cast<int64_t>(UINT32_MAX - static_cast<uint32_t>(best[static_cast<size_t>(r)]));
        if (values != nullptr) values[row * k + r] = x[row * n + i];
        if (indices != nullptr) indices[row * k + r] = i;
      }
    }
  });
}

// Input to the implementations in kTopKs: a TopK for one set of extents. X is seen as [outer, n, inner].
struct TopKProblem {
  bp_dtype_t dtype;
  Shape to;
  int64_t outer, n, inner, k;
  bool largest;
};

const char* refuse_rows(const PlanContext&, TopKProblem& p) {
  if (p.dtype != BP_DTYPE_FLOAT) return "the elements are not fp32";
  if (p.inner != 1) return "the axis is not the last one";
  return p.k == 0 || p.n > INT32_MAX ? "K is 0, or a row has over 2^31 elements" : nullptr;
}
Plan plan_rows(const PlanContext&, TopKProblem& p) {
  return make_plan({p.to, p.to}, [p](Tensors in, Tensors out) {
    top_k_floats(in[0].as<float>(), out[0].as<float>(), at(out, 1).as<int64_t>(), p.outer, p.n, p.k, p.largest);
  });
}

Plan plan_direct(const PlanContext&, TopKProblem& p) {
  return make_plan({p.to, p.to}, [p](Tensors in, Tensors out) {
    dispatch<Numbers>(in[0].dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      top_k(in[0].as<T>(), out[0].as<T>(), at(out, 1).as<int64_t>(), p.outer, p.n, p.inner, p.k, p.largest);
    });
  });
}

constexpr std::array kTopKs = {
    Implementation<TopKProblem>{"rows", refuse_rows, plan_rows},
    Implementation<TopKProblem>{"direct", nullptr, plan_direct},
};
ImplementationNames implementations() {
  return names_of("topk", kTopKs);
}

std::unique_ptr<Kernel> create(const Node& node) {
  return make_kernel([axis_attribute = node.attr("axis", int64_t{-1}), largest = node.attr("largest", int64_t{1}) != 0](
                         const PlanContext& context, Tensors inputs) -> Plan {
    const Shape& shape = inputs[0].shape;
    const int axis = axis_of(axis_attribute, shape.rank());
    if (axis < 0) return bad_axis(axis_attribute, shape.rank());
    if (inputs[1].shape.elements() != 1)
      return fail("K has shape " + to_string(inputs[1].shape) + "; it must have one element");
    if (!known(inputs[1])) return deferred();
    const int64_t k = *inputs[1].as<int64_t>();
    if (k < 0 || k > shape[axis])
      return fail("K is " + std::to_string(k) + ", but axis " + std::to_string(axis) + " has " +
                  std::to_string(shape[axis]) + " elements");
    TopKProblem problem{
        inputs[0].dtype, shape, shape.elements(0, axis), shape[axis], shape.elements(axis + 1, shape.rank()), k,
        largest};
    problem.to[axis] = k;
    if (problem.to.elements() > 0) require_memory(problem.n, context.threads * int64_t{sizeof(int64_t)});
    return plan_best(context, "topk", kTopKs, problem);
  });
}

}  // namespace

[[gnu::cold]] std::span<const Row> top_k_rows() {
  static constexpr Row kRows[] = {
      Row{"", "TopK", 11, supports, create}.in_fp32().with(kOmitsOutput0).choosing(implementations)};
  return kRows;
}

}  // namespace backplane::cpu
