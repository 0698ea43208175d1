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

namespace {

// Whether the host can compute the value from constants and extents. Visits the nodes that the value is computed from,
// and decrements `left` for each; returns false when `left` is used up.
bool follows_from_extents(const Table& table, const sdk::Value& value, uint32_t& left) {
  if (!value || !value.has_static_shape() || !is_host_dtype(value.dtype())) return false;
  if (elements(value.extents()) > kMostOnHost) return false;
  if (value.weight() != nullptr) return true;
  if (value.raw().producer == BP_NONE || left == 0) return false;
  --left;
  const sdk::Node node(value.graph(), value.raw().producer);
  const Row* row = table.find(node);
  if (row == nullptr || row->host.compute == nullptr || node.output_count() != 1) return false;
  if (row->host.computes != nullptr && !row->host.computes(node)) return false;
  for (uint32_t slot = 0; slot < node.input_count(); ++slot) {
    const sdk::Value input = node.input(slot);
    if (!input) continue;
    if (row->host.from_extents ? input.rank() < 0 : !follows_from_extents(table, input, left)) return false;
  }
  return true;
}

}  // namespace

bool is_computed_on_host(const Table& table, const sdk::Value& value) {
  uint32_t left = kMostFollowed;
  return value.raw().producer != BP_NONE && follows_from_extents(table, value, left);
}

}  // namespace backplane::gpu
