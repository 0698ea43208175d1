// SPDX-License-Identifier: Apache-2.0
// How an operator is implemented: a row of its family's table. The engine is given the table when a device is opened
// and names no operator itself.
#pragma once

#include "backplane/sdk/expect.hpp"
#include "backplane/sdk/table.hpp"
#include "engine/device_caps.h"

namespace backplane::gpu {

class Emit;

// An operator from one version of its operator set on, until a later row of the same operator.
struct Row {
  std::string_view domain;
  std::string_view type;
  uint32_t since_version;
  bp_dtype_set_t types;  // that input 0 may have, if the device has them
  sdk::Form form;
  // What else must hold; NULL: nothing. Asked for coverage and again before `emit`. Ranks are known, operands are
  // tensors of types that the device has; extents may be unknown (-1).
  sdk::Verdict (*supports)(const sdk::Node& node);
  void (*emit)(Emit& e, std::string_view with);
  std::string_view with = {};  // a formula or a name, for the rows that share `emit`

  // All of that, and in what time the device is expected to run the node.
  sdk::Verdict judge(const sdk::Node& node, const sdk::Query<DeviceCaps>& query) const;
};

using Table = sdk::RowTable<Row, DeviceCaps>;

}  // namespace backplane::gpu
