// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include <limits>

namespace backplane::conform {
namespace {

const bp_dtype_t kTypes[] = {BP_DTYPE_FLOAT, BP_DTYPE_FLOAT16, BP_DTYPE_BFLOAT16,
                             BP_DTYPE_INT64, BP_DTYPE_INT32,   BP_DTYPE_BOOL};

onnx::Tensor data(Random& random, bp_dtype_t dtype, Extents extents) {
  return random_tensor(random, dtype, std::move(extents), is_float(dtype) ? Fill::kSpecial : Fill::kWide);
}

onnx::Tensor indices(Random& random, bp_dtype_t dtype, Extents extents, int64_t limit) {
  Array array(dtype, std::move(extents));
  for (double& x : array.values) x = static_cast<double>(random.integer(-limit, limit - 1));
  return to_tensor(array);
}

bool is_half(bp_dtype_t dtype) {
  return dtype == BP_DTYPE_FLOAT16 || dtype == BP_DTYPE_BFLOAT16;
}

void add_slices(OpCases& cases) {
  struct Row {
    const char* variant;
    Extents x, starts, ends;
    std::optional<Extents> axes, steps;
  };
  constexpr int64_t kEnd = std::numeric_limits<int32_t>::max();
  const Row rows[] = {{"plain", {6, 5}, {1, 0}, {4, 3}, {}, {}},
                      {"axis", {4, 7, 3}, {2}, {kEnd}, Extents{1}, {}},
                      {"negative", {8}, {-3}, {-1}, Extents{0}, {}},
                      {"steps", {9, 10}, {0, 1}, {kEnd, 9}, Extents{0, 1}, Extents{2, 3}},
                      {"backwards", {7}, {-1}, {-kEnd}, Extents{0}, Extents{-1}},
                      {"backwards_two", {9}, {6}, {1}, Extents{-1}, Extents{-2}},
                      {"nothing", {5, 2}, {3}, {3}, Extents{0}, {}}};
  for (const Row& row : rows) {
    for (const bp_dtype_t dtype : kTypes) {
      cases.add("Slice", dtype, row.variant, [=](Random& random) {
        Problem problem{
            "Slice", {}, {data(random, dtype, row.x), constant(integers(row.starts)), constant(integers(row.ends))}};
        if (row.axes) problem.arguments.push_back(constant(integers(*row.axes)));
        if (row.steps) problem.arguments.push_back(constant(integers(*row.steps)));
        return problem;
      });
    }
  }
  // Starts and ends beyond the axis. Backwards, a start before the first element selects that element.
  for (const bool backwards : {false, true}) {
    const Extents starts = backwards ? Extents{9, -9} : Extents{-9, 2},
                  ends = backwards ? Extents{-9, -9} : Extents{9, 9},
                  steps = backwards ? Extents{-2, -1} : Extents{2, 1};
    for (const bp_dtype_t dtype : {BP_DTYPE_FLOAT, BP_DTYPE_INT64}) {
      cases.add_to(kExtended, "Slice", dtype, backwards ? "beyond_backwards" : "beyond", [=](Random& random) {
        return Problem{"Slice",
                       {},
                       {data(random, dtype, {5, 6, 2}), constant(integers(starts)), constant(integers(ends)),
                        constant(integers({0, 1})), constant(integers(steps))}};
      });
    }
  }
}

void add_gathers(OpCases& cases) {
  struct Row {
    const char* variant;
    Extents x, indices;
    int64_t axis;
  };
  const Row rows[] = {{"embedding", {11, 8}, {2, 5}, 0},
                      {"columns", {3, 7}, {4}, 1},
                      {"scalar", {5, 3}, {}, 0},
                      {"last", {2, 3, 6}, {3}, -1},
                      {"empty", {4, 2}, {0}, 0}};
  for (const Row& row : rows) {
    for (const bp_dtype_t dtype : kTypes) {
      for (const bp_dtype_t index : {BP_DTYPE_INT64, BP_DTYPE_INT32}) {
        cases.add("Gather", dtype, std::string(row.variant) + (index == BP_DTYPE_INT32 ? "_int32" : ""),
                  [=](Random& random) {
                    const auto axis = static_cast<size_t>(normal_axis(row.axis, static_cast<int64_t>(row.x.size())));
                    return Problem{"Gather",
                                   {{"axis", row.axis}},
                                   {data(random, dtype, row.x), indices(random, index, row.indices, row.x[axis])}};
                  });
      }
    }
  }
  for (const int64_t axis : {int64_t{0}, int64_t{1}}) {
    cases.add_real("GatherElements", "axis" + std::to_string(axis), [=](Random& random, bp_dtype_t dtype) {
      return Problem{"GatherElements",
                     {{"axis", axis}},
                     {data(random, dtype, {4, 5}), indices(random, BP_DTYPE_INT64, {3, 4}, axis == 0 ? 4 : 5)}};
    });
  }
}

void add_pads(OpCases& cases) {
  struct Row {
    const char* variant;
    const char* mode;
    Extents x, pads;
    bool with_value;
  };
  const Row rows[] = {{"constant", "constant", {3, 4}, {1, 2, 0, 3}, true},
                      {"zeros", "constant", {3, 4}, {0, 1, 1, 0}, false},
                      {"image", "constant", {1, 2, 4, 5}, {0, 0, 1, 1, 0, 0, 2, 1}, true},
                      {"crop", "constant", {5, 5}, {-1, 0, 1, -2}, true},
                      {"reflect", "reflect", {4, 5}, {2, 3, 3, 1}, false},
                      {"edge", "edge", {3, 4}, {2, 1, 1, 4}, false},
                      {"wrap", "wrap", {4, 5}, {1, 2, 3, 0}, false}};
  for (const Row& row : rows) {
    cases.add_real("Pad", row.variant, [=](Random& random, bp_dtype_t dtype) {
      Problem problem{
          "Pad", {{"mode", std::string(row.mode)}}, {data(random, dtype, row.x), constant(integers(row.pads))}};
      if (row.with_value) problem.arguments.push_back(constant(reals(dtype, {}, {-2.5})));
      return problem;
    });
  }
}

void add_wheres(OpCases& cases) {
  struct Row {
    const char* variant;
    Extents condition, yes, no;
  };
  const Row rows[] = {{"same", {3, 5}, {3, 5}, {3, 5}},
                      {"mask", {2, 1, 4, 4}, {}, {2, 3, 4, 4}},
                      {"rows", {4, 1}, {5}, {4, 5}},
                      {"scalar", {}, {2, 3}, {3}},
                      {"empty", {0, 2}, {2}, {1, 2}}};
  for (const Row& row : rows) {
    for (const bp_dtype_t dtype : kTypes) {
      cases.add("Where", dtype, row.variant, [=](Random& random) {
        onnx::Tensor condition = random_tensor(random, BP_DTYPE_BOOL, row.condition, Fill::kWide);
        onnx::Tensor yes = data(random, dtype, row.yes);
        return Problem{"Where", {}, {std::move(condition), std::move(yes), data(random, dtype, row.no)}};
      });
    }
  }
}

void add_casts(OpCases& cases) {
  const bp_dtype_t types[] = {BP_DTYPE_FLOAT, BP_DTYPE_INT32, BP_DTYPE_INT64,   BP_DTYPE_BOOL,
                              BP_DTYPE_UINT8, BP_DTYPE_INT8,  BP_DTYPE_FLOAT16, BP_DTYPE_BFLOAT16};
  for (const bp_dtype_t from : types) {
    for (const bp_dtype_t to : types) {
      cases.add_to(is_half(from) || is_half(to) ? "fp16" : "core", "Cast", from, "to_" + std::to_string(to),
                   [=](Random& random) {
                     const Fill fill = to == BP_DTYPE_UINT8 ? Fill::kPositive : Fill::kWide;
                     return Problem{"Cast",
                                    {{"round_mode", std::string("up")}, {"saturate", int64_t{1}}, {"to", int64_t{to}}},
                                    {random_tensor(random, from, {5, 13}, fill)}};
                   });
    }
  }
}

void add_clips(OpCases& cases) {
  for (const int limits : {0, 1, 2, 3}) {  // bit 0: has a lower limit; bit 1: has an upper limit
    cases.add_real("Clip", "limits" + std::to_string(limits), [=](Random& random, bp_dtype_t dtype) {
      Problem problem{"Clip", {}, {random_tensor(random, dtype, {4, 9}, Fill::kWide)}};
      if (limits != 0) problem.arguments.push_back((limits & 1) != 0 ? constant(reals(dtype, {}, {-1.5})) : Argument());
      if ((limits & 2) != 0) problem.arguments.push_back(constant(reals(dtype, {}, {2.25})));
      return problem;
    });
  }
  for (const bp_dtype_t dtype : real_types()) {
    cases.add_to(kExtended, "Clip", dtype, "crossed_limits", [=](Random& random) {  // every result is the upper limit
      return Problem{"Clip",
                     {},
                     {random_tensor(random, dtype, {4, 9}, Fill::kWide), constant(reals(dtype, {}, {2.25})),
                      constant(reals(dtype, {}, {-1.5}))}};
    });
  }
}

}  // namespace

void add_select_cases(OpCases& cases) {
  add_slices(cases);
  add_gathers(cases);
  add_pads(cases);
  add_wheres(cases);
  add_casts(cases);
  add_clips(cases);
}

}  // namespace backplane::conform
