// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

namespace backplane::conform {
namespace {

const bp_dtype_t kTypes[] = {BP_DTYPE_FLOAT, BP_DTYPE_FLOAT16, BP_DTYPE_BFLOAT16, BP_DTYPE_INT64, BP_DTYPE_INT32};

void add_top_k(OpCases& cases) {
  struct Row {
    const char* variant;
    Extents x;
    int64_t k, axis, largest;
  };
  const Row rows[] = {{"last", {3, 17}, 5, -1, 1},  {"first_axis", {9, 4}, 3, 0, 1}, {"smallest", {2, 3, 11}, 4, 2, 0},
                      {"all", {4, 6}, 6, -1, 1},    {"one", {5, 33}, 1, -1, 1},      {"nothing", {3, 4}, 0, -1, 1},
                      {"long", {2, 1031}, 9, 1, 1}, {"middle", {2, 7, 3}, 2, 1, 0}};
  for (const Row& row : rows) {
    for (const bp_dtype_t dtype : kTypes) {
      for (const Fill fill : {Fill::kWide, Fill::kWhole}) {  // many of the kWhole elements are equal
        cases.add_to(kExtended, "TopK", dtype, std::string(row.variant) + (fill == Fill::kWhole ? "_equal" : ""),
                     [=](Random& random) {
                       return Problem{"TopK",
                                      {{"axis", row.axis}, {"largest", row.largest}, {"sorted", int64_t{1}}},
                                      {random_tensor(random, dtype, row.x, fill), constant(integers({row.k}))},
                                      2};
                     });
      }
    }
  }
}

}  // namespace

void add_order_cases(OpCases& cases) {
  add_top_k(cases);
  for (const bp_dtype_t dtype : kTypes) {
    const auto add = [&](const char* op, const std::string& variant, std::function<Problem(Random&)> make) {
      cases.add_to(kExtended, op, dtype, variant, std::move(make));
    };
    add("NonZero", "block", [=](Random& random) {
      return Problem{"NonZero", {}, {random_tensor(random, dtype, {3, 5, 4}, Fill::kWhole)}};
    });
    for (const int64_t sorted : {int64_t{0}, int64_t{1}}) {
      add("Unique", sorted != 0 ? "sorted" : "as_it_comes", [=](Random& random) {
        return Problem{"Unique", {{"sorted", sorted}}, {random_tensor(random, dtype, {4, 9}, Fill::kWhole)}, 4};
      });
    }
    for (const int64_t axis : {int64_t{-1}, int64_t{0}, int64_t{1}}) {  // -1: without the attribute `axis`
      add("Compress", axis < 0 ? "flat" : "axis" + std::to_string(axis), [=](Random& random) {
        const Extents count = {axis < 0 ? 13 : axis == 0 ? 4 : 5};
        onnx::Tensor x = random_tensor(random, dtype, {4, 5}, Fill::kWhole);
        return Problem{"Compress",
                       axis < 0 ? Attributes{} : Attributes{{"axis", axis}},
                       {std::move(x), random_tensor(random, BP_DTYPE_BOOL, count, Fill::kWide)}};
      });
    }
    for (const int64_t batch : {int64_t{0}, int64_t{1}}) {
      add("ReverseSequence", batch == 0 ? "batch_first" : "time_first", [=](Random& random) {
        onnx::Tensor x = random_tensor(random, dtype, batch == 0 ? Extents{3, 6, 2} : Extents{6, 3, 2}, Fill::kWhole);
        return Problem{"ReverseSequence",
                       {{"batch_axis", batch}, {"time_axis", 1 - batch}},
                       {std::move(x), integers({random.integer(0, 6), random.integer(0, 6), random.integer(0, 6)})}};
      });
    }
    for (const int64_t upper : {int64_t{0}, int64_t{1}}) {
      for (const int64_t k : {int64_t{-7}, int64_t{-1}, int64_t{0}, int64_t{2}, int64_t{9}}) {
        add("Trilu", std::string(upper != 0 ? "upper" : "lower") + std::to_string(k), [=](Random& random) {
          return Problem{"Trilu",
                         {{"upper", upper}},
                         {random_tensor(random, dtype, {2, 5, 4}, Fill::kWhole), constant(integers({k}))}};
        });
      }
    }
    for (const Extents& wanted : {Extents{3, 8}, Extents{7, 4}, Extents{5, 6}}) {
      add("CenterCropPad", std::to_string(wanted[0]) + "x" + std::to_string(wanted[1]), [=](Random& random) {
        return Problem{"CenterCropPad",
                       {{"axes", Extents{0, 1}}},
                       {random_tensor(random, dtype, {5, 6, 2}, Fill::kWhole), constant(integers(wanted))}};
      });
    }
    for (const bp_dtype_t to : kTypes) {
      add("CastLike", "to_" + std::to_string(to), [=](Random& random) {
        onnx::Tensor x = random_tensor(random, dtype, {5, 13}, Fill::kWide);
        return Problem{"CastLike",
                       {{"round_mode", std::string("up")}, {"saturate", int64_t{1}}},
                       {std::move(x), random_tensor(random, to, {1}, Fill::kWide)}};
      });
    }
  }
  for (const bp_dtype_t dtype : real_types()) {
    for (const uint32_t outputs : {1u, 2u}) {
      cases.add_to(kExtended, "Dropout", dtype, "outputs" + std::to_string(outputs), [=](Random& random) {
        return Problem{"Dropout", {}, {random_tensor(random, dtype, {3, 17}, Fill::kWide)}, outputs};
      });
      // Without training, the ratio is ignored.
      cases.add_to(kExtended, "Dropout", dtype, "ratio_outputs" + std::to_string(outputs), [=](Random& random) {
        return Problem{"Dropout",
                       {},
                       {random_tensor(random, dtype, {3, 17}, Fill::kWide), constant(reals(dtype, {}, {0.75})),
                        constant(reals(BP_DTYPE_BOOL, {}, {0}))},
                       outputs};
      });
    }
  }
}

}  // namespace backplane::conform
