// SPDX-License-Identifier: Apache-2.0
// TopK: the k largest or smallest along an axis. Of equal values the one with the lower index comes first.
#include <numeric>

#include "ops/function_kernel.h"
#include "ops/order.h"
#include "ops/rows.h"
#include "ops/support.h"

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
    for (int64_t i = begin; i < end; ++i) {
      const T* line = x + i / inner * n * inner + i % inner;
      std::iota(order.begin(), order.end(), 0);
      const auto first = [&](int64_t a, int64_t b) {
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

std::unique_ptr<Kernel> create(const Node& node) {
  return make_kernel([axis_attribute = node.attr("axis", int64_t{-1}),
                      largest = node.attr("largest", int64_t{1}) != 0](Tensors inputs) -> Plan {
    const Shape& shape = inputs[0].shape;
    const int axis = axis_of(axis_attribute, shape.rank());
    if (axis < 0) return bad_axis(axis_attribute, shape.rank());
    if (inputs[1].shape.elements() != 1) return fail("k is not a scalar");
    if (!known(inputs[1])) return later();
    const int64_t k = *inputs[1].as<int64_t>();
    if (k < 0 || k > shape[axis])
      return fail("k is " + std::to_string(k) + " for an axis of " + std::to_string(shape[axis]));
    const int64_t outer = shape.elements(0, axis), n = shape[axis], inner = shape.elements(axis + 1, shape.rank());
    Shape to = shape;
    to[axis] = k;
    return make_plan({to, to}, [=](Tensors in, Tensors out) {
      dispatch<Numbers>(in[0].dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        top_k(in[0].as<T>(), out[0].as<T>(), at(out, 1).as<int64_t>(), outer, n, inner, k, largest);
      });
    });
  });
}

constexpr Row kRows[] = {{"", "TopK", 11, supports, create}};

}  // namespace

std::span<const Row> top_k_rows() {
  return kRows;
}

}  // namespace backplane::cpu
