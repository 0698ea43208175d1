// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include <algorithm>

namespace backplane::conform {
namespace {

struct Row {
  const char* variant;
  int64_t steps, batch, inputs, hidden;
  const char* direction = "forward";
  bp_dtype_t weights = BP_DTYPE_INT8;
  bool columns = false;  // a scale and zero point for each gate and unit
  bool bias = true, lengths = false, states = false, peepholes = false, coupled = false, known = true;
  uint32_t outputs = 3;
  float clip = 0;
};
const Row kRows[] = {
    {"plain", 4, 1, 6, 8},
    {"odd_sizes", 3, 2, 7, 19, "forward", BP_DTYPE_UINT8},
    {"columns", 3, 2, 5, 16, "forward", BP_DTYPE_INT8, true},
    {"unsigned_columns", 3, 1, 5, 16, "forward", BP_DTYPE_UINT8, true},
    {"reverse", 4, 2, 6, 8, "reverse"},
    {"bidirectional", 3, 2, 6, 8, "bidirectional", BP_DTYPE_INT8, true},
    {"no_bias", 3, 1, 6, 8, "forward", BP_DTYPE_INT8, false, false},
    {"lengths", 5, 4, 4, 8, "forward", BP_DTYPE_INT8, false, true, true},
    {"reverse_lengths", 5, 4, 4, 8, "reverse", BP_DTYPE_UINT8, false, true, true, true},
    {"states", 3, 2, 6, 8, "bidirectional", BP_DTYPE_INT8, false, true, true, true},
    {"peepholes", 3, 2, 6, 8, "forward", BP_DTYPE_INT8, false, true, false, true, true},
    {"coupled_gates", 3, 2, 6, 8, "forward", BP_DTYPE_INT8, false, true, false, false, false, true},
    {"given_weights", 3, 2, 6, 9, "bidirectional", BP_DTYPE_INT8, true, true, false, false, false, false, false},
    {"clipped", 4, 1, 6, 8, "forward", BP_DTYPE_INT8, false, true, false, false, false, false, true, 1, 0.25f},
    {"one_step", 1, 1, 1, 1},
    {"wide", 2, 3, 40, 70, "forward", BP_DTYPE_INT8, true},
};

Problem make(const Row& row, Random& random) {
  const int64_t directions = std::string_view(row.direction) == "bidirectional" ? 2 : 1, columns = 4 * row.hidden;
  const bool is_signed = row.weights == BP_DTYPE_INT8;
  const auto numbers = [&](bp_dtype_t dtype, Extents extents, double low, double high) {
    Array array(dtype, std::move(extents));
    for (double& x : array.values)
      x = is_float(dtype) ? random.uniform(low, high) : static_cast<double>(random.integer(whole(low), whole(high)));
    return to_tensor(array);
  };
  const auto real = [&](bool is_there, Extents extents) {
    return is_there ? Argument(numbers(BP_DTYPE_FLOAT, std::move(extents), -1, 1)) : Argument();
  };
  const auto fixed = [&](onnx::Tensor tensor) { return Argument(std::move(tensor), row.known); };
  const Extents parameters = row.columns ? Extents{directions, columns} : Extents{directions},
                state = {directions, row.batch, row.hidden};
  // ONNX Runtime uses a single zero point for all columns of a direction, so all entries are equal.
  const auto zeros = [&] {
    Array array(row.weights, parameters);
    const int64_t least = is_signed ? -9 : 110, most = is_signed ? 9 : 140;
    std::fill(array.values.begin(), array.values.end(), static_cast<double>(random.integer(least, most)));
    return to_tensor(array);
  };
  Problem problem{
      "DynamicQuantizeLSTM",
      {{"direction", std::string(row.direction)}, {"hidden_size", row.hidden}, {"input_forget", int64_t{row.coupled}}},
      {},
      row.outputs};
  if (row.clip != 0) problem.attributes.push_back({"clip", row.clip});
  auto& arguments = problem.arguments;
  arguments.emplace_back(numbers(BP_DTYPE_FLOAT, {row.steps, row.batch, row.inputs}, -2, 3));
  for (const int64_t rows : {row.inputs, row.hidden})
    arguments.push_back(
        fixed(numbers(row.weights, {directions, rows, columns}, is_signed ? -128 : 0, is_signed ? 127 : 255)));
  arguments.push_back(real(row.bias, {directions, 2 * columns}));
  if (row.lengths) {
    Array lengths(BP_DTYPE_INT32, {row.batch});
    for (double& x : lengths.values) x = static_cast<double>(random.integer(0, row.steps));
    lengths.values[0] = static_cast<double>(row.steps - 1);
    arguments.emplace_back(to_tensor(lengths));
  } else {
    arguments.emplace_back();
  }
  arguments.push_back(real(row.states, state));
  arguments.push_back(real(row.states, state));
  arguments.push_back(real(row.peepholes, {directions, 3 * row.hidden}));
  for (int i = 0; i < 2; ++i) {
    arguments.push_back(fixed(numbers(BP_DTYPE_FLOAT, parameters, 0.003, 0.01)));
    arguments.push_back(fixed(zeros()));
  }
  return problem;
}

}  // namespace

void add_dynamic_lstm_cases(OpCases& cases) {
  for (const Row& row : kRows)
    cases.add_to(kMicrosoft, "DynamicQuantizeLSTM", BP_DTYPE_FLOAT, row.variant,
                 [&row](Random& random) { return make(row, random); });
}

}  // namespace backplane::conform
