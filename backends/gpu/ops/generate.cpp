// SPDX-License-Identifier: Apache-2.0
// Operators that compute results from extents and a few numbers (Shape, Size, ConstantOfShape, Range, EyeLike), that
// keep or zero elements (Trilu, Dropout), or that copy or view them (Tile, DepthToSpace, SpaceToDepth, BitCast).
#include <algorithm>
#include <cmath>

#include "backplane/sdk/weights.hpp"
#include "ops/host_values.h"
#include "ops/resample.h"
#include "ops/table.h"

namespace backplane::gpu {
namespace {

// A view that repeats one element throughout `shape`.
View everywhere(const Tensor& scalar, const Shape& shape) {
  return {scalar, std::vector<int64_t>(shape.size()), 0};
}

Verdict returns_int64(const Node& node) {
  if (node.output(0).dtype() != BP_DTYPE_INT64) return sdk::no(BP_REASON_DTYPE, "its output is not int64");
  return accept();
}

// The weight of attribute `value`, or NULL.
const bp_weight_t* value_of(const Node& node) {
  const bp_attribute_t* attribute = node.attribute("value");
  if (attribute == nullptr || attribute->type != BP_ATTR_TENSOR || attribute->count != 1) return nullptr;
  return bp_graph_weight(node.graph(), *static_cast<const uint32_t*>(attribute->data));
}

void emit_constant_of_shape(Emit& e, std::string_view) {
  const Shape shape = e.ints(0);
  const bp_dtype_t dtype = e.node.output(0).dtype();
  std::vector<std::byte> bytes(bytes_of(dtype));
  if (const bp_weight_t* value = value_of(e.node); value != nullptr && value->bytes == bytes.size())
    std::copy_n(static_cast<const std::byte*>(value->data), bytes.size(), bytes.begin());
  if (std::ranges::any_of(shape, [](int64_t n) { return n < 0; }))
    throw sdk::Error(BP_INVALID_ARGUMENT, "the shape " + to_string(shape) + " has a negative extent");
  e.moved(0, shape, everywhere(e.table(dtype, {}, bytes), shape));
}

Verdict supports_constant_of_shape(const Node& node) {
  const bp_weight_t* value = value_of(node);
  const bp_dtype_t dtype = node.output(0).dtype();
  if (value == nullptr && node.attribute("value") != nullptr)
    return sdk::no(BP_REASON_ATTRIBUTE, "attribute `value` is not a tensor");
  if (value != nullptr && value->data == nullptr)
    return sdk::no(BP_REASON_ATTRIBUTE, "attribute `value` is stored in another file");
  if (dtype != (value == nullptr ? BP_DTYPE_FLOAT : value->dtype) ||
      (value != nullptr && value->bytes != bytes_of(dtype)))
    return sdk::no(BP_REASON_DTYPE, "its output does not have the type of attribute `value`");
  return known_on_host(node, 0);
}

// Sets output 0 to `count` elements: element i is at(i).
template <class T, class At>
void emit_sequence(Emit& e, bp_dtype_t dtype, int64_t count, const At& at) {
  std::vector<T> all;
  for (int64_t i = 0; i < count; ++i) all.push_back(at(i));
  e.alias(0, e.table(dtype, {count}, all), {count});
}

template <class N>
[[noreturn]] void refuse_range(N start, N limit, N delta) {
  throw sdk::Error(BP_INVALID_ARGUMENT, "a range from " + std::to_string(start) + " to " + std::to_string(limit) +
                                            " by " + std::to_string(delta) + " has no end or more than " +
                                            std::to_string(kMaxTaps) + " elements");
}

// For types whose values are exact in double.
template <class T>
void emit_range_of(Emit& e, bp_dtype_t dtype) {
  const double start = e.numbers(0).at(0), limit = e.numbers(1).at(0), delta = e.numbers(2).at(0);
  const double count = delta == 0 ? -1 : std::max(std::ceil((limit - start) / delta), 0.0);  // NaN stays NaN
  if (!(count >= 0 && count <= static_cast<double>(kMaxTaps))) refuse_range(start, limit, delta);
  emit_sequence<T>(e, dtype, static_cast<int64_t>(count), [&](int64_t i) {
    return static_cast<T>(static_cast<T>(start) + static_cast<T>(i) * static_cast<T>(delta));
  });
}

// Unsigned arithmetic is exact for all ranges of int64, even where a difference exceeds int64.
template <class T>
void emit_wide_range(Emit& e, bp_dtype_t dtype) {
  const int64_t start = e.ints(0).at(0), limit = e.ints(1).at(0), delta = e.ints(2).at(0);
  if (delta == 0) refuse_range(start, limit, delta);
  const auto from = static_cast<uint64_t>(start), to = static_cast<uint64_t>(limit), by = static_cast<uint64_t>(delta);
  uint64_t count = 0;
  if (delta > 0 && start < limit) count = (to - from - 1) / by + 1;
  if (delta < 0 && start > limit) count = (from - to - 1) / (0 - by) + 1;
  if (count > static_cast<uint64_t>(kMaxTaps)) refuse_range(start, limit, delta);
  emit_sequence<T>(e, dtype, static_cast<int64_t>(count),
                   [&](int64_t i) { return static_cast<T>(from + static_cast<uint64_t>(i) * by); });
}

void emit_range(Emit& e, std::string_view) {
  switch (const bp_dtype_t dtype = e.node.input(0).dtype()) {
    case BP_DTYPE_FLOAT:
      return emit_range_of<float>(e, dtype);
    case BP_DTYPE_DOUBLE:
      return emit_range_of<double>(e, dtype);
    case BP_DTYPE_INT16:
      return emit_range_of<int16_t>(e, dtype);
    case BP_DTYPE_INT32:
      return emit_wide_range<int32_t>(e, dtype);
    default:
      return emit_wide_range<int64_t>(e, dtype);
  }
}

Verdict supports_range(const Node& node) {
  for (const uint32_t slot : {0u, 1u, 2u}) {
    if (Verdict v = known_on_host(node, slot); !accepted(v)) return v;
  }
  return same_types(node);
}

void emit_eye_like(Emit& e, std::string_view) {
  const Shape shape = e.shape(0);
  const Tensor y = e.output(0, shape);
  e.launch("triangle", "diagonal", "-DTYPE=" + Emit::type(y))
      .out(y)
      .arg(y.count())
      .arg(shape[1])
      .arg(std::clamp<int64_t>(e.node.int_attribute("k", 0), INT32_MIN, INT32_MAX))
      .range(y.count());
}

Verdict supports_eye_like(const Node& node) {
  return expect(node).rank(0, 2, 2);
}

void emit_trilu(Emit& e, std::string_view) {
  const Tensor x = e.input(0);
  const Tensor k = e.has_input(1) ? e.input(1) : e.table(BP_DTYPE_INT64, {}, Shape{0});
  if (k.count() != 1)
    throw sdk::Error(BP_INVALID_ARGUMENT, "k has shape " + to_string(k.shape) + "; it must have one element");
  const Tensor y = e.output(0, x.shape);
  e.launch("triangle", "triangle",
           "-DTYPE=" + std::string(word_name(x.dtype)) + (e.node.int_attribute("upper", 1) != 0 ? " -DUPPER" : ""))
      .in(x)
      .in(k)
      .out(y)
      .arg(x.count())
      .arg(x.shape[x.rank() - 2])
      .arg(x.shape[x.rank() - 1])
      .range(x.count());
}

Verdict supports_trilu(const Node& node) {
  return expect(node).rank(0, 2).input_dtype(1, one(BP_DTYPE_INT64));
}

// Only for inference: no element is dropped.
void emit_dropout(Emit& e, std::string_view) {
  const Tensor x = e.input(0);
  if (e.has_output(1)) {
    const Tensor mask = e.output(1, x.shape);
    const Tensor kept = e.table(BP_DTYPE_BOOL, {}, std::vector<uint8_t>{1});
    e.move(x.shape, everywhere(kept, x.shape), {mask, dense_strides(x.shape), 0});
  }
  e.alias(0, x, x.shape);
}

Verdict supports_dropout(const Node& node) {
  if (node.output(1) && node.output(1).dtype() != BP_DTYPE_BOOL)
    return sdk::no(BP_REASON_DTYPE, "the mask is not bool");
  if (!node.input(2)) return accept();
  const auto training = sdk::weight_elements<uint8_t>(node.input(2), BP_DTYPE_BOOL);
  if (!training || training->size() != 1) return sdk::no(BP_REASON_CONSTANT, "training_mode is not a constant");
  if (training->front() != 0) return sdk::no(BP_REASON_CONSTANT, "training_mode is true; only inference is supported");
  return accept();
}

void emit_bit_cast(Emit& e, std::string_view) {
  Tensor x = e.input(0);
  x.dtype = e.node.output(0).dtype();
  e.alias(0, x, x.shape);
}

Verdict supports_bit_cast(const Node& node) {
  if (bytes_of(node.input(0).dtype()) != bytes_of(node.output(0).dtype()))
    return sdk::no(BP_REASON_DTYPE, "its output is " + std::string(view::dtype_name(node.output(0).dtype())) +
                                        ", which does not have the size of " +
                                        std::string(view::dtype_name(node.input(0).dtype())));
  return accept();
}

// A repeated dimension is read as [repeat, n] with stride 0 in the outer one.
void emit_tile(Emit& e, std::string_view) {
  const Tensor x = e.input(0);
  const std::vector<int64_t> repeats = e.ints(1), dense = dense_strides(x.shape);
  Shape shape, split;
  std::vector<int64_t> strides;
  for (size_t i = 0; i < x.rank(); ++i) {
    int64_t extent = 0;
    if (repeats.at(i) < 0 || __builtin_mul_overflow(x.shape[i], repeats[i], &extent))
      throw sdk::Error(BP_INVALID_ARGUMENT,
                       "repeats " + to_string(repeats) + " are negative, or too large for " + to_string(x.shape));
    shape.push_back(extent);
    split.insert(split.end(), {repeats[i], x.shape[i]});
    strides.insert(strides.end(), {0, dense[i]});
  }
  e.alias(0, e.computed("$0", x.dtype, split, {{x, strides, 0}}), shape);
}

Verdict supports_tile(const Node& node) {
  return known_on_host(node, 1);
}

// Moves blocks between space and depth: views input 0 as `split`, transposes that by `order`, and views it as `shape`.
void emit_blocks(Emit& e, const Shape& split, const std::vector<size_t>& order, const Shape& shape) {
  const Tensor x = e.input(0);
  const std::vector<int64_t> dense = dense_strides(split);
  Shape target;
  View view{x, {}, 0};
  for (const size_t from : order) {
    target.push_back(split[from]);
    view.strides.push_back(dense[from]);
  }
  e.alias(0, e.computed("$0", x.dtype, target, {view}), shape);
}

void emit_depth_to_space(Emit& e, std::string_view) {
  const Shape s = e.shape(0);
  const int64_t b = e.node.int_attribute("blocksize", 0);
  if (s[1] % (b * b) != 0)
    throw sdk::Error(BP_INVALID_MODEL, "the channels of shape " + to_string(s) +
                                           " are not a multiple of blocksize² = " + std::to_string(b) + "²");
  const int64_t depth = s[1] / (b * b);
  const Shape shape{s[0], depth, s[2] * b, s[3] * b};
  if (e.node.text_attribute("mode", "DCR") == "CRD")
    return emit_blocks(e, {s[0], depth, b, b, s[2], s[3]}, {0, 1, 4, 2, 5, 3}, shape);
  emit_blocks(e, {s[0], b, b, depth, s[2], s[3]}, {0, 3, 4, 1, 5, 2}, shape);
}

void emit_space_to_depth(Emit& e, std::string_view) {
  const Shape s = e.shape(0);
  const int64_t b = e.node.int_attribute("blocksize", 0);
  if (s[2] % b != 0 || s[3] % b != 0)
    throw sdk::Error(BP_INVALID_MODEL, "the spatial extents of shape " + to_string(s) +
                                           " are not multiples of blocksize " + std::to_string(b));
  const bool crd = e.node.text_attribute("mode", "DCR") == "CRD";
  emit_blocks(e, {s[0], s[1], s[2] / b, b, s[3] / b, b},
              crd ? std::vector<size_t>{0, 1, 3, 5, 2, 4} : std::vector<size_t>{0, 3, 5, 1, 2, 4},
              {s[0], s[1] * b * b, s[2] / b, s[3] / b});
}

Verdict supports_blocks(const Node& node) {
  return expect(node)
      .that(node.attribute("blocksize") != nullptr, BP_REASON_ATTRIBUTE, "blocksize is missing")
      .integer("blocksize", 1, 32768)
      .rank(0, 4, 4)
      .choice("mode", {"DCR", "CRD"});
}

constexpr bp_dtype_set_t kRanged =
    one(BP_DTYPE_FLOAT) | one(BP_DTYPE_DOUBLE) | one(BP_DTYPE_INT16) | one(BP_DTYPE_INT32) | one(BP_DTYPE_INT64);

}  // namespace

std::span<const Row> generate_rows() {
  static constexpr Row kRows[] = {
      Row{"", "Shape", 1, kAnything, kUnaryOpen, returns_int64, nullptr}.on_host({on_host::shape, true}),
      Row{"", "Size", 1, kAnything, kUnaryOpen, returns_int64, nullptr}.on_host({on_host::size, true}),
      Row{"", "ConstantOfShape", 9, one(BP_DTYPE_INT64), kUnaryOpen, supports_constant_of_shape, emit_constant_of_shape}
          .on_host({on_host::constant_of_shape}),
      Row{"", "Range", 11, kRanged, {3, 3}, supports_range, emit_range}.on_host({on_host::range}),
      {"", "EyeLike", 9, kAnything, kUnaryOpen, supports_eye_like, emit_eye_like},
      {"", "Trilu", 14, kAnything, {1, 2}, supports_trilu, emit_trilu},
      {"", "Dropout", 12, kFloats, {1, 3, Form::kSame, 2}, supports_dropout, emit_dropout},
      {"", "BitCast", 26, kAnything, kUnaryOpen, supports_bit_cast, emit_bit_cast},
      {"", "Tile", 6, kAnything, kBinary, supports_tile, emit_tile},
      {"", "DepthToSpace", 11, kAnything, kUnary, supports_blocks, emit_depth_to_space},
      {"", "SpaceToDepth", 1, kAnything, kUnary, supports_blocks, emit_space_to_depth},
  };
  return kRows;
}

}  // namespace backplane::gpu
