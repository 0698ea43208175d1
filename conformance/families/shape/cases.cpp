// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

namespace backplane::conform {
namespace {

const bp_dtype_t kTypes[] = {BP_DTYPE_FLOAT, BP_DTYPE_FLOAT16, BP_DTYPE_BFLOAT16, BP_DTYPE_INT64,
                             BP_DTYPE_INT32, BP_DTYPE_BOOL,    BP_DTYPE_UINT8};

// Floats are drawn from the special values, because operators that only move data must keep them.
onnx::Tensor data(Random& random, bp_dtype_t dtype, Extents extents) {
  return random_tensor(random, dtype, std::move(extents), is_float(dtype) ? Fill::kSpecial : Fill::kWide);
}

// A case with one tensor, attributes, and possibly a constant integer input.
struct Row {
  const char* op;
  const char* variant;
  Extents x;
  Attributes attributes;
  std::optional<Extents> second;
  uint32_t outputs = 1;
};

const std::vector<Row>& rows() {
  static const std::vector<Row> kTable = {
      {"Identity", "block", {2, 3, 5}, {}, {}},
      {"Identity", "scalar", {}, {}, {}},
      {"Identity", "empty", {0, 3}, {}, {}},
      {"Reshape", "flat", {2, 3, 4}, {{"allowzero", int64_t{0}}}, Extents{24}},
      {"Reshape", "guess", {2, 3, 4}, {{"allowzero", int64_t{0}}}, Extents{4, -1}},
      {"Reshape", "copy", {2, 3, 4}, {{"allowzero", int64_t{0}}}, Extents{0, 2, -1}},
      {"Reshape", "scalar", {1, 1}, {{"allowzero", int64_t{0}}}, Extents{}},
      {"Reshape", "zero", {0, 4}, {{"allowzero", int64_t{1}}}, Extents{2, 0}},
      {"Flatten", "axis1", {2, 3, 4}, {{"axis", int64_t{1}}}, {}},
      {"Flatten", "axis0", {2, 3, 4}, {{"axis", int64_t{0}}}, {}},
      {"Flatten", "axis_end", {2, 3, 4}, {{"axis", int64_t{3}}}, {}},
      {"Flatten", "axis_negative", {2, 3, 4}, {{"axis", int64_t{-1}}}, {}},
      {"Squeeze", "all", {1, 3, 1, 2}, {}, {}},
      {"Squeeze", "some", {1, 3, 1, 2}, {}, Extents{-2}},
      {"Unsqueeze", "ends", {3, 2}, {}, Extents{0, 3}},
      {"Unsqueeze", "unsorted", {3, 2}, {}, Extents{-1, 1}},
      {"Transpose", "2d", {7, 5}, {{"perm", Extents{1, 0}}}, {}},
      {"Transpose", "nhwc", {2, 3, 4, 5}, {{"perm", Extents{0, 2, 3, 1}}}, {}},
      {"Transpose", "heads", {2, 6, 4, 3}, {{"perm", Extents{0, 2, 1, 3}}}, {}},
      {"Transpose", "backwards", {2, 3, 4}, {{"perm", Extents{2, 1, 0}}}, {}},
      {"Transpose", "five", {2, 3, 2, 3, 2}, {{"perm", Extents{4, 1, 3, 0, 2}}}, {}},
      {"Transpose", "empty", {0, 3}, {{"perm", Extents{1, 0}}}, {}},
      {"Split", "halves", {4, 6}, {{"axis", int64_t{1}}, {"num_outputs", int64_t{2}}}, {}, 2},
      {"Split", "uneven", {7, 2}, {{"axis", int64_t{0}}, {"num_outputs", int64_t{3}}}, {}, 3},
      {"Split", "sizes", {3, 9}, {{"axis", int64_t{-1}}}, Extents{2, 3, 4}, 3},
      {"Split", "with_empty", {3, 4}, {{"axis", int64_t{1}}}, Extents{4, 0}, 2},
      {"Expand", "row", {1, 5}, {}, Extents{3, 5}},
      {"Expand", "grow", {3, 1}, {}, Extents{2, 3, 4}},
      {"Expand", "kept", {3, 4}, {}, Extents{1, 1}},
      {"Expand", "empty", {1}, {}, Extents{0, 3}},
      {"Tile", "both", {2, 3}, {}, Extents{2, 3}},
      {"Tile", "none", {2, 3}, {}, Extents{1, 0}},
      {"DepthToSpace", "dcr", {1, 8, 2, 3}, {{"blocksize", int64_t{2}}, {"mode", std::string("DCR")}}, {}},
      {"DepthToSpace", "crd", {2, 9, 2, 1}, {{"blocksize", int64_t{3}}, {"mode", std::string("CRD")}}, {}},
      {"SpaceToDepth", "two", {1, 2, 4, 6}, {{"blocksize", int64_t{2}}, {"mode", std::string("DCR")}}, {}},
      {"Shape", "whole", {2, 0, 5}, {{"start", int64_t{0}}}, {}},
      {"Shape", "part", {2, 3, 5}, {{"start", int64_t{-2}}, {"end", int64_t{2}}}, {}},
  };
  return kTable;
}

}  // namespace

void add_shape_cases(OpCases& cases) {
  for (const Row& row : rows()) {
    for (const bp_dtype_t dtype : kTypes) {
      cases.add(row.op, dtype, row.variant, [=](Random& random) {
        Problem problem{row.op, row.attributes, {data(random, dtype, row.x)}, row.outputs};
        if (row.second) problem.arguments.push_back(constant(integers(*row.second)));
        return problem;
      });
    }
  }
  // Several output channels, for which the two modes differ.
  for (const bp_dtype_t dtype : kTypes) {
    cases.add_to(kExtended, "DepthToSpace", dtype, "crd_channels", [=](Random& random) {
      return Problem{"DepthToSpace",
                     {{"blocksize", int64_t{2}}, {"mode", std::string("CRD")}},
                     {data(random, dtype, {2, 12, 2, 3})}};
    });
    cases.add_to(kExtended, "SpaceToDepth", dtype, "crd_channels", [=](Random& random) {
      return Problem{.op = "SpaceToDepth",
                     .attributes = {{"blocksize", int64_t{2}}, {"mode", std::string("CRD")}},
                     .arguments = {data(random, dtype, {2, 3, 4, 6})},
                     .since = 28};
    });
  }
  struct Concat {
    const char* variant;
    std::vector<Extents> parts;
    int64_t axis;
  };
  const Concat concats[] = {{"rows", {{2, 3}, {4, 3}}, 0},
                            {"columns", {{2, 3}, {2, 1}, {2, 5}}, 1},
                            {"negative", {{2, 3, 2}, {2, 3, 4}}, -1},
                            {"one", {{3, 2}}, 0},
                            {"with_empty", {{2, 0}, {2, 3}}, 1},
                            {"channels", {{1, 3, 4, 4}, {1, 5, 4, 4}}, 1}};
  for (const Concat& row : concats) {
    for (const bp_dtype_t dtype : kTypes) {
      cases.add("Concat", dtype, row.variant, [=](Random& random) {
        Problem problem{"Concat", {{"axis", row.axis}}, {}};
        for (const Extents& extents : row.parts) problem.arguments.emplace_back(data(random, dtype, extents));
        return problem;
      });
    }
  }
}

}  // namespace backplane::conform
