// SPDX-License-Identifier: Apache-2.0
// NegativeLogLikelihoodLoss, and SoftmaxCrossEntropyLoss, which first applies a log-softmax over the classes.
#include "ops/rows.h"
#include "ops/softmax.h"
#include "ops/table.h"

namespace backplane::gpu {
namespace {

void emit_loss(Emit& e, std::string_view kind) {
  Tensor x = e.input(0);
  const Tensor labels = e.input(1), class_weights = e.input(2);
  const int64_t classes = x.shape[1], inner = elements(x.shape, 2, x.rank());
  Shape each = x.shape;
  each.erase(each.begin() + 1);
  if (labels.shape != each)
    throw sdk::Error(BP_TYPE_MISMATCH, "the labels have shape " + to_string(labels.shape) + "; scores of shape " +
                                           to_string(x.shape) + " require " + to_string(each));
  if (class_weights && class_weights.shape != Shape{classes})
    throw sdk::Error(BP_TYPE_MISMATCH, "the weights have shape " + to_string(class_weights.shape) + " instead of " +
                                           to_string(Shape{classes}) + ", one number per class");
  if (kind == "softmax") {
    const Tensor logarithms = e.has_output(1) ? e.output(1, x.shape) : e.scratch(x.dtype, x.shape);
    emit_softmax(e, x, logarithms, 1, "1");
    x = logarithms;
  }
  const std::string_view reduction = e.node.text_attribute("reduction", "mean");
  const bool whole = reduction != "none";
  const Rows rows = rows_of(e.caps(), {1, labels.count()}, 1, 2);
  std::string options = "-DTYPE=" + Emit::type(x) + " -DINDEX=" + Emit::type(labels) + rows.macros();
  if (class_weights) options += " -DWEIGHTED";
  if (reduction == "mean") options += " -DMEAN";
  if (e.node.attribute("ignore_index") != nullptr)
    options += " -DIGNORED=" + std::to_string(e.node.int_attribute("ignore_index", 0));
  const Tensor values = whole ? e.scratch(x.dtype, each) : e.output(0, each);
  const Tensor weights = e.scratch(x.dtype == BP_DTYPE_DOUBLE ? BP_DTYPE_DOUBLE : BP_DTYPE_FLOAT, each);
  e.launch("loss", "loss", options)
      .in(x)
      .in(labels)
      .in(class_weights ? class_weights : x)
      .out(values)
      .out(weights)
      .arg(labels.count())
      .arg(classes)
      .arg(inner)
      .fault()
      .range(labels.count());
  if (!whole) return;
  const Tensor y = e.output(0, {});
  LaunchBuilder total = e.launch("loss", "loss_total", options);
  total.in(values).in(weights).out(y).arg(labels.count());
  rows.range(total);
}

Verdict supports_loss(const Node& node) {
  return expect(node)
      .choice("reduction", {"none", "sum", "mean"})
      .input_dtype(1, one(BP_DTYPE_INT32) | one(BP_DTYPE_INT64))
      .same_dtype(0, 2)
      .rank(0, 2);
}

}  // namespace

std::span<const Row> loss_rows() {
  static constexpr Row kRows[] = {
      {"", "NegativeLogLikelihoodLoss", 13, kFloats, {2, 3}, supports_loss, emit_loss, "plain"},
      {"", "SoftmaxCrossEntropyLoss", 13, kFloats, {2, 3, Form::kSame, 2}, supports_loss, emit_loss, "softmax"},
  };
  return kRows;
}

}  // namespace backplane::gpu
