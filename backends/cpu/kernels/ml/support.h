// SPDX-License-Identifier: Apache-2.0
// Common to the operators of ai.onnx.ml: inputs as rows of numbers, tensors in attributes, class labels, and the
// transformations of scores.
#pragma once

#include <algorithm>

#include "kernels/common/function_kernel.h"
#include "kernels/common/values.h"
#include "runtime/watch.h"

namespace backplane::cpu::ml {

inline constexpr std::string_view kDomain = "ai.onnx.ml";
inline constexpr bp_dtype_set_t kFeatures =
    just(BP_DTYPE_FLOAT) | just(BP_DTYPE_DOUBLE) | just(BP_DTYPE_INT32) | just(BP_DTYPE_INT64);

// A tensor [C] is one row, [N, C] is N rows.
struct Table {
  int64_t rows = 0;
  int64_t columns = 0;
};
std::optional<Table> table_of(const Shape& shape);
std::string no_table(const Shape& shape);

// Convert elements of a numeric tensor: `count` from `first`, or all.
void read_numbers(const Tensor& tensor, int64_t first, int64_t count, double* out);
std::vector<double> numbers(const Tensor& tensor);

// Calls f(row index, row) for all rows of the table, on all threads.
void for_each_row(const Tensor& x, const Table& table, int64_t work, const auto& f) {
  parallel(table.rows, std::max<int64_t>(1, kCheapGrain / std::max<int64_t>(1, work)), [&](int64_t begin, int64_t end) {
    std::vector<double> row(static_cast<size_t>(table.columns));
    Pace pace;
    for (int64_t r = begin; r < end; ++r) {
      pace.spend(work);
      read_numbers(x, r * table.columns, table.columns, row.data());
      f(r, std::span<const double>(row));
    }
  });
}

// Returns the tensor in an attribute, or nullopt if there is none. Throws sdk::Error if its data cannot be read.
std::optional<Value> tensor_attribute(const Node& node, std::string_view name);
// Returns numbers from attribute `tensor` or, if it is absent, from the floats of `list`. Throws likewise.
std::vector<double> numbers_of(const Node& node, std::string_view list, std::string_view tensor);

// Class labels: integers or strings.
struct Labels {
  std::vector<int64_t> ints;
  std::vector<std::string> texts;

  Labels(const Node& node, std::string_view int_name, std::string_view text_name);
  size_t count() const { return texts.empty() ? ints.size() : texts.size(); }
  // Returns a tensor [n] of the labels of these classes, each below count(). Without labels, returns their indices.
  Value make(std::span<const int64_t> classes) const;
};

enum class PostTransform { kNone, kLogistic, kSoftmax, kSoftmaxZero, kProbit };
Verdict supports_post_transform(const Node& node);
PostTransform post_transform(const Node& node);
double logistic(double x);
inline void write_floats(std::span<const double> scores, float* out) {
  for (double score : scores) *out++ = static_cast<float>(score);
}
// Transforms the scores of one row in place.
void transform(PostTransform what, std::span<double> scores);
// Returns the scores of two classes of which only the second has a score. Where ONNX leaves it open, as in ONNX
// Runtime: logistic(-score) for the first if LOGISTIC, else -score or 1 - score; of the others, only PROBIT is applied.
std::vector<double> two_classes(PostTransform what, double score, bool first_is_opposite);

}  // namespace backplane::cpu::ml
