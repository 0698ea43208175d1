// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

namespace backplane::conform {
namespace {

constexpr std::string_view kMicrosoft = "microsoft";

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
};
const Embedding kEmbeddings[] = {
    {"plain", 2, 5, 33},
    {"known_tables", 1, 7, 64, true, true, true, 0, 2, true},
    {"mask_and_sum", 3, 4, 8, true, true, true, 0, 3},
    {"no_segments", 2, 5, 17, false, false, false, 0, 3},
    {"no_segment_ids", 2, 5, 17, false},
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
  Problem problem{"EmbedLayerNormalization", {{"epsilon", 1e-12f}}, {}, row.outputs};
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

}  // namespace

void add_microsoft_cases(OpCases& cases) {
  for (const Embedding& row : kEmbeddings) {
    for (const bp_dtype_t dtype : {BP_DTYPE_FLOAT, BP_DTYPE_FLOAT16}) {
      cases.add_to(kMicrosoft, "EmbedLayerNormalization", dtype, row.variant,
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
