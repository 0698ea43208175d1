// SPDX-License-Identifier: Apache-2.0
// CumSum and CumProd: running totals along an axis.
#include "kernels/common/function_kernel.h"
#include "kernels/common/support.h"
#include "runtime/watch.h"

namespace backplane::cpu {
namespace {

using Types = TypeList<float, double, Half, BFloat16, int32_t, int64_t, uint32_t, uint64_t>;

Verdict supports(const Node& node) {
  return accepts(node, 2, {set_of(Types{}), kIndexTypes});
}

template <bool kProduct>
std::unique_ptr<Kernel> create(const Node& node) {
  return make_kernel([exclusive = node.attr("exclusive", int64_t{0}) != 0,
                      reverse = node.attr("reverse", int64_t{0}) != 0](Tensors inputs) -> Plan {
    const Shape shape = inputs[0].shape;
    if (inputs[1].shape.elements() != 1)
      return fail("axis has shape " + to_string(inputs[1].shape) + "; it must have one element");
    return make_plan({shape}, [=](Tensors in, Tensors out) -> std::optional<std::string> {
      const int64_t axis_value = integers(in[1])[0];
      const int axis = axis_of(axis_value, shape.rank());
      if (axis < 0) return "axis " + std::to_string(axis_value) + " is out of range for shape " + to_string(shape);
      const int64_t n = shape[axis], inner = shape.elements(axis + 1, shape.rank());
      dispatch<Types>(in[0].dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        using Acc = std::conditional_t<kIsFloating<T>, double, uint64_t>;
        parallel(shape.elements(0, axis) * inner, std::max<int64_t>(1, kCheapGrain / std::max<int64_t>(1, n)),
                 [&](int64_t begin, int64_t end) {
                   Pace pace;
                   for (int64_t i = begin; i < end; ++i) {
                     const int64_t base = i / inner * n * inner + i % inner;
                     Acc acc = kProduct ? 1 : 0;
                     for (int64_t k = 0; k < n; ++k) {
                       if (k % kCheapGrain == 0) pace.spend(std::min(kCheapGrain, n - k));
                       const int64_t at = base + (reverse ? n - 1 - k : k) * inner;
                       const Acc x = static_cast<Acc>(static_cast<compute_t<T>>(in[0].as<T>()[at])), before = acc;
                       acc = kProduct ? acc * x : acc + x;
                       out[0].as<T>()[at] = static_cast<T>(static_cast<compute_t<T>>(exclusive ? before : acc));
                     }
                   }
                 });
      });
      return std::nullopt;
    });
  });
}

}  // namespace

[[gnu::cold]] std::span<const Row> cumulative_rows() {
  static constexpr Row kRows[] = {
      Row{"", "CumSum", 11, supports, create<false>}.in_fp32(),
      {"", "CumProd", 26, supports, create<true>},
  };
  return kRows;
}

}  // namespace backplane::cpu
