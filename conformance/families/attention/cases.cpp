// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

namespace backplane::conform {
namespace {

struct Row {
  const char* variant;
  int64_t batch, heads, kv_heads, length, keys, size, value_size;
  enum Mask { kNone, kBools, kNumbers, kShort } mask = kNone;  // kShort: numbers for all keys but two
  bool causal = false, flat = false;
  float scale = 0, softcap = 0;
  int64_t left = -1, right = -1;  // windows
};
const Row kRows[] = {
    {"plain", 2, 3, 3, 4, 5, 8, 8},
    {"shared_heads", 1, 6, 2, 5, 5, 8, 8},
    {"one_key_head", 2, 4, 1, 3, 7, 16, 16},
    {"other_value_size", 1, 2, 2, 4, 6, 8, 5},
    {"causal", 2, 2, 2, 6, 6, 8, 8, Row::kNone, true},
    {"bools", 2, 2, 2, 4, 6, 8, 8, Row::kBools},
    {"numbers", 2, 2, 2, 4, 6, 8, 8, Row::kNumbers},
    {"short_mask", 2, 2, 2, 4, 6, 8, 8, Row::kShort},
    {"causal_numbers", 1, 2, 2, 5, 5, 8, 8, Row::kNumbers, true},
    {"scaled", 1, 2, 2, 4, 5, 8, 8, Row::kNone, false, false, 0.25f},
    {"softcap", 1, 2, 2, 4, 5, 8, 8, Row::kNone, false, false, 0, 2},
    {"flat", 2, 3, 3, 4, 5, 8, 8, Row::kNone, false, true},
    {"flat_shared_heads", 1, 4, 2, 4, 4, 8, 8, Row::kNone, true, true},
    {"one_query", 1, 2, 2, 1, 33, 64, 64},
    {"window", 1, 2, 2, 6, 7, 8, 8, Row::kNone, false, false, 0, 0, 2, 1},
    {"window_left", 2, 2, 1, 7, 7, 8, 8, Row::kNone, false, false, 0, 0, 1},
    {"window_right", 1, 4, 2, 5, 6, 8, 8, Row::kNone, false, true, 0, 0, -1, 0},
    {"window_causal", 1, 2, 2, 6, 6, 8, 8, Row::kNone, true, false, 0, 0, 2, 3},
    {"window_numbers", 1, 2, 2, 5, 5, 8, 8, Row::kNumbers, false, false, 0, 0, 0, 2},
    {"window_beyond", 1, 2, 2, 7, 3, 8, 8, Row::kNone, false, false, 0, 0, 1, 0},  // the last queries see no key
};

Problem make(const Row& row, Random& random, bp_dtype_t dtype) {
  const auto tensor = [&](int64_t heads, int64_t length, int64_t size) {
    const Extents extents =
        row.flat ? Extents{row.batch, length, heads * size} : Extents{row.batch, heads, length, size};
    return random_tensor(random, dtype, extents, Fill::kAroundZero);
  };
  Problem problem{"Attention",
                  {{"is_causal", int64_t{row.causal}},
                   {"left_window_size", row.left},
                   {"qk_matmul_output_mode", int64_t{0}},
                   {"right_window_size", row.right},
                   {"softcap", row.softcap}},
                  {}};
  if (row.left >= 0 || row.right >= 0) problem.since = 25;
  if (row.scale != 0) problem.attributes.push_back({"scale", row.scale});
  if (row.flat) {
    problem.attributes.push_back({"kv_num_heads", row.kv_heads});
    problem.attributes.push_back({"q_num_heads", row.heads});
  }
  problem.arguments.emplace_back(tensor(row.heads, row.length, row.size));
  problem.arguments.emplace_back(tensor(row.kv_heads, row.keys, row.size));
  problem.arguments.emplace_back(tensor(row.kv_heads, row.keys, row.value_size));
  if (row.mask == Row::kShort) problem.since = 24;
  if (row.mask == Row::kNumbers || row.mask == Row::kShort) {
    const int64_t shown = row.mask == Row::kShort ? row.keys - 2 : row.keys;
    problem.arguments.emplace_back(random_tensor(random, dtype, {row.length, shown}, Fill::kAroundZero));
  }
  if (row.mask == Row::kBools) {
    Array mask(BP_DTYPE_BOOL, {row.length, row.keys});
    for_each_index(mask.extents, [&](const Index& at) { mask.at(at) = at[1] == 0 || random.integer(0, 1) != 0; });
    problem.arguments.emplace_back(to_tensor(mask));
  }
  return problem;
}

}  // namespace

void add_attention_cases(OpCases& cases) {
  for (const Row& row : kRows) {
    for (const bp_dtype_t dtype : real_types()) {
      cases.add_to(kExtended, "Attention", dtype, row.variant,
                   [&row, dtype](Random& random) { return make(row, random, dtype); });
    }
  }
  for (const bp_dtype_t dtype : real_types()) {
    for (const int64_t interleaved : {int64_t{0}, int64_t{1}}) {
      for (const int64_t rotary : {int64_t{0}, int64_t{4}}) {
        for (const bool flat : {false, true}) {
          for (const bool positions : {false, true}) {
            const std::string variant = std::string(interleaved != 0 ? "interleaved" : "split") +
                                        (rotary != 0 ? "_part" : "") + (flat ? "_flat" : "") +
                                        (positions ? "_positions" : "");
            cases.add_to(kExtended, "RotaryEmbedding", dtype, variant, [=](Random& random) {
              const int64_t pairs = rotary == 0 ? 4 : rotary / 2;
              const Extents cache = positions ? Extents{9, pairs} : Extents{2, 5, pairs};
              Problem problem{"RotaryEmbedding", {{"interleaved", interleaved}, {"rotary_embedding_dim", rotary}}, {}};
              if (flat) problem.attributes.push_back({"num_heads", int64_t{3}});
              problem.arguments.emplace_back(
                  random_tensor(random, dtype, flat ? Extents{2, 5, 24} : Extents{2, 3, 5, 8}, Fill::kWide));
              problem.arguments.emplace_back(random_tensor(random, dtype, cache, Fill::kAroundZero));
              problem.arguments.emplace_back(random_tensor(random, dtype, cache, Fill::kAroundZero));
              if (positions) {
                Array ids(BP_DTYPE_INT64, {2, 5});
                for (double& x : ids.values) x = static_cast<double>(random.integer(0, 8));
                problem.arguments.emplace_back(to_tensor(ids));
              }
              return problem;
            });
          }
        }
      }
    }
  }
}

}  // namespace backplane::conform
