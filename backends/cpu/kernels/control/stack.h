// SPDX-License-Identifier: Apache-2.0
// Collects the tensors that the iterations of a loop return, and stacks them along a new axis.
#pragma once

#include "runtime/value.h"

namespace backplane::cpu {

class Stack {
 public:
  // `value` must be a tensor with the type and extents of the first one pushed. Throws sdk::Error if it is not.
  void push(Value value);
  // Call once. Returns the tensors stacked along `axis` (counted from the back if negative), in reverse order if
  // `reversed`. If there are none, returns an empty tensor whose other extents are those of type `item`, with 0 for
  // extents that `item` leaves open. Throws sdk::Error if there is no such axis, or the result would have more than
  // BP_MAX_RANK dimensions.
  Value finish(const bp_graph_t& graph, const bp_type_t& item, int64_t axis, bool reversed);

 private:
  bool bytewise_ = true;  // whether the tensors are in `bytes_`; strings and sub-byte types are in `items_`
  bp_dtype_t dtype_ = BP_DTYPE_UNDEFINED;
  Shape shape_;
  int64_t count_ = 0;
  std::shared_ptr<std::vector<std::byte>> bytes_ = std::make_shared<std::vector<std::byte>>();
  std::vector<Value> items_;
};

}  // namespace backplane::cpu
