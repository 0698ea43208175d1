// SPDX-License-Identifier: Apache-2.0
#include "runtime/value.h"

#include <algorithm>
#include <cstring>

#include "backplane/graph.hpp"
#include "backplane/sdk/fence.hpp"
#include "runtime/memory.h"
#include "runtime/watch.h"

namespace backplane::cpu {

namespace {

// Returns the number of elements per byte of a sub-byte type, 0 for other types.
int64_t packed(bp_dtype_t dtype) {
  int64_t bytes = bytes_of(dtype, 4);
  return bytes == 1 ? 4 : bytes == 2 ? 2 : 0;
}

// Copies bytes and checks the watch after each megabyte: the first write to new memory takes much longer than a copy.
void copy_bytes(const void* source, void* target, int64_t size, Pace& pace) {
  constexpr int64_t kPiece = int64_t{1} << 20;
  for (int64_t at = 0; at < size; at += kPiece) {
    const int64_t count = std::min(kPiece, size - at);
    pace.spend(count);
    std::memcpy(static_cast<std::byte*>(target) + at, static_cast<const std::byte*>(source) + at,
                static_cast<size_t>(count));
  }
}

constexpr int64_t kTextWork = 16;  // work per string, in addition to its bytes

template <class Text>
Value texts_of(const Shape& shape, std::span<const Text> texts) {
  Pace pace;
  size_t size = (texts.size() + 1) * sizeof(int64_t);
  for (const Text& text : texts) {
    pace.spend(1);
    size += text.size();
  }
  std::shared_ptr<std::byte> memory = allocate(static_cast<int64_t>(size));
  auto* offsets = reinterpret_cast<int64_t*>(memory.get());
  auto* bytes = reinterpret_cast<char*>(offsets + texts.size() + 1);
  int64_t end = 0;
  *offsets++ = end;
  for (const Text& text : texts) {
    pace.spend(kTextWork);
    copy_bytes(text.data(), bytes + end, static_cast<int64_t>(text.size()), pace);
    end += static_cast<int64_t>(text.size());
    *offsets++ = end;
  }
  void* data = memory.get();
  return Value::of({BP_DTYPE_STRING, shape, data}, std::move(memory));
}

// A tensor to be joined, with its `extent` along the axis.
struct Part {
  const Tensor* tensor;
  int64_t extent;
};

// Joins tensors along an axis. `outer` and `inner`: the products of the extents before and after the axis.
Value join(std::span<const Part> parts, const Shape& shape, int64_t outer, int64_t inner) {
  bp_dtype_t dtype = parts[0].tensor->dtype;
  if (!countable(shape)) throw_uncountable(shape);
  if (shape.elements() == 0) outer = 0;
  Pace pace;
  if (dtype == BP_DTYPE_STRING) {
    std::vector<std::string_view> texts;
    require_memory(shape.elements(), sizeof(std::string_view));
    texts.reserve(static_cast<size_t>(shape.elements()));
    for (int64_t o = 0; o < outer; ++o) {
      for (const Part& part : parts) {
        Texts source(*part.tensor);
        int64_t count = part.extent * inner;
        for (int64_t i = 0; i < count; ++i) {
          pace.spend(kTextWork);
          texts.push_back(source[o * count + i]);
        }
      }
    }
    return make_texts(shape, texts);
  }
  Value result = Value::allocate(dtype, shape);
  int64_t to = 0;
  for (int64_t o = 0; o < outer; ++o) {
    for (const Part& part : parts) {
      int64_t count = part.extent * inner;
      pace.spend(count);
      copy_elements(dtype, part.tensor->data, o * count, result.tensor.data, to, count);
      to += count;
    }
  }
  return result;
}

void check_alike(const Tensor& first, const Tensor& other, int free_axis) {
  bool alike = first.dtype == other.dtype && first.shape.rank() == other.shape.rank();
  for (int d = 0; alike && d < first.shape.rank(); ++d) alike = d == free_axis || first.shape[d] == other.shape[d];
  if (!alike) {
    throw sdk::Error(BP_TYPE_MISMATCH, "a " + std::string(view::dtype_name(other.dtype)) + " tensor of shape " +
                                           to_string(other.shape) + " cannot be joined to a " +
                                           std::string(view::dtype_name(first.dtype)) + " tensor of shape " +
                                           to_string(first.shape));
  }
}

}  // namespace

Value Value::of(Tensor tensor, std::shared_ptr<const void> holder) {
  return {BP_KIND_TENSOR, std::move(tensor), std::move(holder), nullptr};
}

Value Value::allocate(bp_dtype_t dtype, const Shape& shape) {
  if (!countable(shape)) throw_uncountable(shape);
  std::shared_ptr<std::byte> memory = cpu::allocate(cpu::bytes_of(dtype, shape.elements()));
  void* data = memory.get();
  return of({dtype, shape, data}, std::move(memory));
}

Value Value::container(uint32_t kind) {
  Value value;
  value.kind = kind;
  value.elements = std::make_shared<Elements>();
  return value;
}

Elements& own_elements(Value& value) {
  if (value.elements.use_count() != 1) value.elements = std::make_shared<Elements>(*value.elements);
  return *value.elements;
}

Value own(Value value) {
  if (value.kind != BP_KIND_TENSOR || value.holder != nullptr) return value;
  int64_t bytes = bytes_of(value.tensor);
  std::shared_ptr<std::byte> memory = allocate(bytes);
  Pace pace;
  copy_bytes(value.tensor.data, memory.get(), bytes, pace);
  value.tensor.data = memory.get();
  value.holder = std::move(memory);
  return value;
}

Value as_kind(Value value, uint32_t kind) {
  if (value.kind == kind || !value.present()) return value;
  if (kind == BP_KIND_OPTIONAL) {
    Value optional = Value::container(kind);
    optional.elements->values.push_back(own(std::move(value)));
    return optional;
  }
  if (value.kind == BP_KIND_OPTIONAL && value.elements->values.size() == 1) return Value(value.elements->values[0]);
  return value;
}

Value as_declared(Value value, const bp_type_t& type) {
  value = as_kind(std::move(value), type.kind);
  Tensor& tensor = value.tensor;
  if (value.kind == BP_KIND_TENSOR && type.rank == 0 && tensor.shape.rank() > 0 && tensor.shape.elements() == 1) {
    tensor.shape = Shape{};
    tensor.format = Format::kDense;
  }
  return value;
}

int64_t bytes_of(const Tensor& tensor) {
  if (tensor.dtype != BP_DTYPE_STRING) return bytes_of(tensor.dtype, tensor.shape.elements());
  int64_t count = tensor.shape.elements();
  return (count + 1) * static_cast<int64_t>(sizeof(int64_t)) + tensor.as<const int64_t>()[count];
}

Value make_texts(const Shape& shape, std::span<const std::string_view> texts) {
  return texts_of(shape, texts);
}
Value make_texts(const Shape& shape, std::span<const std::string> texts) {
  return texts_of(shape, texts);
}

std::string check_texts(const Tensor& tensor, uint64_t capacity) {
  auto count = static_cast<uint64_t>(tensor.shape.elements());
  uint64_t table = (count + 1) * sizeof(int64_t);
  if (tensor.data == nullptr || count >= capacity / sizeof(int64_t) || table > capacity) {
    return std::to_string(count) + " strings need " + std::to_string(table) + " bytes of offsets; the buffer has " +
           std::to_string(tensor.data == nullptr ? 0 : capacity) + " bytes";
  }
  const auto* offsets = tensor.as<const int64_t>();
  bool sound = offsets[0] == 0;
  for (uint64_t i = 0; i < count && sound; ++i) sound = offsets[i] <= offsets[i + 1];
  if (sound && static_cast<uint64_t>(offsets[count]) <= capacity - table) return {};
  return "its string offsets must start at 0, never decrease and end at most at " + std::to_string(capacity - table) +
         ", the bytes of text in its buffer";
}

void copy_elements(bp_dtype_t dtype, const void* source, int64_t from, void* target, int64_t to, int64_t count) {
  const auto* in = static_cast<const uint8_t*>(source);
  auto* out = static_cast<uint8_t*>(target);
  if (count == 0) return;
  int64_t per_byte = packed(dtype);
  if (per_byte == 0) {
    int64_t width = bytes_of(dtype, 1);
    std::memcpy(out + to * width, in + from * width, static_cast<size_t>(count * width));
    return;
  }
  // The first element written to a byte zeroes the rest of it. Elements are copied in order, so the rest is written
  // later.
  int64_t bits = 8 / per_byte;
  auto mask = static_cast<uint8_t>((1 << bits) - 1);
  for (int64_t i = 0; i < count; ++i) {
    int64_t s = from + i, t = to + i;
    auto element = static_cast<uint8_t>(in[s / per_byte] >> (s % per_byte * bits) & mask);
    auto shift = t % per_byte * bits;
    uint8_t before = shift == 0 ? uint8_t{0} : out[t / per_byte];
    out[t / per_byte] = static_cast<uint8_t>(before | element << shift);
  }
}

Value concatenate(std::span<const Value> values, int axis) {
  const Tensor& first = values[0].tensor;
  Shape shape = first.shape;
  shape[axis] = 0;
  std::vector<Part> parts;
  for (const Value& value : values) {
    check_alike(first, value.tensor, axis);
    parts.push_back({&value.tensor, value.tensor.shape[axis]});
    shape[axis] += value.tensor.shape[axis];
  }
  return join(parts, shape, shape.elements(0, axis), shape.elements(axis + 1, shape.rank()));
}

Value stack(std::span<const Value> values, int axis) {
  const Tensor& first = values[0].tensor;
  if (first.shape.rank() == BP_MAX_RANK)
    throw sdk::Error(BP_UNSUPPORTED, "a stack of tensors would have a rank above " + std::to_string(BP_MAX_RANK));
  Shape shape;
  std::vector<Part> parts;
  for (int d = 0; d < axis; ++d) shape.push_back(first.shape[d]);
  shape.push_back(static_cast<int64_t>(values.size()));
  for (int d = axis; d < first.shape.rank(); ++d) shape.push_back(first.shape[d]);
  for (const Value& value : values) {
    check_alike(first, value.tensor, -1);
    parts.push_back({&value.tensor, 1});
  }
  return join(parts, shape, shape.elements(0, axis), shape.elements(axis + 1, shape.rank()));
}

Value slice(const Value& value, int axis, int64_t begin, int64_t end) {
  const Tensor& source = value.tensor;
  Shape shape = source.shape;
  shape[axis] = end - begin;
  int64_t outer = shape.elements(0, axis);
  int64_t inner = shape.elements(axis + 1, shape.rank());
  int64_t stride = source.shape[axis] * inner;
  int64_t count = (end - begin) * inner;
  if (shape.elements() == 0) outer = 0;
  Pace pace;
  if (source.dtype == BP_DTYPE_STRING) {
    Texts all(source);
    std::vector<std::string_view> texts;
    require_memory(shape.elements(), sizeof(std::string_view));
    texts.reserve(static_cast<size_t>(shape.elements()));
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < count; ++i) {
        pace.spend(kTextWork);
        texts.push_back(all[o * stride + begin * inner + i]);
      }
    }
    return make_texts(shape, texts);
  }
  // One contiguous range of whole bytes needs no copy.
  if (outer == 1 && packed(source.dtype) == 0) {
    Tensor part{source.dtype, shape, source.as<std::byte>() + begin * inner * bytes_of(source.dtype, 1)};
    return Value::of(part, value.holder);
  }
  Value result = Value::allocate(source.dtype, shape);
  for (int64_t o = 0; o < outer; ++o) {
    pace.spend(count);
    copy_elements(source.dtype, source.data, o * stride + begin * inner, result.tensor.data, o * count, count);
  }
  return result;
}

Value reshaped(Value value, const Shape& shape) {
  value.tensor.shape = shape;
  return value;
}

std::string describe_value(const Value& value) {
  if (value.kind != BP_KIND_TENSOR) return value.present() ? "a container" : "no value";
  return "a " + std::string(view::dtype_name(value.tensor.dtype)) + " tensor of shape " + to_string(value.tensor.shape);
}

}  // namespace backplane::cpu
