// SPDX-License-Identifier: Apache-2.0
// A row of an operator table: how an operator is implemented. The engine receives the table when a device is opened;
// the engine's code names no operator.
#pragma once

#include <span>

#include "backplane/sdk/expect.hpp"
#include "backplane/sdk/table.hpp"
#include "engine/device_caps.h"
#include "engine/host_value.h"

namespace backplane::gpu {

class Emit;

// Whether an operator's sums are computed by the engine's kernels, or by the driver's library of products or of
// convolutions where the driver has one.
enum class SummedBy { kKernels, kProducts, kConvolutions };

// An output that may be written to the memory of an input: corresponding elements have the same offset in both.
struct InPlace {
  uint32_t input, output;
  bool same_extents;  // true: both always have equal extents; false: only where they are known to, by number or name
};

// An operator, from `since_version` up to the version of its next row.
struct Row {
  std::string_view domain;
  std::string_view type;
  uint32_t since_version;
  bp_dtype_set_t types;  // of input 0, as far as the device supports them
  sdk::Form form;
  // Further conditions, or NULL. Called for coverage and again before `emit`, but only for nodes whose ranks are known
  // and whose operands are tensors of supported types. Extents may be unknown (-1).
  sdk::Verdict (*supports)(const sdk::Node& node);
  void (*emit)(Emit& e, std::string_view with);  // NULL: `host` always computes the result
  std::string_view with = {};  // passed to `emit`: a formula or a name that differs between rows with the same `emit`
  // With a library, the operator's sums use the BP_COMPUTE_* types that the session allows and the library supports.
  SummedBy summed_by = SummedBy::kKernels;
  std::span<const InPlace> in_place = {};
  HostRule host = {};
  // The error of a run in which a kernel of this operator reported a fault (LaunchBuilder::fault).
  std::string_view fault = "an index is out of range for its dimension";

  constexpr Row updating(std::span<const InPlace> pairs) const {
    Row row = *this;
    row.in_place = pairs;
    return row;
  }
  constexpr Row on_host(HostRule rule) const {
    Row row = *this;
    row.host = rule;
    return row;
  }

  // Checks all conditions of the row, and estimates the node's time on the device.
  sdk::Verdict judge(const sdk::Node& node, const sdk::Query<DeviceCaps>& query) const;
};

using Table = sdk::RowTable<Row, DeviceCaps>;

// Whether the planner computes the value on the host, from extents and constants (engine/host_value.h). Follows the
// value back through at most kMostFollowed nodes; if that is not enough, returns false.
inline constexpr uint32_t kMostFollowed = 64;
bool is_computed_on_host(const Table& table, const sdk::Value& value);

}  // namespace backplane::gpu
