// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

namespace backplane::conform {
namespace {

onnx::Tensor scalar(int64_t value) {
  Array array(BP_DTYPE_INT64, {});
  array.values[0] = static_cast<double>(value);
  return to_tensor(array);
}

}  // namespace

void add_signal_cases(OpCases& cases) {
  struct Row {
    const char* variant;
    Extents x;
    int64_t axis, length;  // a `length` of 0 is the length of the signal
    bool inverse = false, onesided = false;
  };
  const Row rows[] = {{"real", {2, 16, 1}, 1, 0},
                      {"complex", {2, 16, 2}, 1, 0},
                      {"odd", {1, 15, 2}, 1, 0},
                      {"prime", {1, 31, 1}, 1, 0},
                      {"onesided", {2, 16, 1}, 1, 0, false, true},
                      {"onesided_odd", {2, 9, 1}, 1, 0, false, true},
                      {"inverse", {2, 12, 2}, 1, 0, true},
                      {"padded", {1, 10, 1}, 1, 16},
                      {"cut", {1, 20, 2}, 1, 8},
                      {"first_axis", {8, 3, 2}, 0, 0},
                      {"long", {1, 256, 1}, 1, 0},
                      {"one", {2, 1, 2}, 1, 0}};
  for (const Row& row : rows) {
    cases.add_to(kExtended, "DFT", BP_DTYPE_FLOAT, row.variant, [=](Random& random) {
      return Problem{"DFT",
                     {{"inverse", int64_t{row.inverse}}, {"onesided", int64_t{row.onesided}}},
                     {random_tensor(random, BP_DTYPE_FLOAT, row.x, Fill::kAroundZero),
                      row.length == 0 ? Argument() : constant(scalar(row.length)), constant(scalar(row.axis))}};
    });
  }
  for (const bool with_window : {false, true}) {
    for (const bool onesided : {false, true}) {
      for (const int64_t step : {int64_t{4}, int64_t{8}, int64_t{5}}) {
        cases.add_to(
            kExtended, "STFT", BP_DTYPE_FLOAT,
            std::string(with_window ? "window" : "plain") + (onesided ? "_onesided" : "") + "_step" +
                std::to_string(step),
            [=](Random& random) {
              Problem problem{"STFT", {{"onesided", int64_t{onesided}}}, {}};
              problem.arguments.emplace_back(random_tensor(random, BP_DTYPE_FLOAT, {2, 61, 1}, Fill::kAroundZero));
              problem.arguments.push_back(constant(scalar(step)));
              problem.arguments.push_back(
                  with_window ? Argument(random_tensor(random, BP_DTYPE_FLOAT, {16}, Fill::kPositive)) : Argument());
              problem.arguments.push_back(constant(scalar(16)));
              return problem;
            });
      }
    }
  }
}

}  // namespace backplane::conform
