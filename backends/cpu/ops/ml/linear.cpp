// SPDX-License-Identifier: Apache-2.0
// LinearClassifier, LinearRegressor: a matrix times each row, plus intercepts.
#include <algorithm>

#include "ops/ml/support.h"
#include "ops/rows.h"

namespace backplane::cpu {
namespace {

using ml::kDomain;
using ml::Table;

struct Matrix {
  std::vector<float> coefficients;  // [outputs, columns]
  std::vector<float> intercepts;    // [outputs], or none
  int64_t outputs = 0;

  Failed check(const Table& table) const {
    if (static_cast<int64_t>(coefficients.size()) == outputs * table.columns) return std::nullopt;
    return std::to_string(coefficients.size()) + " coefficients for " + std::to_string(outputs) + " outputs of rows of " +
           std::to_string(table.columns) + " numbers";
  }
  void times(std::span<const double> row, float* scores) const {
    const float* c = coefficients.data();
    for (int64_t o = 0; o < outputs; ++o) {
      double sum = intercepts.empty() ? 0.0 : intercepts[static_cast<size_t>(o)];
      for (double x : row) sum += static_cast<double>(static_cast<float>(x)) * *c++;
      scores[o] = static_cast<float>(sum);
    }
  }
};

// Calls f(row index, row) for all rows of the table, on all threads.
void for_each_row(const Tensor& x, const Table& table, int64_t work, const auto& f) {
  parallel(table.rows, std::max<int64_t>(1, kCheapGrain / std::max<int64_t>(1, work)), [&](int64_t begin, int64_t end) {
    std::vector<double> row(static_cast<size_t>(table.columns));
    for (int64_t r = begin; r < end; ++r) {
      ml::read_numbers(x, r * table.columns, table.columns, row.data());
      f(r, std::span<const double>(row));
    }
  });
}

Verdict supports_regressor(const Node& node) {
  if (Verdict verdict = accepts(node, 1, {ml::kFeatures}); !verdict) return verdict;
  int64_t targets = node.attr("targets", int64_t{1});
  auto intercepts = static_cast<int64_t>(node.floats("intercepts").size());
  if (targets < 1 || (intercepts != 0 && intercepts != targets)) {
    return no(BP_REASON_ATTRIBUTE,
              "targets is " + std::to_string(targets) + " with " + std::to_string(intercepts) + " intercepts");
  }
  return ml::supports_post_transform(node);
}

std::unique_ptr<Kernel> create_regressor(const Node& node) {
  Matrix matrix{node.floats("coefficients"), node.floats("intercepts"), node.attr("targets", int64_t{1})};
  return make_kernel([matrix, post = ml::post_transform(node)](Tensors inputs) -> Plan {
    auto table = ml::table_of(inputs[0].shape);
    if (!table) return fail(ml::no_table(inputs[0].shape));
    if (Failed wrong = matrix.check(*table)) return fail(*wrong);
    return make_plan({Shape{table->rows, matrix.outputs}}, [matrix, post, table](Tensors in, Tensors out) {
      for_each_row(in[0], *table, table->columns * matrix.outputs, [&](int64_t r, std::span<const double> row) {
        float* scores = out[0].as<float>() + r * matrix.outputs;
        matrix.times(row, scores);
        // One number alone is no choice between classes: only PROBIT means something for it.
        if (matrix.outputs > 1 || post == ml::PostTransform::kProbit)
          ml::transform(post, {scores, static_cast<size_t>(matrix.outputs)});
      });
    });
  });
}

Verdict supports_classifier(const Node& node) {
  if (Verdict verdict = accepts(node, 1, {ml::kFeatures}); !verdict) return verdict;
  if (Verdict verdict = expect_operands(node, 1, 2); !verdict) return verdict;
  size_t outputs = node.floats("intercepts").size();
  size_t labels = ml::Labels(node, "classlabels_ints", "classlabels_strings").count();
  if (outputs > 1 && labels != outputs) {
    return no(BP_REASON_ATTRIBUTE,
              std::to_string(outputs) + " intercepts for " + std::to_string(labels) + " class labels");
  }
  return ml::supports_post_transform(node);
}

std::unique_ptr<Kernel> create_classifier(const Node& node) {
  Matrix matrix{node.floats("coefficients"), node.floats("intercepts"), 0};
  ml::Labels labels(node, "classlabels_ints", "classlabels_strings");
  return make_value_kernel([matrix, labels, post = ml::post_transform(node)](Values in, Values out) mutable -> Failed {
    return std::nullopt;
  });
}

}  // namespace
}  // namespace backplane::cpu
