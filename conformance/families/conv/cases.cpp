// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

namespace backplane::conform {
namespace {

struct Row {
  const char* name;
  Extents x, w;
  Extents strides, pads, dilations;  // if empty, the default is written out
  int64_t group = 1;
  bool bias = false;
  const char* auto_pad = "NOTSET";
  Extents output_padding = {};  // of ConvTranspose
};

const Row kConvs[] = {
    {"3x3", {1, 3, 9, 9}, {4, 3, 3, 3}, {}, {}, {}},
    {"3x3_padded", {2, 3, 8, 7}, {5, 3, 3, 3}, {}, {1, 1, 1, 1}, {}, 1, true},
    {"1x1", {1, 16, 6, 6}, {8, 16, 1, 1}, {}, {}, {}, 1, true},
    {"1x1_strided", {1, 5, 7, 7}, {6, 5, 1, 1}, {2, 2}, {}, {}},
    {"7x7_strided", {1, 3, 20, 21}, {8, 3, 7, 7}, {2, 2}, {3, 3, 3, 3}, {}, 1, true},
    {"dilated", {1, 4, 12, 12}, {3, 4, 3, 3}, {}, {2, 2, 2, 2}, {2, 2}},
    {"depthwise", {1, 8, 9, 9}, {8, 1, 3, 3}, {}, {1, 1, 1, 1}, {}, 8, true},
    {"depthwise_strided", {2, 5, 10, 9}, {5, 1, 5, 5}, {2, 2}, {2, 2, 2, 2}, {}, 5},
    {"multiplier", {1, 3, 7, 7}, {6, 1, 3, 3}, {}, {}, {}, 3},
    {"grouped", {1, 6, 7, 7}, {4, 3, 3, 3}, {}, {1, 1, 1, 1}, {}, 2, true},
    {"uneven_pads", {1, 2, 6, 6}, {3, 2, 3, 2}, {1, 2}, {0, 1, 2, 0}, {}},
    {"same_upper", {1, 3, 7, 8}, {4, 3, 4, 3}, {2, 3}, {}, {}, 1, true, "SAME_UPPER"},
    {"same_lower", {1, 3, 7, 8}, {4, 3, 4, 3}, {2, 3}, {}, {}, 1, false, "SAME_LOWER"},
    {"valid", {1, 3, 7, 8}, {4, 3, 2, 3}, {1, 1}, {}, {}, 1, false, "VALID"},
    {"1d", {2, 4, 17}, {6, 4, 5}, {2}, {2, 1}, {}, 1, true},
    {"3d", {1, 2, 5, 6, 4}, {3, 2, 3, 3, 2}, {1, 2, 1}, {1, 0, 0, 1, 1, 1}, {}, 1, true},
    {"wide", {1, 32, 10, 10}, {33, 32, 3, 3}, {}, {1, 1, 1, 1}, {}, 1, true},
    {"empty_batch", {0, 3, 5, 5}, {4, 3, 3, 3}, {}, {}, {}},
};

const Row kTransposed[] = {
    {"plain", {1, 3, 5, 5}, {3, 4, 3, 3}, {}, {}, {}},
    {"strided", {1, 4, 5, 4}, {4, 3, 2, 2}, {2, 2}, {}, {}, 1, true},
    {"padded", {2, 2, 5, 5}, {2, 3, 4, 4}, {2, 2}, {1, 1, 1, 1}, {}, 1, true},
    {"output_padding", {1, 2, 4, 4}, {2, 2, 3, 3}, {2, 2}, {1, 1, 1, 1}, {}, 1, false, "NOTSET", {1, 1}},
    {"grouped", {1, 4, 4, 4}, {4, 2, 3, 3}, {}, {}, {}, 2},
    {"dilated", {1, 2, 4, 4}, {2, 3, 3, 3}, {}, {}, {2, 2}},
    {"1d", {1, 3, 9}, {3, 4, 4}, {2}, {1, 1}, {}, 1, true},
};

Extents or_all(const Extents& given, size_t count, int64_t otherwise) {
  return given.empty() ? Extents(count, otherwise) : given;
}

Problem problem(const char* op, Random& random, bp_dtype_t dtype, const Row& row, Fill fill, bool constant_weight) {
  const size_t axes = row.x.size() - 2;
  const bool transposed = std::string_view(op) == "ConvTranspose";
  Problem result{op,
                 {{"auto_pad", std::string(row.auto_pad)},
                  {"dilations", or_all(row.dilations, axes, 1)},
                  {"group", row.group},
                  {"kernel_shape", Extents(row.w.begin() + 2, row.w.end())},
                  {"strides", or_all(row.strides, axes, 1)}},
                 {}};
  if (std::string_view(row.auto_pad) == "NOTSET") result.attributes.push_back({"pads", or_all(row.pads, 2 * axes, 0)});
  if (transposed) result.attributes.push_back({"output_padding", or_all(row.output_padding, axes, 0)});
  result.arguments.emplace_back(random_tensor(random, dtype, row.x, fill));
  result.arguments.emplace_back(random_tensor(random, dtype, row.w, fill), constant_weight);
  const int64_t channels = transposed ? row.w[1] * row.group : row.w[0];
  if (row.bias) result.arguments.emplace_back(random_tensor(random, dtype, {channels}, fill), constant_weight);
  result.exact_sums = fill == Fill::kWhole;
  result.drawn_around_zero = fill == Fill::kAroundZero && !row.bias;
  return result;
}

template <size_t kCount>
void add(OpCases& cases, const char* op, const Row (&rows)[kCount]) {
  for (const Row& row : rows) {
    const auto add_one = [&](const std::string& variant, Fill fill, bool constant_weight) {
      cases.add_real(op, std::string(row.name) + variant, [=](Random& random, bp_dtype_t dtype) {
        return problem(op, random, dtype, row, fill, constant_weight);
      });
    };
    add_one("_around_zero", Fill::kAroundZero, true);
    add_one("_positive", Fill::kPositive, true);
    add_one("_whole", Fill::kWhole, true);
    add_one("_run_time_weight", Fill::kAroundZero, false);
  }
}

}  // namespace

void add_conv_cases(OpCases& cases) {
  add(cases, "Conv", kConvs);
  add(cases, "ConvTranspose", kTransposed);
}

}  // namespace backplane::conform
