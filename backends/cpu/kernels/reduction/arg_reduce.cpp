// SPDX-License-Identifier: Apache-2.0
// ArgMax and ArgMin. NaN counts as the largest element in ArgMax and as the smallest in ArgMin.
#include "kernels/common/function_kernel.h"
#include "kernels/common/support.h"

namespace backplane::cpu {
namespace {

template <bool kLargest, class T>
void arg_extreme(const T* x, int64_t* y, int64_t outer, int64_t n, int64_t inner, bool last) {
  using C = compute_t<T>;
  const auto better = [](C a, C b) { return b != b ? false : a != a || (kLargest ? a > b : a < b); };
  parallel(outer * inner, std::max<int64_t>(1, kCheapGrain / n), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T* line = x + i / inner * n * inner + i % inner;
      int64_t best = 0;
      C value = static_cast<C>(line[0]);
      for (int64_t k = 1; k < n; ++k) {
        const C candidate = static_cast<C>(line[k * inner]);
        if (last ? !better(value, candidate) : better(candidate, value)) {
          best = k;
          value = candidate;
        }
      }
      y[i] = best;
    }
  });
}

Verdict supports(const Node& node) {
  return accepts(node, 1, {set_of(Numbers{})});
}

template <bool kLargest>
std::unique_ptr<Kernel> create(const Node& node) {
  return make_kernel([axis_attribute = node.attr("axis", int64_t{0}), keep = node.attr("keepdims", int64_t{1}) != 0,
                      last = node.attr("select_last_index", int64_t{0}) != 0](Tensors inputs) -> Plan {
    const Shape& shape = inputs[0].shape;
    const int axis = axis_of(axis_attribute, shape.rank());
    if (axis < 0) return bad_axis(axis_attribute, shape.rank());
    const int64_t outer = shape.elements(0, axis), n = shape[axis], inner = shape.elements(axis + 1, shape.rank());
    if (n == 0) return fail("axis " + std::to_string(axis) + " of shape " + to_string(shape) + " has no elements");
    Shape to;
    for (int d = 0; d < shape.rank(); ++d) {
      if (d != axis)
        to.push_back(shape[d]);
      else if (keep)
        to.push_back(1);
    }
    return make_plan({to}, [=](Tensors in, Tensors out) {
      dispatch<Numbers>(in[0].dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        arg_extreme<kLargest>(in[0].as<T>(), out[0].as<int64_t>(), outer, n, inner, last);
      });
    });
  });
}

}  // namespace

[[gnu::cold]] std::span<const Row> arg_reduce_rows() {
  static constexpr Row kRows[] = {
      Row{"", "ArgMax", 1, supports, create<true>}.in_fp32(),
      Row{"", "ArgMin", 1, supports, create<false>}.in_fp32(),
  };
  return kRows;
}

}  // namespace backplane::cpu
