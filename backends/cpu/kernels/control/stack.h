// SPDX-License-Identifier: Apache-2.0
// The results of all iterations, stacked along a new axis.
#pragma once

#include "runtime/value.h"

namespace backplane::cpu {

class Stack {
 public:
  // Throws sdk::Error if the tensor differs from earlier tensors in type or extents.
  void push(Value value);
  // Stacks all tensors along `axis` (negative: from the back), the last one first if `reversed`. Without tensors:
  // returns one of type `item` that is empty along that axis; extents that the type leaves open are 0. Throws
  // sdk::Error if there is no such axis.
  Value finish(const bp_graph_t& graph, const bp_type_t& item, int64_t axis, bool reversed);

 private:
  bool bytewise_ = true;  // in `bytes_`; else in `items_`: strings and types of less than a byte
  bp_dtype_t dtype_ = BP_DTYPE_UNDEFINED;
  Shape shape_;
  int64_t count_ = 0;
  std::shared_ptr<std::vector<std::byte>> bytes_ = std::make_shared<std::vector<std::byte>>();
  std::vector<Value> items_;
};

}  // namespace backplane::cpu
