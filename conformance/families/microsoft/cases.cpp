// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

namespace backplane::conform {
namespace {

// Integers from 0 to `most`.
onnx::Tensor ids(Random& random, Extents extents, int64_t most) {
  Array array(BP_DTYPE_INT32, std::move(extents));
  for (double& x : array.values) x = static_cast<double>(random.integer(0, most));
  return to_tensor(array);
}

struct Embedding {
  const char* variant;
  int64_t batch, length, width;
  bool segment_ids = true, segments = true, mask = false;
  int64_t position_batches = 0;  // 0: no position_ids
  uint32_t outputs = 1;
  bool known = false;
  float epsilon = 1e-12f;
};
const Embedding kEmbeddings[] = {
    {"plain", 2, 5, 33},
    {"known_tables", 1, 7, 64, true, true, true, 0, 2, true},
    {"mask_and_sum", 3, 4, 8, true, true, true, 0, 3},
    {"no_segments", 2, 5, 17, false, false, false, 0, 3},
    {"no_segment_ids", 2, 5, 17, false, true, false, 0, 1, false, 0.125f},
    {"positions", 2, 6, 16, true, true, false, 2},
    {"shared_positions", 2, 6, 16, true, true, true, 1, 2},
    {"wide", 1, 3, 768},
    {"one_element", 2, 3, 1},
    {"empty", 0, 4, 8, true, true, true, 0, 3},
};

Problem make(const Embedding& row, Random& random, bp_dtype_t dtype) {
  constexpr int64_t kWords = 11, kPositions = 9, kSegments = 3;
  const auto table = [&](Extents extents, Fill fill = Fill::kAroundZero) {
    return Argument(random_tensor(random, dtype, std::move(extents), fill), row.known);
  };
  const auto chosen = [&](bool is_there, int64_t count, int64_t batches) {
    return is_there ? Argument(ids(random, {batches, row.length}, count - 1)) : Argument();
  };
  Problem problem{"EmbedLayerNormalization", {{"epsilon", row.epsilon}}, {}, row.outputs};
  problem.arguments = {chosen(true, kWords, row.batch), chosen(row.segment_ids, kSegments, row.batch),
                       table({kWords, row.width}), table({kPositions, row.width}),
                       row.segments ? table({kSegments, row.width}) : Argument()};
  problem.arguments.push_back(table({row.width}, Fill::kPositive));
  problem.arguments.push_back(table({row.width}));
  if (row.mask || row.position_batches > 0) problem.arguments.push_back(chosen(row.mask, 3, row.batch));
  if (row.position_batches > 0) problem.arguments.push_back(chosen(true, kPositions, row.position_batches));
  return problem;
}

struct Convolution {
  const char* variant;
  Extents image, weights;  // [N, H, W, C] and [M, kernel…, C / group]
  bool bias = true, known = true;
  Extents pads = {0, 0, 0, 0}, strides = {1, 1}, dilations = {1, 1};
  int64_t group = 1;
  const char* auto_pad = "NOTSET";
};
const Convolution kConvolutions[] = {
    {"plain", {2, 9, 7, 16}, {16, 3, 3, 16}, true, true, {1, 1, 1, 1}},
    {"given_weights", {1, 8, 8, 12}, {10, 3, 3, 12}, true, false, {1, 1, 1, 1}},
    {"pointwise", {1, 7, 7, 32}, {24, 1, 1, 32}},
    {"odd_channels", {2, 6, 9, 19}, {33, 3, 3, 19}, false, true, {1, 1, 1, 1}},
    {"image", {1, 17, 19, 3}, {16, 7, 7, 3}, true, true, {3, 3, 3, 3}, {2, 2}},
    {"strides", {1, 15, 14, 16}, {32, 3, 3, 16}, true, true, {1, 0, 1, 2}, {2, 3}},
    {"dilations", {1, 13, 13, 16}, {16, 3, 3, 16}, true, true, {2, 2, 2, 2}, {1, 1}, {2, 2}},
    {"groups", {2, 8, 8, 24}, {36, 3, 3, 6}, true, true, {1, 1, 1, 1}, {1, 1}, {1, 1}, 4},
    {"depthwise", {1, 11, 11, 32}, {32, 3, 3, 1}, true, true, {1, 1, 1, 1}, {1, 1}, {1, 1}, 32},
    {"same_upper", {1, 10, 11, 16}, {16, 4, 3, 16}, false, true, {}, {2, 2}, {1, 1}, 1, "SAME_UPPER"},
    {"line", {2, 21, 16}, {16, 5, 16}, true, true, {2, 2}, {1}, {1}},
    {"empty", {0, 8, 8, 16}, {16, 3, 3, 16}},
};

Problem make(const Convolution& row, Random& random, bp_dtype_t dtype, Fill fill) {
  Problem problem{"NhwcConv",
                  {{"auto_pad", std::string(row.auto_pad)},
                   {"dilations", row.dilations},
                   {"group", row.group},
                   {"kernel_shape", Extents(row.weights.begin() + 1, row.weights.end() - 1)},
                   {"strides", row.strides}},
                  {}};
  if (!row.pads.empty()) problem.attributes.push_back({"pads", row.pads});
  problem.exact_sums = fill == Fill::kWhole;
  problem.drawn_around_zero = fill == Fill::kAroundZero && !row.bias;
  problem.arguments.emplace_back(random_tensor(random, dtype, row.image, fill));
  problem.arguments.emplace_back(random_tensor(random, dtype, row.weights, fill), row.known);
  if (row.bias) problem.arguments.emplace_back(random_tensor(random, dtype, {row.weights[0]}, fill), row.known);
  return problem;
}

struct GroupQuery {
  const char* variant;
  int64_t heads, kv_heads, size, length;
  int64_t past;                  // positions in past_key; -1: no past
  std::vector<int64_t> lengths;  // of the sequences, with the new tokens
  int64_t total;
  int64_t rotary = 0;  // rotated elements of a head
  bool packed = false, interleaved = false, positions = false, smooth = false, sinks = false, known_total = true;
  int64_t bias_batches = 0, bias_heads = 0;  // 0: no bias
  int64_t window = -1;
  float scale = 0, softcap = 0;
  uint32_t outputs = 3;
};
const GroupQuery kGroupQueries[] = {
    {.variant = "prompt", .heads = 4, .kv_heads = 2, .size = 8, .length = 5, .past = -1, .lengths = {5, 3}, .total = 5},
    {.variant = "token", .heads = 4, .kv_heads = 1, .size = 16, .length = 1, .past = 7, .lengths = {6, 2}, .total = 6},
    {.variant = "growing", .heads = 3, .kv_heads = 3, .size = 8, .length = 2, .past = 4, .lengths = {6, 5}, .total = 6},
    {.variant = "full", .heads = 2, .kv_heads = 2, .size = 4, .length = 1, .past = 5, .lengths = {5}, .total = 5},
    {.variant = "rotary",
     .heads = 4,
     .kv_heads = 2,
     .size = 8,
     .length = 2,
     .past = 6,
     .lengths = {6, 3},
     .total = 6,
     .rotary = 8},
    {.variant = "interleaved",
     .heads = 2,
     .kv_heads = 2,
     .size = 8,
     .length = 3,
     .past = 6,
     .lengths = {4, 6},
     .total = 6,
     .rotary = 4,
     .interleaved = true},
    {.variant = "packed",
     .heads = 4,
     .kv_heads = 2,
     .size = 8,
     .length = 2,
     .past = 5,
     .lengths = {4, 2},
     .total = 4,
     .packed = true},
    {.variant = "packed_rotary",
     .heads = 4,
     .kv_heads = 2,
     .size = 8,
     .length = 1,
     .past = 9,
     .lengths = {4, 9},
     .total = 9,
     .rotary = 8,
     .packed = true},
    {.variant = "positions",
     .heads = 2,
     .kv_heads = 1,
     .size = 8,
     .length = 3,
     .past = -1,
     .lengths = {3, 3},
     .total = 3,
     .rotary = 8,
     .positions = true},
    {.variant = "window",
     .heads = 2,
     .kv_heads = 2,
     .size = 8,
     .length = 4,
     .past = 8,
     .lengths = {8, 5},
     .total = 8,
     .window = 3},
    {.variant = "softcap",
     .heads = 2,
     .kv_heads = 1,
     .size = 8,
     .length = 2,
     .past = 4,
     .lengths = {4},
     .total = 4,
     .softcap = 1.5f},
    {.variant = "scaled",
     .heads = 2,
     .kv_heads = 1,
     .size = 8,
     .length = 2,
     .past = 4,
     .lengths = {4, 3},
     .total = 4,
     .scale = 0.75f},
    {.variant = "bias",
     .heads = 4,
     .kv_heads = 2,
     .size = 8,
     .length = 2,
     .past = 6,
     .lengths = {5, 3},
     .total = 6,
     .bias_batches = 2,
     .bias_heads = 4},
    {.variant = "shared_bias",
     .heads = 4,
     .kv_heads = 2,
     .size = 8,
     .length = 3,
     .past = -1,
     .lengths = {3, 3},
     .total = 3,
     .bias_batches = 1,
     .bias_heads = 1},
    {.variant = "sinks",
     .heads = 4,
     .kv_heads = 2,
     .size = 8,
     .length = 2,
     .past = 4,
     .lengths = {4, 2},
     .total = 4,
     .sinks = true},
    {.variant = "smooth",
     .heads = 2,
     .kv_heads = 2,
     .size = 8,
     .length = 1,
     .past = 4,
     .lengths = {3},
     .total = 4,
     .smooth = true},
    {.variant = "one_output",
     .heads = 2,
     .kv_heads = 1,
     .size = 8,
     .length = 2,
     .past = 3,
     .lengths = {3},
     .total = 3,
     .outputs = 1},
    {.variant = "given_total",
     .heads = 2,
     .kv_heads = 1,
     .size = 8,
     .length = 1,
     .past = 4,
     .lengths = {2, 4},
     .total = 4,
     .known_total = false},
    {.variant = "empty", .heads = 2, .kv_heads = 1, .size = 8, .length = 1, .past = 4, .lengths = {}, .total = 2},
};

Problem make(const GroupQuery& row, Random& random, bp_dtype_t dtype) {
  constexpr int64_t kLines = 12;
  const auto batch = static_cast<int64_t>(row.lengths.size());
  const auto reals = [&](Extents extents) {
    return Argument(random_tensor(random, dtype, extents, Fill::kAroundZero));
  };
  const auto numbers = [&](bp_dtype_t type, Extents extents, const auto& number) {
    Array array(type, std::move(extents));
    for (size_t i = 0; i < array.values.size(); ++i) array.values[i] = static_cast<double>(number(i));
    return Argument(to_tensor(array));
  };
  Problem problem{"GroupQueryAttention",
                  {{"do_rotary", int64_t{row.rotary != 0}},
                   {"kv_num_heads", row.kv_heads},
                   {"local_window_size", row.window},
                   {"num_heads", row.heads},
                   {"rotary_interleaved", int64_t{row.interleaved}},
                   {"softcap", row.softcap}},
                  {},
                  row.outputs};
  if (row.scale != 0) problem.attributes.push_back({"scale", row.scale});
  if (row.smooth) problem.attributes.push_back({"smooth_softmax", int64_t{1}});
  auto& arguments = problem.arguments;
  const Extents fresh = {batch, row.length, row.kv_heads * row.size}, cache = {batch, row.kv_heads, row.past, row.size};
  arguments = {reals({batch, row.length, (row.heads + (row.packed ? 2 * row.kv_heads : 0)) * row.size}),
               row.packed ? Argument() : reals(fresh),
               row.packed ? Argument() : reals(fresh),
               row.past < 0 ? Argument() : reals(cache),
               row.past < 0 ? Argument() : reals(cache),
               numbers(BP_DTYPE_INT32, {batch}, [&](size_t i) { return row.lengths[i] - 1; }),
               numbers(BP_DTYPE_INT32, {}, [&](size_t) { return row.total; })};
  arguments.back().constant = row.known_total;
  arguments.push_back(row.rotary == 0 ? Argument() : reals({kLines, row.rotary / 2}));
  arguments.push_back(row.rotary == 0 ? Argument() : reals({kLines, row.rotary / 2}));
  arguments.push_back(row.positions ? numbers(BP_DTYPE_INT64, {batch, row.length},
                                              [&](size_t) { return random.integer(0, kLines - 1); })
                                    : Argument());
  arguments.push_back(row.bias_batches == 0 ? Argument()
                                            : reals({row.bias_batches, row.bias_heads, row.length, row.total}));
  arguments.push_back(row.sinks ? reals({row.heads}) : Argument());
  while (!arguments.back().tensor) arguments.pop_back();
  return problem;
}

struct Packed {
  const char* variant;
  Extents a;
  int64_t columns, bits = 4, block = 16;
  enum Zeros { kNone, kQuantized, kReal } zeros = kNone;
  bool groups = false, bias = false;
};
const Packed kPacked[] = {
    {"plain", {3, 32}, 5},
    {"zero_points", {2, 48}, 7, 4, 16, Packed::kQuantized},
    {"real_zero_points", {2, 48}, 3, 4, 16, Packed::kReal},
    {"partly_used_block", {2, 40}, 6, 4, 32, Packed::kQuantized, false, true},
    {"odd_rows", {1, 37}, 4},
    {"two_bits", {3, 80}, 5, 2, 16, Packed::kQuantized},
    {"eight_bits", {3, 80}, 5, 8, 32, Packed::kQuantized, false, true},
    {"groups", {3, 64}, 5, 4, 16, Packed::kQuantized, true},
    {"bias", {4, 32}, 9, 4, 32, Packed::kNone, false, true},
    {"one_row", {1, 256}, 64, 4, 128, Packed::kQuantized},
    {"many_rows", {2, 9, 64}, 33},
    {"vector", {64}, 3},
    {"empty", {0, 32}, 5},
};

Problem make(const Packed& row, Random& random, bp_dtype_t dtype) {
  const int64_t k = row.a.back(), blocks = (k + row.block - 1) / row.block;
  const auto bytes = [&](Extents extents) {
    Array array(BP_DTYPE_UINT8, std::move(extents));
    for (double& x : array.values) x = static_cast<double>(random.integer(0, 255));
    return constant(to_tensor(array));
  };
  const auto reals = [&](Extents extents, double low, double high) {
    Array array(dtype, std::move(extents));
    for (double& x : array.values) x = random.uniform(low, high);
    return constant(to_tensor(array));
  };
  Problem problem{"MatMulNBits",
                  {{"K", k}, {"N", row.columns}, {"bits", row.bits}, {"block_size", row.block}},
                  {random_tensor(random, dtype, row.a, Fill::kAroundZero),
                   bytes({row.columns, blocks, row.block * row.bits / 8}), reals({row.columns, blocks}, 0.01, 0.1)}};
  auto& arguments = problem.arguments;
  const auto most = static_cast<double>(1 << row.bits);
  arguments.push_back(row.zeros == Packed::kNone        ? Argument()
                      : row.zeros == Packed::kQuantized ? bytes({row.columns, (blocks * row.bits + 7) / 8})
                                                        : reals({row.columns, blocks}, 0, most));
  Argument groups;
  if (row.groups) groups = constant(ids(random, {k}, blocks - 1));
  arguments.push_back(std::move(groups));
  arguments.push_back(row.bias ? reals({row.columns}, -1, 1) : Argument());
  while (!arguments.back().tensor) arguments.pop_back();
  return problem;
}

}  // namespace

void add_microsoft_cases(OpCases& cases) {
  for (const Embedding& row : kEmbeddings) {
    for (const bp_dtype_t dtype : {BP_DTYPE_FLOAT, BP_DTYPE_FLOAT16}) {
      cases.add_to(kMicrosoft, "EmbedLayerNormalization", dtype, row.variant,
                   [&row, dtype](Random& random) { return make(row, random, dtype); });
    }
  }
  for (const GroupQuery& row : kGroupQueries) {
    for (const bp_dtype_t dtype : {BP_DTYPE_FLOAT, BP_DTYPE_FLOAT16}) {
      cases.add_to(kMicrosoft, "GroupQueryAttention", dtype, row.variant,
                   [&row, dtype](Random& random) { return make(row, random, dtype); });
    }
  }
  for (const Packed& row : kPacked) {
    for (const bp_dtype_t dtype : {BP_DTYPE_FLOAT, BP_DTYPE_FLOAT16}) {
      cases.add_to(kMicrosoft, "MatMulNBits", dtype, row.variant,
                   [&row, dtype](Random& random) { return make(row, random, dtype); });
    }
  }
  for (const Convolution& row : kConvolutions) {
    for (const bp_dtype_t dtype : {BP_DTYPE_FLOAT, BP_DTYPE_FLOAT16}) {
      for (const Fill fill : {Fill::kAroundZero, Fill::kWhole}) {
        cases.add_to(kMicrosoft, "NhwcConv", dtype, std::string(row.variant) + (fill == Fill::kWhole ? "_whole" : ""),
                     [&row, dtype, fill](Random& random) { return make(row, random, dtype, fill); });
      }
    }
  }
}

}  // namespace backplane::conform
