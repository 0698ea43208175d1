// SPDX-License-Identifier: Apache-2.0
// Shared by the operators of ai.onnx.ml: reading inputs as rows of numbers, tensors in attributes, class labels, and
// transforms of scores.
#pragma once

#include <algorithm>

#include "kernels/common/function_kernel.h"
#include "kernels/common/values.h"
#include "runtime/watch.h"

namespace backplane::cpu::ml {

inline constexpr std::string_view kDomain = "ai.onnx.ml";
inline constexpr bp_dtype_set_t kFeatures =
    just(BP_DTYPE_FLOAT) | just(BP_DTYPE_DOUBLE) | just(BP_DTYPE_INT32) | just(BP_DTYPE_INT64);

// The extents of an input: [C] is a single row, [N, C] is N rows. For other ranks, table_of returns nullopt, and
// no_table returns the error message.
struct Table {
  int64_t rows = 0;
  int64_t columns = 0;
};
std::optional<Table> table_of(const Shape& shape);
std::string no_table(const Shape& shape);

// Convert elements of a numeric tensor to double: `count` elements from `first` on, or all.
void read_numbers(const Tensor& tensor, int64_t first, int64_t count, double* out);
std::vector<double> numbers(const Tensor& tensor);

// Calls f(row index, row) for all rows of the table, in parallel. `work`: approximate operations per row.
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

// Returns a list of zeros with an entry for the class of each row.
std::vector<int64_t> classes_of(const Table& table);

// Returns an attribute's tensor, or nullopt if there is none. Throws sdk::Error if its data are unreadable or damaged.
std::optional<Value> tensor_attribute(const Node& node, std::string_view name);
// Returns the numbers in attribute `tensor`, or if that is absent, in the list of floats `list`. Throws sdk::Error if
// the data cannot be read, or are not numbers.
std::vector<double> numbers_of(const Node& node, std::string_view list, std::string_view tensor);

// The labels of classes: integers or strings.
struct Labels {
  std::vector<int64_t> ints;
  std::vector<std::string> texts;

  Labels(const Node& node, std::string_view int_name, std::string_view text_name);
  size_t count() const { return texts.empty() ? ints.size() : texts.size(); }
  // Returns a tensor [n] with the labels of these classes, each of which is below count(). Without labels, the
  // tensor has the classes' own numbers.
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
// Returns the scores of two classes when the model computes only the score of the second. The score of the first, which
// ONNX does not define, is that of ONNX Runtime: logistic(-score) for LOGISTIC, else -score (`first_is_opposite`) or
// 1 - score. Of the other transforms, only PROBIT is applied.
std::vector<double> two_classes(PostTransform what, double score, bool first_is_opposite);

}  // namespace backplane::cpu::ml
