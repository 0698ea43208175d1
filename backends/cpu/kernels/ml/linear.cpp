// SPDX-License-Identifier: Apache-2.0
// LinearClassifier, LinearRegressor: multiply each row by a matrix and add intercepts.
#include <algorithm>

#include "kernels/ml/support.h"
#include "runtime/memory.h"

namespace backplane::cpu {
namespace {

using ml::kDomain;
using ml::Table;

struct Matrix {
  std::vector<float> coefficients;  // [outputs, columns]
  std::vector<float> intercepts;    // [outputs], or empty
  int64_t outputs = 0;

  Failed check(const Table& table) const {
    if (static_cast<int64_t>(coefficients.size()) == product({outputs, table.columns})) return std::nullopt;
    return std::to_string(coefficients.size()) + " coefficients do not fit " + std::to_string(outputs) +
           " outputs and rows of " + std::to_string(table.columns) + " numbers";
  }
  void times(std::span<const double> row, std::span<double> scores) const {
    const float* c = coefficients.data();
    for (size_t o = 0; o < scores.size(); ++o) {
      double sum = intercepts.empty() ? 0.0 : intercepts[o];
      for (double x : row) sum += static_cast<double>(static_cast<float>(x)) * *c++;
      scores[o] = static_cast<double>(static_cast<float>(sum));
    }
  }
};

Verdict supports_regressor(const Node& node) {
  if (Verdict verdict = accepts(node, 1, {ml::kFeatures}); !verdict) return verdict;
  int64_t targets = node.attr("targets", int64_t{1});
  auto intercepts = static_cast<int64_t>(node.floats("intercepts").size());
  if (targets < 1 || (intercepts != 0 && intercepts != targets)) {
    return no(BP_REASON_ATTRIBUTE, "targets is " + std::to_string(targets) + " with " + std::to_string(intercepts) +
                                       " intercepts; there must be none, or one for each target");
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
      ml::for_each_row(in[0], *table, table->columns * matrix.outputs, [&](int64_t r, std::span<const double> row) {
        require_memory(matrix.outputs, sizeof(double));
        std::vector<double> scores(static_cast<size_t>(matrix.outputs));
        matrix.times(row, scores);
        // Only PROBIT applies to a single score; the other transforms are for the scores of several classes.
        if (matrix.outputs > 1 || post == ml::PostTransform::kProbit) ml::transform(post, scores);
        ml::write_floats(scores, out[0].as<float>() + r * matrix.outputs);
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
    return no(BP_REASON_ATTRIBUTE, std::to_string(outputs) + " intercepts for " + std::to_string(labels) +
                                       " class labels; the numbers must be equal");
  }
  return ml::supports_post_transform(node);
}

// Returns the class with the largest score. For a single score: 1 if it is positive, else 0.
int64_t choose(std::span<const double> scores) {
  if (scores.size() == 1) return scores[0] > 0 ? 1 : 0;
  return std::ranges::max_element(scores) - scores.begin();
}

std::unique_ptr<Kernel> create_classifier(const Node& node) {
  ml::Labels labels(node, "classlabels_ints", "classlabels_strings");
  Matrix matrix{node.floats("coefficients"), node.floats("intercepts"), 0};
  matrix.outputs =
      static_cast<int64_t>(std::max<size_t>(1, matrix.intercepts.empty() ? labels.count() : matrix.intercepts.size()));
  // A single score decides between two labels: the model's, or 0 and 1 if the model does not have two.
  bool is_single = matrix.outputs == 1;
  bool adds_class = is_single && labels.count() == 2;
  if (is_single && !adds_class) {
    if (!labels.texts.empty()) labels.texts = {"0", "1"};
    labels.ints = {0, 1};
  }
  return make_value_kernel(
      [matrix, labels, adds_class, post = ml::post_transform(node)](Values in, Values out) -> Failed {
        const Tensor& x = in[0].tensor;
        auto table = ml::table_of(x.shape);
        if (!table) return ml::no_table(x.shape);
        if (Failed wrong = matrix.check(*table)) return wrong;
        int64_t width = adds_class ? 2 : matrix.outputs;
        out[1] = Value::allocate(BP_DTYPE_FLOAT, Shape{table->rows, width});
        std::vector<int64_t> classes = ml::classes_of(*table);
        ml::for_each_row(x, *table, table->columns * matrix.outputs, [&](int64_t r, std::span<const double> row) {
          std::vector<double> scores(static_cast<size_t>(matrix.outputs));
          matrix.times(row, scores);
          classes[static_cast<size_t>(r)] = choose(scores);
          if (adds_class)
            scores = ml::two_classes(post, scores[0], false);
          else
            ml::transform(post, scores);
          ml::write_floats(scores, out[1].tensor.as<float>() + r * width);
        });
        out[0] = labels.make(classes);
        return std::nullopt;
      });
}

}  // namespace

[[gnu::cold]] std::span<const Row> linear_rows() {
  static constexpr Row kRows[] = {
      {kDomain, "LinearClassifier", 1, supports_classifier, create_classifier, kTexts},
      {kDomain, "LinearRegressor", 1, supports_regressor, create_regressor},
  };
  return kRows;
}

}  // namespace backplane::cpu
