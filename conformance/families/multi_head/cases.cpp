// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

namespace backplane::conform {
namespace {

enum class Mask { kNone, kLengths, kEndsAndStarts, kLengthsAndPositions, kKeys, kOneNumber, kQueries };

// A random mask of one form. The first or second key is never masked.
Argument mask_of(Mask form, Random& random, int64_t batch, int64_t length, int64_t keys) {
  Extents extents;
  switch (form) {
    case Mask::kNone:
      return {};
    case Mask::kLengths:
      extents = {batch};
      break;
    case Mask::kEndsAndStarts:
      extents = {2 * batch};
      break;
    case Mask::kLengthsAndPositions:
      extents = {3 * batch + 2};
      break;
    case Mask::kKeys:
      extents = {batch, keys};
      break;
    case Mask::kOneNumber:
      extents = {batch, 1};
      break;
    case Mask::kQueries:
      extents = {batch, length, keys};
  }
  Array mask(BP_DTYPE_INT32, extents);
  for (int64_t i = 0; i < mask.count(); ++i) {
    double& x = mask.values[static_cast<size_t>(i)];
    if (extents.size() == 1)
      x = static_cast<double>(i < batch ? random.integer(2, keys) : random.integer(0, 1));
    else
      x = static_cast<double>(i % keys == 0 ? 1 : random.integer(-1, 1));
  }
  return to_tensor(mask);
}

struct Quantized {
  const char* variant;
  int64_t batch, length, inputs, heads, size;
  bp_dtype_t weights = BP_DTYPE_INT8;
  Mask mask = Mask::kNone;
  bool per_column = false, causal = false, zeros = true;
  int64_t past = -1;  // -1: no input `past`
  uint32_t outputs = 1;
  float scale = 0, filter = -10000;
};
const Quantized kQuantized[] = {
    {"plain", 2, 4, 12, 3, 8},
    {"unsigned_weights", 1, 5, 16, 2, 8, BP_DTYPE_UINT8},
    {"columns", 2, 3, 20, 2, 8, BP_DTYPE_INT8, Mask::kNone, true},
    {"unsigned_columns", 1, 3, 9, 1, 5, BP_DTYPE_UINT8, Mask::kNone, true},
    {"no_zero_points", 1, 4, 8, 2, 4, BP_DTYPE_INT8, Mask::kNone, false, false, false},
    {"lengths", 3, 5, 8, 2, 4, BP_DTYPE_INT8, Mask::kLengths},
    {"ends_and_starts", 3, 6, 8, 2, 4, BP_DTYPE_INT8, Mask::kEndsAndStarts},
    {"keys", 2, 5, 8, 2, 4, BP_DTYPE_INT8, Mask::kKeys},
    {"one_number", 2, 5, 8, 2, 4, BP_DTYPE_INT8, Mask::kOneNumber},
    {"queries", 2, 5, 8, 2, 4, BP_DTYPE_INT8, Mask::kQueries, true},
    {"causal", 2, 6, 8, 2, 4, BP_DTYPE_INT8, Mask::kNone, false, true},
    {"causal_keys", 2, 6, 8, 2, 4, BP_DTYPE_INT8, Mask::kKeys, false, true},
    {"cache", 2, 3, 8, 2, 4, BP_DTYPE_INT8, Mask::kNone, true, false, true, 4, 2},
    {"causal_cache", 2, 3, 8, 2, 4, BP_DTYPE_INT8, Mask::kLengths, false, true, true, 2, 2},
    {"first_cache", 1, 3, 8, 2, 4, BP_DTYPE_INT8, Mask::kNone, false, false, true, -1, 2},
    {"scaled", 4, 4, 8, 2, 4, BP_DTYPE_INT8, Mask::kLengths, false, false, true, -1, 1, 0.25f, -2},
    {"long", 1, 70, 24, 2, 16},
    {"one_query", 1, 1, 64, 2, 32, BP_DTYPE_INT8, Mask::kNone, true},
    {"empty", 0, 4, 8, 2, 4},
};

Problem make(const Quantized& row, Random& random, bp_dtype_t dtype) {
  const int64_t width = row.heads * row.size;
  const auto bytes = [&](bp_dtype_t type, Extents extents, int64_t low, int64_t high) {
    Array array(type, std::move(extents));
    for (double& x : array.values) x = static_cast<double>(random.integer(low, high));
    return to_tensor(array);
  };
  const auto scales = [&](Extents extents) {
    Array array(dtype, std::move(extents));
    for (double& x : array.values) x = random.uniform(0.5, 2) / 128;
    return to_tensor(array);
  };
  const Extents columns = row.per_column ? Extents{3 * width} : Extents{};
  const bool is_signed = row.weights == BP_DTYPE_INT8;
  Problem problem{
      "QAttention",
      {{"mask_filter_value", row.filter}, {"num_heads", row.heads}, {"unidirectional", int64_t{row.causal}}},
      {},
      row.outputs};
  if (row.scale != 0) problem.attributes.push_back({"scale", row.scale});
  auto& arguments = problem.arguments;
  arguments = {bytes(BP_DTYPE_UINT8, {row.batch, row.length, row.inputs}, 0, 255),
               constant(bytes(row.weights, {row.inputs, 3 * width}, is_signed ? -128 : 0, is_signed ? 127 : 255)),
               constant(random_tensor(random, dtype, {3 * width}, Fill::kAroundZero)), constant(scales({})),
               constant(scales(columns))};
  arguments.push_back(mask_of(row.mask, random, row.batch, row.length, row.length + std::max<int64_t>(0, row.past)));
  arguments.push_back(row.zeros ? constant(bytes(BP_DTYPE_UINT8, {}, 100, 150)) : Argument());
  arguments.push_back(row.zeros ? constant(bytes(row.weights, columns, is_signed ? -9 : 110, is_signed ? 9 : 140))
                                : Argument());
  if (row.past >= 0)
    arguments.push_back(random_tensor(random, dtype, {2, row.batch, row.heads, row.past, row.size}, Fill::kAroundZero));
  while (!arguments.back().tensor) arguments.pop_back();
  return problem;
}

struct Combined {
  const char* variant;
  int64_t batch, length, inputs, heads, size;
  int64_t value_size = 0;  // 0: `size`, without qkv_hidden_sizes
  Mask mask = Mask::kNone;
  bool bias = true, causal = false, known = true;
  int64_t past = -1;                           // -1: no input `past`
  int64_t added_batches = 0, added_heads = 0;  // 0: nothing is added to the scores
  uint32_t outputs = 1;
  float scale = 0, filter = -10000;
};
const Combined kCombined[] = {
    {.variant = "plain", .batch = 2, .length = 4, .inputs = 12, .heads = 3, .size = 8},
    {.variant = "given_weights", .batch = 1, .length = 5, .inputs = 16, .heads = 2, .size = 8, .known = false},
    {.variant = "no_bias", .batch = 2, .length = 3, .inputs = 9, .heads = 2, .size = 4, .bias = false},
    {.variant = "value_size", .batch = 2, .length = 3, .inputs = 8, .heads = 2, .size = 4, .value_size = 6},
    {.variant = "lengths", .batch = 3, .length = 5, .inputs = 8, .heads = 2, .size = 4, .mask = Mask::kLengths},
    {.variant = "ends_and_starts",
     .batch = 3,
     .length = 6,
     .inputs = 8,
     .heads = 2,
     .size = 4,
     .mask = Mask::kEndsAndStarts},
    {.variant = "keys", .batch = 2, .length = 5, .inputs = 8, .heads = 2, .size = 4, .mask = Mask::kKeys},
    {.variant = "one_number", .batch = 2, .length = 5, .inputs = 8, .heads = 2, .size = 4, .mask = Mask::kOneNumber},
    {.variant = "queries", .batch = 2, .length = 5, .inputs = 8, .heads = 2, .size = 4, .mask = Mask::kQueries},
    {.variant = "causal", .batch = 2, .length = 6, .inputs = 8, .heads = 2, .size = 4, .causal = true},
    {.variant = "cache", .batch = 2, .length = 3, .inputs = 8, .heads = 2, .size = 4, .past = 4, .outputs = 2},
    {.variant = "causal_cache",
     .batch = 2,
     .length = 3,
     .inputs = 8,
     .heads = 2,
     .size = 4,
     .mask = Mask::kLengths,
     .causal = true,
     .past = 2,
     .outputs = 2},
    {.variant = "first_cache", .batch = 1, .length = 3, .inputs = 8, .heads = 2, .size = 4, .outputs = 2},
    {.variant = "added",
     .batch = 2,
     .length = 4,
     .inputs = 8,
     .heads = 2,
     .size = 4,
     .added_batches = 2,
     .added_heads = 2},
    {.variant = "shared_added",
     .batch = 2,
     .length = 4,
     .inputs = 8,
     .heads = 2,
     .size = 4,
     .mask = Mask::kKeys,
     .added_batches = 1,
     .added_heads = 1},
    {.variant = "scaled",
     .batch = 4,
     .length = 4,
     .inputs = 8,
     .heads = 2,
     .size = 4,
     .mask = Mask::kLengths,
     .scale = 0.25f,
     .filter = -2},
    {.variant = "long", .batch = 1, .length = 70, .inputs = 24, .heads = 2, .size = 16},
    {.variant = "one_query", .batch = 1, .length = 1, .inputs = 64, .heads = 2, .size = 32},
    {.variant = "empty", .batch = 0, .length = 4, .inputs = 8, .heads = 2, .size = 4},
};

Problem make(const Combined& row, Random& random, bp_dtype_t dtype) {
  const auto reals = [&](Extents extents, bool known = false) {
    return Argument(random_tensor(random, dtype, std::move(extents), Fill::kAroundZero), known);
  };
  const int64_t width = row.heads * row.size, values = row.value_size == 0 ? width : row.heads * row.value_size,
                all = 2 * width + values, keys = row.length + std::max<int64_t>(0, row.past);
  Problem problem{"com.microsoft.Attention",
                  {{"do_rotary", int64_t{0}},
                   {"mask_filter_value", row.filter},
                   {"num_heads", row.heads},
                   {"past_present_share_buffer", int64_t{0}},
                   {"unidirectional", int64_t{row.causal}}},
                  {},
                  row.outputs};
  if (row.scale != 0) problem.attributes.push_back({"scale", row.scale});
  if (row.value_size != 0) problem.attributes.push_back({"qkv_hidden_sizes", Extents{width, width, values}});
  problem.arguments = {
      reals({row.batch, row.length, row.inputs}),
      reals({row.inputs, all}, row.known),
      row.bias ? reals({all}, row.known) : Argument(),
      mask_of(row.mask, random, row.batch, row.length, keys),
      row.past < 0 ? Argument() : reals({2, row.batch, row.heads, row.past, row.size}),
      row.added_heads == 0 ? Argument() : reals({row.added_batches, row.added_heads, row.length, keys})};
  while (!problem.arguments.back().tensor) problem.arguments.pop_back();
  return problem;
}

struct Given {
  const char* variant;
  int64_t batch, heads, length, fresh, size;
  int64_t value_size = 0;  // 0: `size`
  Mask mask = Mask::kNone;
  bool bias = false, causal = false, split = false;  // `split`: keys and values have an axis of heads
  int64_t past = -1;                                 // -1: no past keys and values
  int64_t added_batches = 0, added_heads = 0;        // 0: nothing is added to the scores
  uint32_t outputs = 1;
  float scale = 0, filter = -10000;
};
const Given kGiven[] = {
    {.variant = "plain", .batch = 2, .heads = 3, .length = 4, .fresh = 5, .size = 8},
    {.variant = "value_size", .batch = 2, .heads = 2, .length = 4, .fresh = 6, .size = 8, .value_size = 5},
    {.variant = "bias", .batch = 2, .heads = 2, .length = 3, .fresh = 4, .size = 8, .bias = true},
    {.variant = "bias_and_value_size",
     .batch = 1,
     .heads = 2,
     .length = 3,
     .fresh = 4,
     .size = 4,
     .value_size = 6,
     .bias = true},
    {.variant = "split", .batch = 2, .heads = 3, .length = 4, .fresh = 5, .size = 8, .split = true},
    {.variant = "lengths", .batch = 3, .heads = 2, .length = 5, .fresh = 5, .size = 4, .mask = Mask::kLengths},
    {.variant = "lengths_and_positions",
     .batch = 3,
     .heads = 2,
     .length = 5,
     .fresh = 5,
     .size = 4,
     .mask = Mask::kLengthsAndPositions},
    {.variant = "keys", .batch = 2, .heads = 2, .length = 3, .fresh = 6, .size = 4, .mask = Mask::kKeys},
    {.variant = "queries", .batch = 2, .heads = 2, .length = 3, .fresh = 6, .size = 4, .mask = Mask::kQueries},
    {.variant = "causal", .batch = 2, .heads = 2, .length = 6, .fresh = 6, .size = 4, .causal = true},
    {.variant = "cache", .batch = 2, .heads = 2, .length = 3, .fresh = 3, .size = 4, .past = 4, .outputs = 3},
    {.variant = "cache_and_bias",
     .batch = 2,
     .heads = 2,
     .length = 1,
     .fresh = 1,
     .size = 8,
     .mask = Mask::kKeys,
     .bias = true,
     .past = 6,
     .outputs = 3},
    {.variant = "causal_cache",
     .batch = 2,
     .heads = 2,
     .length = 3,
     .fresh = 3,
     .size = 4,
     .causal = true,
     .past = 2,
     .outputs = 3},
    {.variant = "first_cache", .batch = 1, .heads = 2, .length = 3, .fresh = 3, .size = 4, .outputs = 3},
    {.variant = "added",
     .batch = 2,
     .heads = 2,
     .length = 4,
     .fresh = 5,
     .size = 4,
     .added_batches = 2,
     .added_heads = 2},
    {.variant = "shared_added",
     .batch = 2,
     .heads = 2,
     .length = 4,
     .fresh = 5,
     .size = 4,
     .mask = Mask::kKeys,
     .added_batches = 1,
     .added_heads = 2},
    {.variant = "scaled",
     .batch = 4,
     .heads = 2,
     .length = 4,
     .fresh = 4,
     .size = 4,
     .mask = Mask::kLengths,
     .scale = 0.25f,
     .filter = -2},
    {.variant = "long", .batch = 1, .heads = 2, .length = 70, .fresh = 70, .size = 16},
    {.variant = "one_query", .batch = 1, .heads = 2, .length = 1, .fresh = 33, .size = 64},
    {.variant = "empty", .batch = 0, .heads = 2, .length = 4, .fresh = 4, .size = 4},
};

Problem make(const Given& row, Random& random, bp_dtype_t dtype) {
  const int64_t value_size = row.value_size == 0 ? row.size : row.value_size,
                keys = row.fresh + std::max<int64_t>(0, row.past);
  const auto reals = [&](Extents extents) {
    return Argument(random_tensor(random, dtype, std::move(extents), Fill::kAroundZero));
  };
  const auto fresh = [&](int64_t size) {
    return reals(row.split ? Extents{row.batch, row.heads, row.fresh, size}
                           : Extents{row.batch, row.fresh, row.heads * size});
  };
  const auto past = [&](int64_t size) {
    return row.past < 0 ? Argument() : reals({row.batch, row.heads, row.past, size});
  };
  Problem problem{
      "MultiHeadAttention",
      {{"mask_filter_value", row.filter}, {"num_heads", row.heads}, {"unidirectional", int64_t{row.causal}}},
      {},
      row.outputs};
  if (row.scale != 0) problem.attributes.push_back({"scale", row.scale});
  problem.arguments = {
      reals({row.batch, row.length, row.heads * row.size}),
      fresh(row.size),
      fresh(value_size),
      row.bias ? reals({row.heads * (2 * row.size + value_size)}) : Argument(),
      mask_of(row.mask, random, row.batch, row.length, keys),
      row.added_heads == 0 ? Argument() : reals({row.added_batches, row.added_heads, row.length, keys}),
      past(row.size),
      past(value_size)};
  while (!problem.arguments.back().tensor) problem.arguments.pop_back();
  return problem;
}

struct Rotary {
  const char* variant;
  Extents x;  // [batch, heads, length, size], or [batch, length, heads · size]
  int64_t pairs;
  int64_t heads = 0, rotary = 0;  // attributes
  bool interleaved = false, offset = false;
};
const Rotary kRotary[] = {
    {"plain", {2, 5, 24}, 4},
    {"interleaved", {2, 5, 24}, 4, 0, 0, true},
    {"offset", {2, 5, 24}, 4, 0, 0, false, true},
    {"offset_interleaved", {1, 4, 16}, 8, 0, 0, true, true},
    {"part", {2, 5, 24}, 2, 3, 4},
    {"part_interleaved", {2, 5, 24}, 2, 3, 4, true},
    {"heads", {2, 3, 5, 8}, 4},
    {"heads_interleaved", {2, 3, 5, 8}, 4, 0, 0, true},
    {"heads_part", {2, 3, 5, 8}, 3, 3, 6},
    {"heads_offset", {2, 3, 5, 8}, 4, 0, 0, false, true},
    {"one_position", {3, 1, 64}, 32},
    {"wide", {1, 7, 256}, 64},
    {"empty", {0, 4, 16}, 4},
};

Problem make(const Rotary& row, Random& random, bp_dtype_t dtype) {
  constexpr int64_t kLines = 12;
  const int64_t length = row.x[row.x.size() - 2];
  Array positions(BP_DTYPE_INT64, row.offset ? Extents{1} : Extents{row.x[0], length});
  for (double& x : positions.values) x = static_cast<double>(random.integer(0, kLines - (row.offset ? length : 1)));
  return {"com.microsoft.RotaryEmbedding",
          {{"interleaved", int64_t{row.interleaved}},
           {"is_packed_batching", int64_t{0}},
           {"num_heads", row.heads},
           {"rotary_embedding_dim", row.rotary},
           {"scale", 1.0f}},
          {random_tensor(random, dtype, row.x, Fill::kWide), to_tensor(positions),
           constant(random_tensor(random, dtype, {kLines, row.pairs}, Fill::kAroundZero)),
           constant(random_tensor(random, dtype, {kLines, row.pairs}, Fill::kAroundZero))}};
}

template <class Rows>
void add_rows(OpCases& cases, const char* op, const Rows& rows, std::initializer_list<bp_dtype_t> types) {
  for (const auto& row : rows) {
    for (const bp_dtype_t dtype : types)
      cases.add_to(kMicrosoft, op, dtype, row.variant,
                   [&row, dtype](Random& random) { return make(row, random, dtype); });
  }
}

}  // namespace

void add_multi_head_cases(OpCases& cases) {
  add_rows(cases, "QAttention", kQuantized, {BP_DTYPE_FLOAT, BP_DTYPE_FLOAT16});
  add_rows(cases, "com.microsoft.Attention", kCombined, {BP_DTYPE_FLOAT, BP_DTYPE_FLOAT16});
  add_rows(cases, "MultiHeadAttention", kGiven, {BP_DTYPE_FLOAT, BP_DTYPE_FLOAT16});
  add_rows(cases, "com.microsoft.RotaryEmbedding", kRotary, {BP_DTYPE_FLOAT, BP_DTYPE_FLOAT16, BP_DTYPE_BFLOAT16});
}

}  // namespace backplane::conform
