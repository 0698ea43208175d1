// SPDX-License-Identifier: Apache-2.0
#include "engine/row.h"

#include <climits>

#include "engine/cost.h"

namespace backplane::gpu {

sdk::Verdict Row::judge(const sdk::Node& node, const sdk::Query<DeviceCaps>& query) const {
  constexpr int32_t kMaxRank = 16;  // the highest rank that kernels handle
  const DeviceCaps& caps = query.caps;
  // Kernels count elements in 32 bits.
  sdk::Verdict verdict = sdk::expect(node)
                             .dtypes(caps.dtypes())
                             .ranks(kMaxRank)
                             .elements_at_most(INT_MAX)
                             .form(form)
                             .attributes()
                             .input_dtype(0, types)
                             .also(supports);
  if (sdk::accepted(verdict)) {
    verdict.seconds = expected_seconds(caps, node);
    verdict.confidence = caps.measured ? 0.5f : 0.3f;
    const bp_dtype_t dtype = node.input(0).dtype();
    if (query.compute_types != 0 && summed_by == SummedBy::kProducts && caps.products != nullptr)
      verdict.compute_types = query.compute_types & caps.products->compute_types(dtype);
    if (query.compute_types != 0 && summed_by == SummedBy::kConvolutions && caps.convolutions != nullptr)
      verdict.compute_types = query.compute_types & caps.convolutions->compute_types(dtype);
  }
  return verdict;
}

}  // namespace backplane::gpu
