// SPDX-License-Identifier: Apache-2.0
#include "onnx/value.h"

#include <cstring>

#include "backplane/graph.hpp"

namespace backplane::onnx {
namespace {

std::string shape_text(const std::vector<int64_t>& extents) {
  std::string text = "[";
  for (size_t i = 0; i < extents.size(); ++i) text += (i ? "," : "") + std::to_string(extents[i]);
  return text + "]";
}

int64_t offset_at(const std::byte* bytes, uint64_t i) {
  int64_t offset;
  std::memcpy(&offset, bytes + i * sizeof offset, sizeof offset);
  return offset;
}

// Returns the size in bytes of a string tensor: its offsets and its text. Throws unless the offsets ascend from 0 and
// stay within the text.
uint64_t text_bytes(const std::byte* bytes, uint64_t size, uint64_t count) {
  const uint64_t table = (count + 1) * sizeof(int64_t);
  if (count >= size / sizeof(int64_t)) {
    throw Malformed("a string tensor of " + std::to_string(count) + " elements has only " + std::to_string(size) +
                    " bytes");
  }
  int64_t last = offset_at(bytes, 0);
  bool rises = last == 0;
  for (uint64_t i = 1; i <= count && rises; ++i) {
    const int64_t next = offset_at(bytes, i);
    rises = next >= last;
    last = next;
  }
  if (!rises || static_cast<uint64_t>(last) > size - table) {
    throw Malformed("the offsets of a string tensor do not ascend from 0 to its " + std::to_string(size - table) +
                    " bytes of text");
  }
  return table + static_cast<uint64_t>(last);
}

}  // namespace

uint64_t element_count(const std::vector<int64_t>& extents) {
  if (extents.size() > BP_MAX_RANK) {
    throw Malformed("a shape has " + std::to_string(extents.size()) + " dimensions: at most " +
                    std::to_string(BP_MAX_RANK) + " are supported");
  }
  // If one extent is 0 the product is 0, but the other extents must be valid too.
  uint64_t product = 1;
  bool empty = false;
  for (const int64_t extent : extents) {
    if (extent < 0) throw Malformed("shape " + shape_text(extents) + " has a negative extent");
    if (extent == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(product, static_cast<uint64_t>(extent), &product) || product > uint64_t{1}
                                                                                                         << 59) {
      throw Malformed("shape " + shape_text(extents) + " has more than 2^59 elements");
    }
  }
  return empty ? 0 : product;
}

uint64_t dense_bytes(bp_dtype_t dtype, const std::vector<int64_t>& extents) {
  const uint32_t bits = view::dtype_bits(dtype);
  if (bits == 0) throw Malformed(describe(dtype, extents) + " has elements of no fixed size");
  const uint64_t count = element_count(extents);
  return bits >= 8 ? count * (bits / 8) : (count * bits + 7) / 8;
}

std::string describe(bp_dtype_t dtype, const std::vector<int64_t>& extents) {
  std::string name(view::dtype_name(dtype));
  if (name == "unknown") name = "type " + std::to_string(dtype) + " ";
  return name + shape_text(extents);
}

std::string_view kind_name(uint32_t kind) {
  switch (kind) {
    case BP_KIND_TENSOR:
      return "tensor";
    case BP_KIND_SPARSE_TENSOR:
      return "sparse tensor";
    case BP_KIND_SEQUENCE:
      return "sequence";
    case BP_KIND_OPTIONAL:
      return "optional";
    case BP_KIND_MAP:
      return "map";
    default:
      return "value of unknown kind";
  }
}

uint64_t Tensor::count() const {
  return element_count(extents);
}

std::string_view Tensor::text(uint64_t i) const {
  const int64_t begin = offset_at(bytes.data(), i);
  const int64_t end = offset_at(bytes.data(), i + 1);
  const char* texts = reinterpret_cast<const char*>(bytes.data()) + (count() + 1) * sizeof(int64_t);
  return {texts + begin, static_cast<size_t>(end - begin)};
}

bp_tensor_t Tensor::as_abi() {
  bp_tensor_t tensor = {};
  tensor.size = sizeof tensor;
  tensor.dtype = dtype;
  tensor.rank = static_cast<uint32_t>(extents.size());
  tensor.layout = BP_LAYOUT_DENSE;
  tensor.extents = extents.data();
  tensor.buffer.address = bytes.data();
  tensor.buffer.bytes = bytes.size();
  return tensor;
}

Tensor Tensor::copy(const bp_tensor_t& tensor) {
  if (tensor.rank > BP_MAX_RANK)
    throw Malformed("a tensor has " + std::to_string(tensor.rank) + " dimensions: at most " +
                    std::to_string(BP_MAX_RANK) + " are supported");
  Tensor result;
  result.dtype = tensor.dtype;
  if (tensor.rank > 0) result.extents.assign(tensor.extents, tensor.extents + tensor.rank);
  const uint64_t count = element_count(result.extents);
  if (tensor.layout != BP_LAYOUT_DENSE) throw Malformed(describe(result) + " is not dense");
  if (tensor.buffer.memory != nullptr) throw Malformed(describe(result) + " is not in host memory");

  const uint64_t size = tensor.buffer.bytes;
  const auto* begin = static_cast<const std::byte*>(tensor.buffer.address) + tensor.buffer.offset;
  const bool is_text = tensor.dtype == BP_DTYPE_STRING;
  uint64_t needed = is_text ? sizeof(int64_t) : dense_bytes(tensor.dtype, result.extents);
  if (needed > size) {
    throw Malformed(describe(result) + " needs " + std::to_string(needed) + " bytes, but has " + std::to_string(size));
  }
  if (needed > 0 && tensor.buffer.address == nullptr) throw Malformed(describe(result) + " has no memory");
  if (is_text) needed = text_bytes(begin, size, count);
  if (needed > 0) result.bytes.assign(begin, begin + needed);
  return result;
}

Tensor Tensor::of_texts(std::vector<int64_t> extents, const std::vector<std::string>& texts) {
  Tensor tensor;
  tensor.dtype = BP_DTYPE_STRING;
  tensor.extents = std::move(extents);
  if (texts.size() != tensor.count()) {
    throw Malformed(describe(tensor) + " has " + std::to_string(texts.size()) + " strings instead of " +
                    std::to_string(tensor.count()));
  }
  uint64_t size = (texts.size() + 1) * sizeof(int64_t);
  for (const std::string& text : texts) size += text.size();
  tensor.bytes.resize(size);
  std::byte* offsets = tensor.bytes.data();
  std::byte* out = offsets + (texts.size() + 1) * sizeof(int64_t);
  int64_t end = 0;
  std::memcpy(offsets, &end, sizeof end);
  for (const std::string& text : texts) {
    std::memcpy(out + end, text.data(), text.size());
    end += static_cast<int64_t>(text.size());
    offsets += sizeof end;
    std::memcpy(offsets, &end, sizeof end);
  }
  return tensor;
}

}  // namespace backplane::onnx
