// SPDX-License-Identifier: Apache-2.0
// Clip, whose bounds are optional scalar inputs.
#include <limits>

#include "kernels/common/function_kernel.h"
#include "kernels/common/support.h"

namespace backplane::cpu {
namespace {

Verdict supports(const Node& node) {
  constexpr bp_dtype_set_t kTypes = set_of(Numbers{});
  if (Verdict verdict = accepts(node, 1, {kTypes, kTypes, kTypes}); !verdict) return verdict;
  for (uint32_t slot : {1u, 2u})
    if (node.has_input(slot))
      if (Verdict verdict = same_type(node, 0, slot); !verdict) return verdict;
  return yes();
}

template <class T>
void clip(Tensors in, Tensors out) {
  using C = compute_t<T>;
  const bool floating = std::is_floating_point_v<C>;
  C low = floating ? -std::numeric_limits<C>::infinity() : std::numeric_limits<C>::lowest();
  C high = floating ? std::numeric_limits<C>::infinity() : std::numeric_limits<C>::max();
  if (const Tensor bound = at(in, 1); bound.present()) low = static_cast<C>(*bound.as<T>());
  if (const Tensor bound = at(in, 2); bound.present()) high = static_cast<C>(*bound.as<T>());
  const T* x = in[0].as<T>();
  T* y = out[0].as<T>();
  parallel(in[0].stored(), kCheapGrain, [&](int64_t begin, int64_t end) {
#pragma GCC ivdep  // iterations are independent, even in place
    for (int64_t i = begin; i < end; ++i) {
      const C value = static_cast<C>(x[i]), raised = value < low ? low : value;
      y[i] = static_cast<T>(raised > high ? high : raised);
    }
  });
  if (out[0].format == Format::kBlocked) clear_padding(out[0]);
}

std::unique_ptr<Kernel> create(const Node&) {
  return make_kernel([](Tensors inputs) -> Plan {
    for (size_t slot : {1, 2})
      if (const Tensor bound = at(inputs, slot); bound.present() && bound.shape.elements() != 1)
        return fail("a bound must be a scalar, but has shape " + to_string(bound.shape));
    Plan plan =
        make_plan({inputs[0].shape},
                  [](Tensors in, Tensors out) {
                    dispatch<Numbers>(in[0].dtype, [&](auto tag) { clip<typename decltype(tag)::type>(in, out); });
                  },
                  {.inplace = 0});
    keep_format(plan, inputs);
    return plan;
  });
}

}  // namespace

[[gnu::cold]] std::span<const Row> clip_rows() {
  static constexpr Row kRows[] = {Row{"", "Clip", 11, supports, create}.in_fp32_elements()};
  return kRows;
}

}  // namespace backplane::cpu
