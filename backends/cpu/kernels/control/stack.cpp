// SPDX-License-Identifier: Apache-2.0
#include "kernels/control/stack.h"

#include <cstring>

#include "backplane/graph.hpp"
#include "backplane/sdk/fence.hpp"
#include "kernels/common/support.h"
#include "runtime/memory.h"
#include "runtime/watch.h"

namespace backplane::cpu {

void Stack::push(Value value) {
  const Tensor& tensor = value.tensor;
  if (value.kind != BP_KIND_TENSOR)
    throw sdk::Error(BP_TYPE_MISMATCH,
                     "the body of a loop returned a value that cannot be stacked, because it is not a tensor");
  if (count_++ == 0) {
    dtype_ = tensor.dtype;
    shape_ = tensor.shape;
    bytewise_ = dtype_ != BP_DTYPE_STRING && (kPackedTypes >> dtype_ & 1) == 0;
  } else if (tensor.dtype != dtype_ || !(tensor.shape == shape_)) {
    throw sdk::Error(BP_TYPE_MISMATCH,
                     "the body of a loop returned a " + std::string(view::dtype_name(tensor.dtype)) +
                         " tensor of shape " + to_string(tensor.shape) + " after a " +
                         std::string(view::dtype_name(dtype_)) + " tensor of shape " + to_string(shape_) +
                         "; the type and extents of a stacked output must be equal in all iterations");
  }
  if (!bytewise_) {
    items_.push_back(own(std::move(value)));
    return;
  }
  const auto* bytes = tensor.as<const std::byte>();
  const int64_t more = bytes_of(tensor);
  if (static_cast<size_t>(more) > bytes_->capacity() - bytes_->size())  // the vector may double its capacity
    require_memory(static_cast<int64_t>(bytes_->size()) + more, 2);
  bytes_->insert(bytes_->end(), bytes, bytes + more);
}

Value Stack::finish(const bp_graph_t& graph, const bp_type_t& item, int64_t axis_number, bool reversed) {
  if (count_ == 0) {
    dtype_ = item.dtype;
    for (int32_t d = 0; d < item.rank; ++d)
      shape_.push_back(std::max<int64_t>(0, graph.dims[item.first_dim + static_cast<uint32_t>(d)].extent));
  }
  int axis = axis_of(axis_number, shape_.rank() + 1);
  if (axis < 0) {
    throw sdk::Error(BP_INVALID_ARGUMENT, "axis " + std::to_string(axis_number) +
                                              " is out of range for a loop's stacked output of rank " +
                                              std::to_string(shape_.rank() + 1));
  }
  if (shape_.rank() == BP_MAX_RANK) {
    throw sdk::Error(BP_INVALID_ARGUMENT, "a loop's output would be stacked to rank " +
                                              std::to_string(shape_.rank() + 1) + "; at most " +
                                              std::to_string(BP_MAX_RANK) + " is supported");
  }
  Shape shape;
  for (int d = 0; d < axis; ++d) shape.push_back(shape_[d]);
  shape.push_back(count_);
  for (int d = axis; d < shape_.rank(); ++d) shape.push_back(shape_[d]);
  if (count_ == 0)
    return dtype_ == BP_DTYPE_STRING ? make_texts(shape, std::span<const std::string>())
                                     : Value::allocate(dtype_, shape);

  if (!bytewise_) {
    if (reversed) std::reverse(items_.begin(), items_.end());
    return stack(items_, axis);
  }
  if (axis == 0 && !reversed) {
    void* data = bytes_->data();
    return Value::of({dtype_, shape, data}, std::move(bytes_));
  }
  Value result = Value::allocate(dtype_, shape);
  int64_t outer = shape_.elements(0, axis);
  int64_t inner = bytes_of(dtype_, shape_.elements(axis, shape_.rank()));
  if (inner == 0 || outer == 0) return result;
  Pace pace;
  auto* to = result.tensor.as<std::byte>();
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < count_; ++i, to += inner) {
      pace.spend(inner);
      int64_t from = reversed ? count_ - 1 - i : i;
      std::memcpy(to, bytes_->data() + (from * outer + o) * inner, static_cast<size_t>(inner));
    }
  }
  return result;
}

}  // namespace backplane::cpu
