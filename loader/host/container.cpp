// SPDX-License-Identifier: Apache-2.0
#include "host/container.h"

#include <fmt/format.h>

#include <cstring>
#include <new>

#include "base/abi.h"
#include "base/dtype.h"

using backplane::Result;
using backplane::Status;

namespace {

constexpr uint32_t kMaxDepth = 64;  // because containers are destroyed recursively

Status decreases(uint64_t i, int64_t offset) {
  return {BP_INVALID_ARGUMENT, fmt::format("string offset {} is {}, less than the previous offset", i, offset)};
}

// The size of a dense host tensor in bytes. For strings it follows from their last offset; check_offsets checks all.
Result<uint64_t> dense_bytes(const bp_tensor_t& tensor, const void* data) {
  for (uint32_t i = 0; i < tensor.rank; ++i) {
    if (tensor.extents[i] < 0)
      return Status(BP_INVALID_ARGUMENT, fmt::format("extent {} of the tensor is negative: {}", i, tensor.extents[i]));
  }
  const uint64_t count = backplane::dense_elements(tensor.rank, tensor.extents);
  const uint64_t capacity = tensor.buffer.bytes;
  uint64_t bits, bytes;
  if (tensor.dtype == BP_DTYPE_STRING) {
    if (count >= UINT64_MAX / 8 - 1 || (count + 1) * 8 > capacity)
      return Status(BP_INVALID_ARGUMENT,
                    fmt::format("the offsets of {} strings do not fit in {} bytes", count, capacity));
    int64_t last;
    std::memcpy(&last, static_cast<const char*>(data) + count * 8, 8);
    if (last < 0) return decreases(count, last);
    bytes = (count + 1) * 8 + static_cast<uint64_t>(last);
  } else {
    const uint32_t width = backplane::dtype_bits(tensor.dtype);
    if (!width)
      return Status(BP_INVALID_ARGUMENT,
                    fmt::format("the tensor's data type is {}, which is undefined or unknown", tensor.dtype));
    if (__builtin_mul_overflow(count, uint64_t{width}, &bits))
      return Status(BP_INVALID_ARGUMENT, fmt::format("a tensor of {} elements does not fit in memory", count));
    bytes = bits / 8 + (bits % 8 != 0);
  }
  if (bytes > capacity)
    return Status(BP_INVALID_ARGUMENT,
                  fmt::format("the tensor needs {} bytes, but its buffer has {}", bytes, capacity));
  return bytes;
}

// Checks the offsets of strings in a container's copy of a tensor, because the caller's memory may change at any time:
// it may be shared with the process of an isolated backend.
Status check_offsets(const bp_tensor_t& tensor, const std::byte* copy, uint64_t bytes) {
  const uint64_t count = backplane::dense_elements(tensor.rank, tensor.extents);
  int64_t before = 0;
  for (uint64_t i = 0; i <= count; ++i) {
    int64_t offset;
    std::memcpy(&offset, copy + i * 8, 8);
    if (offset < before) return decreases(i, offset);
    before = offset;
  }
  if (static_cast<uint64_t>(before) > bytes - (count + 1) * 8)
    return {BP_INVALID_ARGUMENT, "the string offsets changed while the tensor was appended"};
  return {};
}

}  // namespace

Result<const bp_container_t::Element*> bp_container_t::at(uint64_t i) const {
  if (i >= elements_.size())
    return Status(BP_NOT_FOUND, fmt::format("there is no element {}: the container has {}", i, elements_.size()));
  return &elements_[i];
}

Status bp_container_t::tensor(uint64_t i, bp_tensor_t* out) const {
  BP_ASSIGN(const Element* element, at(i));
  if (element->child) return {BP_TYPE_MISMATCH, fmt::format("element {} is a container: use `child`", i)};
  bp_tensor_t tensor{};
  tensor.dtype = element->dtype;
  tensor.rank = static_cast<uint32_t>(element->extents.size());
  tensor.extents = element->extents.data();
  tensor.buffer.address = element->data.get();
  tensor.buffer.bytes = element->bytes;
  return backplane::abi::write(tensor, out, "out_tensor");
}

Status bp_container_t::child(uint64_t i, bp_container_t** out) const {
  if (!out) return {BP_INVALID_ARGUMENT, "out_container is NULL"};
  BP_ASSIGN(const Element* element, at(i));
  if (!element->child) return {BP_TYPE_MISMATCH, fmt::format("element {} is a tensor: use `tensor`", i)};
  *out = element->child.get();
  return {};
}

Status bp_container_t::key(uint64_t i, bp_bytes_t* out) const {
  if (!out) return {BP_INVALID_ARGUMENT, "out_key is NULL"};
  BP_ASSIGN(const Element* element, at(i));
  *out = {element->key.data(), element->key.size()};
  return {};
}

Status bp_container_t::may_append(bp_bytes_t key) const {
  if (kind_ == BP_KIND_OPTIONAL && !elements_.empty())
    return {BP_BAD_STATE, "the optional already has an element: call `clear` first"};
  if (kind_ == BP_KIND_MAP && !key.data)
    return {BP_INVALID_ARGUMENT, "an element of a map needs a key, but `key` is NULL"};
  return {};
}

Status bp_container_t::append(bp_bytes_t key, const bp_tensor_t* given) {
  BP_TRY(may_append(key));
  BP_ASSIGN(const bp_tensor_t tensor, backplane::abi::read(given, "bp_tensor_t"));
  if (tensor.rank > BP_MAX_RANK)
    return {BP_INVALID_ARGUMENT,
            fmt::format("the tensor's rank is {}; at most {} is accepted", tensor.rank, BP_MAX_RANK)};
  if (tensor.rank && !tensor.extents) return {BP_INVALID_ARGUMENT, "the tensor's extents are NULL"};
  if (tensor.layout != BP_LAYOUT_DENSE || tensor.buffer.memory)
    return {BP_INVALID_ARGUMENT, "only dense tensors in host memory can be appended: copy the tensor into one first"};
  BP_TRY(backplane::abi::check_buffer(tensor.buffer, "the tensor's buffer"));
  if (!tensor.buffer.address && tensor.buffer.bytes)
    return {BP_INVALID_ARGUMENT,
            fmt::format("the tensor's address is NULL, but its buffer has {} bytes", tensor.buffer.bytes)};
  const std::byte* data = static_cast<const std::byte*>(tensor.buffer.address);
  if (data) data += tensor.buffer.offset;
  BP_ASSIGN(const uint64_t bytes, dense_bytes(tensor, data));

  Element element;
  if (key.data) element.key.assign(static_cast<const char*>(key.data), key.size);
  element.dtype = tensor.dtype;
  element.extents.assign(tensor.extents, tensor.extents + tensor.rank);
  element.bytes = bytes;
  element.data.reset(new std::byte[bytes]);
  if (bytes) std::memcpy(element.data.get(), data, bytes);
  if (tensor.dtype == BP_DTYPE_STRING) BP_TRY(check_offsets(tensor, element.data.get(), bytes));
  elements_.push_back(std::move(element));
  return {};
}

Status bp_container_t::append_child(bp_bytes_t key, bp_container_t** out) {
  if (!out) return {BP_INVALID_ARGUMENT, "out_child is NULL"};
  *out = nullptr;
  BP_TRY(may_append(key));
  if (depth_ + 1 >= kMaxDepth)
    return {BP_RESOURCE_EXHAUSTED, fmt::format("containers can be nested at most {} deep", kMaxDepth)};
  Element element;
  if (key.data) element.key.assign(static_cast<const char*>(key.data), key.size);
  element.child = std::make_unique<bp_container_t>(0, depth_ + 1);
  elements_.push_back(std::move(element));
  *out = elements_.back().child.get();
  return {};
}

Status bp_container_t::assign(const bp_container_t& from) {
  bp_container_t fresh(kind_, depth_);
  for (uint64_t i = 0; i < from.count(); ++i) {
    bp_bytes_t key{};
    (void)from.key(i, &key);  // succeeds; empty except in a map
    bp_tensor_t tensor{};
    tensor.size = sizeof tensor;
    if (from.tensor(i, &tensor).ok()) {
      BP_TRY(fresh.append(key, &tensor));
      continue;
    }
    bp_container_t *inner = nullptr, *copy = nullptr;
    BP_TRY(from.child(i, &inner));
    BP_TRY(fresh.append_child(key, &copy));
    BP_TRY(copy->assign(*inner));
  }
  elements_.swap(fresh.elements_);
  return {};
}

namespace backplane {
namespace {

// Calls `call`, unless `container` is NULL. Only a status code crosses the ABI.
template <class F>
bp_status_t fenced(const bp_container_t* container, F call) noexcept {
  if (!container) return BP_INVALID_ARGUMENT;
  try {
    return call().code();
  } catch (const std::bad_alloc&) {
    return BP_RESOURCE_EXHAUSTED;
  } catch (...) {
    return BP_INTERNAL;
  }
}

}  // namespace

const bp_container_api_t* container_api() {
  static const bp_container_api_t kTable = {
      .size = sizeof(bp_container_api_t),
      .count = [](const bp_container_t* c) -> uint64_t { return c ? c->count() : 0; },
      .tensor = [](const bp_container_t* c, uint64_t i,
                   bp_tensor_t* out) { return fenced(c, [&] { return c->tensor(i, out); }); },
      .child = [](const bp_container_t* c, uint64_t i,
                  bp_container_t** out) { return fenced(c, [&] { return c->child(i, out); }); },
      .key = [](const bp_container_t* c, uint64_t i,
                bp_bytes_t* out) { return fenced(c, [&] { return c->key(i, out); }); },
      .append = [](bp_container_t* c, bp_bytes_t key,
                   const bp_tensor_t* tensor) { return fenced(c, [&] { return c->append(key, tensor); }); },
      .append_child = [](bp_container_t* c, bp_bytes_t key,
                         bp_container_t** out) { return fenced(c, [&] { return c->append_child(key, out); }); },
      .clear =
          [](bp_container_t* c) {
            if (c) c->clear();
          },
  };
  return &kTable;
}

Result<std::unique_ptr<bp_container_t>> make_container(uint32_t kind) {
  if (kind != BP_KIND_SEQUENCE && kind != BP_KIND_OPTIONAL && kind != BP_KIND_MAP)
    return Status(
        BP_INVALID_ARGUMENT,
        fmt::format("kind {} is not a container: use BP_KIND_SEQUENCE, BP_KIND_OPTIONAL or BP_KIND_MAP", kind));
  return std::make_unique<bp_container_t>(kind);
}

}  // namespace backplane
