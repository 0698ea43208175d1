// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

namespace backplane::conform {
namespace {

struct Row {
  const char* name;
  Extents x, kernel, strides, pads, dilations;
  bool ceil = false;
  const char* auto_pad = "NOTSET";
};

const Row kRows[] = {
    {"2x2", {1, 3, 8, 8}, {2, 2}, {2, 2}, {0, 0, 0, 0}, {1, 1}},
    {"3x3_padded", {2, 4, 9, 7}, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}},
    {"overlap", {1, 17, 6, 6}, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}},
    {"ceil", {1, 2, 8, 8}, {3, 3}, {2, 2}, {0, 0, 0, 0}, {1, 1}, true},
    {"ceil_padded", {1, 2, 7, 8}, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, true},
    {"dilated", {1, 2, 9, 9}, {2, 3}, {1, 1}, {0, 0, 0, 0}, {2, 2}},
    {"uneven", {1, 3, 6, 9}, {2, 4}, {1, 3}, {1, 0, 0, 2}, {1, 1}},
    {"same_upper", {1, 2, 7, 5}, {2, 2}, {2, 2}, {}, {1, 1}, false, "SAME_UPPER"},
    {"same_lower", {1, 2, 7, 5}, {2, 2}, {2, 2}, {}, {1, 1}, false, "SAME_LOWER"},
    {"1d", {2, 3, 19}, {3}, {2}, {1, 1}, {1}},
    {"3d", {1, 2, 5, 4, 6}, {2, 2, 2}, {1, 2, 2}, {0, 0, 0, 0, 0, 0}, {1, 1, 1}},
    {"empty_batch", {0, 2, 6, 6}, {2, 2}, {2, 2}, {0, 0, 0, 0}, {1, 1}},
};

// Rows of the extended profile.
const Row kExtendedRows[] = {
    // Windows that do not cover the last elements, unless `ceil_mode` is set.
    {"floor", {1, 2, 8, 6}, {3, 3}, {2, 2}, {0, 0, 0, 0}, {1, 1}},
    // A window larger than the padded input: without `ceil_mode`, the output is empty.
    {"ceil_part", {1, 2, 2, 6}, {3, 3}, {2, 2}, {0, 0, 0, 0}, {1, 1}, true},
};

std::function<Problem(Random&, bp_dtype_t)> maker(const char* op, const Row& row, const Attributes& more) {
  return [=](Random& random, bp_dtype_t dtype) {
    Problem problem{op,
                    {{"auto_pad", std::string(row.auto_pad)},
                     {"ceil_mode", int64_t{row.ceil}},
                     {"dilations", row.dilations},
                     {"kernel_shape", row.kernel},
                     {"strides", row.strides}},
                    {random_tensor(random, dtype, row.x, Fill::kWide)}};
    if (!row.pads.empty()) problem.attributes.push_back({"pads", row.pads});
    problem.attributes.insert(problem.attributes.end(), more.begin(), more.end());
    return problem;
  };
}
void add(OpCases& cases, const char* op, const Row& row, const std::string& variant, const Attributes& more) {
  cases.add_real(op, row.name + variant, maker(op, row, more));
}

}  // namespace

void add_pool_cases(OpCases& cases) {
  for (const Row& row : kRows) {
    add(cases, "MaxPool", row, "", {{"storage_order", int64_t{0}}});
    add(cases, "AveragePool", row, "", {{"count_include_pad", int64_t{0}}});
    add(cases, "AveragePool", row, "_with_padding", {{"count_include_pad", int64_t{1}}});
  }
  for (const bp_dtype_t dtype : real_types()) {
    for (const Row& row : kExtendedRows) {
      const auto add_extended = [&](const char* op, const Attributes& more) {
        const auto make = maker(op, row, more);
        cases.add_to(kExtended, op, dtype, row.name, [=](Random& random) { return make(random, dtype); });
      };
      add_extended("MaxPool", {{"storage_order", int64_t{0}}});
      add_extended("AveragePool", {{"count_include_pad", int64_t{0}}});
    }
  }
  for (const char* op : {"GlobalMaxPool", "GlobalAveragePool"}) {
    for (const Extents& extents :
         {Extents{2, 3, 7, 7}, Extents{1, 33, 5, 3}, Extents{1, 2, 19}, Extents{1, 2, 3, 4, 5}}) {
      cases.add_real(op, "rank" + std::to_string(extents.size()) + "_" + std::to_string(extents[1]),
                     [=](Random& random, bp_dtype_t dtype) {
                       return Problem{op, {}, {random_tensor(random, dtype, extents, Fill::kWide)}};
                     });
    }
  }
}

}  // namespace backplane::conform
